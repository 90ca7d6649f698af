//! psync from the page cache against the least that any program can do: pread in a loop.

use super::cached::File;
use crate::prove::bench::{Bench, read_through};
use crate::prove::evidence::{self, Evidence, rate};
use crate::prove::iotoll::{self, Measuring};
use crate::prove::{fio, rounds};
use anyhow::Context;

/// How much slower than the bare loop it may be.
const TAX: f64 = 0.03;
/// Three per cent are less than what a shared machine drifts from one second to the next: what is asked is measured in so many times as
/// many rounds as the rest.
const MORE: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generator {
    Bare,
    /// The same through the C library's function.
    Called,
    Iotoll,
    Fio,
}

impl Generator {
    const ALL: [Self; 4] = [Self::Bare, Self::Called, Self::Iotoll, Self::Fio];
}

pub fn prove(bench: &mut Bench, files: &[File], evidence: &mut Evidence) -> anyhow::Result<()> {
    let mut found = measured(bench, files, &Generator::ALL, bench.options.rounds)?;
    let asked = [Generator::Bare, Generator::Iotoll];
    let more = measured(bench, files, &asked, (MORE - 1) * bench.options.rounds)?;
    for (all, more) in found.chunks_mut(Generator::ALL.len()).zip(more.chunks(asked.len())) {
        let ([bare, _, ours, _], [more_bare, more_ours]) = (all, more) else { continue };
        bare.extend(more_bare);
        ours.extend(more_ours);
    }
    let mut rows = Vec::new();
    for (file, values) in files.iter().zip(found.chunks(Generator::ALL.len())) {
        let [bare, called, ours, fio] = values else { continue };
        let ratio = rounds::ratio(ours, bare);
        let mean = |values: &[f64]| rate(rounds::mean(values).value);
        let fio_ratio = evidence::interval(&rounds::ratio(ours, fio), 2);
        let size = format!("{} MiB", file.mebibytes);
        let of_bare = |values: &[f64]| evidence::interval(&rounds::ratio(values, bare), 3);
        let rates = [bare, called, ours, fio].map(|values| mean(values));
        rows.push([vec![size.clone()], rates.to_vec(), vec![of_bare(called), of_bare(ours), fio_ratio]].concat());
        let text = format!(
            "psync, {size}: {} of a bare pread loop's IOPS, at least {:.2}",
            evidence::interval(&ratio, 3),
            1.0 - TAX
        );
        evidence.criterion(ratio.value >= 1.0 - TAX, text);
    }
    evidence.note(format!(
        "4 KiB random reads from the page cache, one at a time: IOPS, of a bare loop and iotoll over {} rounds, of the others over {} of these.",
        MORE * bench.options.rounds,
        bench.options.rounds
    ));
    let header = [
        "file",
        "bare pread loop",
        "the same, libc's pread called",
        "iotoll psync",
        "fio psync",
        "called ÷ bare",
        "iotoll ÷ bare",
        "iotoll ÷ fio",
    ];
    evidence.table(&header, &rows);
    Ok(())
}

/// IOPS in each round, file by file and in each of these generator by generator.
fn measured(
    bench: &mut Bench,
    files: &[File],
    generators: &[Generator],
    rounds: usize,
) -> anyhow::Result<Vec<Vec<f64>>> {
    let with = |place: usize| generators.iter().map(move |generator| (place, *generator));
    let cells: Vec<(usize, Generator)> = (0..files.len()).flat_map(with).collect();
    bench.in_so_many_rounds(
        rounds,
        &cells,
        |(place, _)| *place,
        |(place, generator)| format!("psync, file {}, {generator:?}", place + 1),
        |bench, (place, generator)| measure(bench, files.get(*place).context("no such file")?, *generator),
    )
}

fn measure(bench: &Bench, file: &File, generator: Generator) -> anyhow::Result<f64> {
    read_through(&file.path)?;
    let seconds = bench.options.seconds;
    let path = file.path.display().to_string();
    if matches!(generator, Generator::Bare | Generator::Called) {
        let how = if generator == Generator::Bare { "inlined" } else { "called" };
        let words = bench.load(&["bare-pread", &path, &seconds.to_string(), "4096", how, "cached"]);
        let (program, arguments) = words.split_first().context("an empty command")?;
        let said = bench.output(bench.command(program).args(arguments))?;
        return said.trim().parse().context("the bare loop did not print its rate");
    }
    let (size, path) = (format!("--size={}m", file.mebibytes), format!("--filename={path}"));
    let job = fio::job("psync", seconds, &["--bs=4k", "--invalidate=0", &size, &path]);
    match generator {
        Generator::Fio => Ok(fio::run(bench, &job)?.iops),
        _ => Ok(iotoll::job(&iotoll::run(bench, &Measuring::LEAST, &job)?)?.iops),
    }
}
