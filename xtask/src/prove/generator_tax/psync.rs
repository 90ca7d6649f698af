//! psync from the page cache against the least that any program can do: pread in a loop. What that takes depends on where in a page it lies,
//! by more than is asked of psync, so there are loops at sixteen places, and what is asked is asked of the mean of their times.

use super::cached::File;
use crate::prove::bench::{Bench, read_through};
use crate::prove::evidence::{self, Evidence, rate};
use crate::prove::iotoll::{self, Measuring};
use crate::prove::placed::{self, Loops, Rates};
use crate::prove::{fio, rounds};
use anyhow::Context;

/// How much slower than the bare loop it may be.
const TAX: f64 = 0.03;
/// Three per cent are less than what a shared machine drifts from one second to the next: what is asked is measured in so many times as
/// many rounds as the rest.
const MORE: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generator {
    /// The loops at all places.
    Bare,
    /// A loop around the C library's function.
    Called,
    Iotoll,
    Fio,
}

impl Generator {
    const ALL: [Self; 4] = [Self::Bare, Self::Called, Self::Iotoll, Self::Fio];
}

/// What one run found.
#[derive(Clone, Debug)]
enum Found {
    Bare(Rates),
    Iops(f64),
}

pub fn prove(bench: &mut Bench, files: &[File], evidence: &mut Evidence) -> anyhow::Result<()> {
    let loops = Loops::build(bench)?;
    let mut found = measured(bench, &loops, files, &Generator::ALL, bench.options.rounds)?;
    let asked = [Generator::Bare, Generator::Iotoll];
    let more = measured(bench, &loops, files, &asked, (MORE - 1) * bench.options.rounds)?;
    for (all, more) in found.chunks_mut(Generator::ALL.len()).zip(more.chunks(asked.len())) {
        let ([bare, _, ours, _], [more_bare, more_ours]) = (all, more) else { continue };
        bare.extend_from_slice(more_bare);
        ours.extend_from_slice(more_ours);
    }
    let mut rows = Vec::new();
    for (file, values) in files.iter().zip(found.chunks(Generator::ALL.len())) {
        let [bare, called, ours, fio] = values else { continue };
        let [called, ours, fio] = [called, ours, fio].map(|runs| iops(runs));
        let bare: Vec<Rates> = bare.iter().filter_map(Found::rates).collect();
        let anywhere: Vec<f64> = bare.iter().map(placed::anywhere).collect();
        let (fastest, slowest) = placed::extremes(&bare);
        let [fastest, slowest] = [fastest, slowest].map(|place| placed::of_place(&bare, place));
        let ratio = rounds::ratio(&ours, &anywhere);
        let size = format!("{} MiB", file.mebibytes);
        let rates = [&anywhere, &fastest, &slowest, &called, &ours, &fio];
        let ratios = [(&called, &anywhere), (&ours, &anywhere), (&ours, &fastest), (&ours, &fio)];
        rows.push(
            [
                vec![size.clone()],
                rates.map(|values| rate(rounds::mean(values).value)).to_vec(),
                ratios.map(|(one, other)| evidence::interval(&rounds::ratio(one, other), 3)).to_vec(),
            ]
            .concat(),
        );
        let text = format!(
            "psync, {size}: {} of a bare pread loop's IOPS (the mean of times at {} places), at least {:.2}",
            evidence::interval(&ratio, 3),
            placed::PLACES,
            1.0 - TAX
        );
        evidence.criterion(ratio.value >= 1.0 - TAX, text);
    }
    evidence.note(format!(
        "4 KiB random reads from the page cache, one at a time: IOPS, of bare loops and iotoll over {} rounds, of the others over {} of these. \
         The bare loops are one in {} places of a page, in turns; one loop around libc's pread and iotoll's lie where their builds have them.",
        MORE * bench.options.rounds,
        bench.options.rounds,
        placed::PLACES,
    ));
    let header = [
        "file",
        "bare pread loop, mean place",
        "fastest",
        "slowest",
        "libc's pread called",
        "iotoll psync",
        "fio psync",
        "called ÷ mean",
        "iotoll ÷ mean",
        "iotoll ÷ fastest",
        "iotoll ÷ fio",
    ];
    evidence.table(&header, &rows);
    Ok(())
}

impl Found {
    fn rates(&self) -> Option<Rates> {
        match self {
            Self::Bare(rates) => Some(rates.clone()),
            Self::Iops(_) => None,
        }
    }
}

fn iops(found: &[Found]) -> Vec<f64> {
    found.iter().filter_map(|found| if let Found::Iops(iops) = found { Some(*iops) } else { None }).collect()
}

/// What each round found, file by file and in each of these generator by generator.
fn measured(
    bench: &mut Bench,
    loops: &Loops,
    files: &[File],
    generators: &[Generator],
    rounds: usize,
) -> anyhow::Result<Vec<Vec<Found>>> {
    let with = |place: usize| generators.iter().map(move |generator| (place, *generator));
    let cells: Vec<(usize, Generator)> = (0..files.len()).flat_map(with).collect();
    bench.in_so_many_rounds(
        rounds,
        &cells,
        |(place, _)| *place,
        |(place, generator)| format!("psync, file {}, {generator:?}", place + 1),
        |bench, (place, generator)| measure(bench, loops, files.get(*place).context("no such file")?, *generator),
    )
}

fn measure(bench: &Bench, loops: &Loops, file: &File, generator: Generator) -> anyhow::Result<Found> {
    read_through(&file.path)?;
    let seconds = bench.options.seconds;
    let path = file.path.display().to_string();
    let (size, name) = (format!("--size={}m", file.mebibytes), format!("--filename={path}"));
    let job = fio::job("psync", seconds, &["--bs=4k", "--invalidate=0", &size, &name]);
    let iops = match generator {
        Generator::Bare => return Ok(Found::Bare(loops.run(bench, &file.path, seconds)?)),
        Generator::Called => {
            let words = bench.load(&["bare-pread", &path, &seconds.to_string(), "4096", "cached"]);
            let (program, arguments) = words.split_first().context("an empty command")?;
            let said = bench.output(bench.command(program).args(arguments))?;
            said.trim().parse().context("the loop did not print its rate")?
        }
        Generator::Fio => fio::run(bench, &job)?.iops,
        Generator::Iotoll => iotoll::job(&iotoll::run(bench, &Measuring::LEAST, &job)?)?.iops,
    };
    Ok(Found::Iops(iops))
}
