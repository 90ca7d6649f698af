//! psync from the page cache against the least that any program can do: pread in a loop.

use super::cached::File;
use crate::prove::bench::{Bench, read_through};
use crate::prove::evidence::{self, Evidence, rate};
use crate::prove::iotoll::{self, Measuring};
use crate::prove::{fio, rounds};
use anyhow::Context;

/// How much slower than the bare loop it may be.
const TAX: f64 = 0.03;

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
    let places = 0..files.len();
    let cells: Vec<(usize, Generator)> =
        places.flat_map(|place| Generator::ALL.map(|generator| (place, generator))).collect();
    let named = |(place, generator): &(usize, Generator)| format!("psync, file {}, {generator:?}", place + 1);
    let found = bench.in_rounds(
        &cells,
        |(place, _)| *place,
        named,
        |bench, (place, generator)| measure(bench, files.get(*place).context("no such file")?, *generator),
    )?;
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
    evidence.note("4 KiB random reads from the page cache, one at a time: IOPS.");
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

fn measure(bench: &Bench, file: &File, generator: Generator) -> anyhow::Result<f64> {
    read_through(&file.path)?;
    let path = file.path.display().to_string();
    if matches!(generator, Generator::Bare | Generator::Called) {
        let how = if generator == Generator::Bare { "inlined" } else { "called" };
        let words = bench.load(&["bare-pread", &path, &bench.options.seconds.to_string(), "4096", how, "cached"]);
        let (program, arguments) = words.split_first().context("an empty command")?;
        let said = bench.output(bench.command(program).args(arguments))?;
        return said.trim().parse().context("the bare loop did not print its rate");
    }
    let (size, path) = (format!("--size={}m", file.mebibytes), format!("--filename={path}"));
    let job = fio::job("psync", bench.options.seconds, &["--bs=4k", "--invalidate=0", &size, &path]);
    match generator {
        Generator::Fio => Ok(fio::run(bench, &job)?.iops),
        _ => Ok(iotoll::job(&iotoll::run(bench, &Measuring::LEAST, &job)?)?.iops),
    }
}
