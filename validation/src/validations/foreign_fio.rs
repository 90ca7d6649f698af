//! `iotoll cost -- fio` and `iotoll run` with the same options: net of each generator's own floor, the rest is the
//! kernel's cost of the I/O, and both must agree on it.
//!
//! The choice of floor matters. `null` never enters the kernel, and a generator's own code costs more right after the
//! kernel has run, because caches and branch predictors are cold. So there is a second floor, the same engine on
//! `/dev/zero`: the same system calls into the same buffers, without a file.
//!
//! Neither floor contains two effects: a generator's code costs more between system calls than in `null`, and it makes
//! the calls themselves more expensive (docs/validation/fio.md).
//!
//! A second meter shows whether a disagreement comes from the meter or from the generators: the kernel's accounting of
//! the threads' own time (for fio: usr_cpu and sys_cpu), which is independent of idle time.

use crate::bench::evidence::{self, Evidence};
use crate::bench::iotoll::{self, Measuring};
use crate::bench::memory_disk::MemoryDisk;
use crate::bench::{Bench, read_through};
use crate::bench::{fio, rounds};
use anyhow::Context;
use std::path::Path;

/// Engines, and I/Os in flight.
const ENGINES: [(&str, u32); 3] = [("psync", 1), ("libaio", 16), ("io_uring", 16)];
const MEASURING: Measuring = Measuring { meters: "idle,thread", background_millis: 500, out: None };
const MEBIBYTES: usize = 64;
/// Largest half-width of an interval, as a fraction of the cost: a wider one would agree with nearly anything.
const PRECISION: f64 = 0.15;
/// The table also shows whether the difference is below this fraction of the cost.
const EQUAL: f64 = 0.10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generator {
    Fio,
    Iotoll,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cache {
    Buffered,
    Direct,
}

/// The source of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    File,
    /// Nothing: engine `null`.
    Null,
    /// `/dev/zero`, by the same engine.
    Zero,
}

const SOURCES: [Source; 3] = [Source::File, Source::Null, Source::Zero];

/// The floor to subtract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Floor {
    Null,
    Zero,
}

impl Floor {
    fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Zero => "/dev/zero",
        }
    }

    fn source(self) -> Source {
        match self {
            Self::Null => Source::Null,
            Self::Zero => Source::Zero,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    engine: &'static str,
    depth: u32,
    cache: Cache,
    generator: Generator,
    source: Source,
}

/// Net cycles per I/O of the whole machine, and of the generator's own threads.
#[derive(Clone, Copy, Debug)]
struct Found {
    machine: f64,
    threads: f64,
}

impl Cache {
    fn name(self) -> &'static str {
        match self {
            Self::Buffered => "buffered",
            Self::Direct => "direct",
        }
    }
}

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    // Each has its own file: a cached page changes the path of a direct read.
    let disk = MemoryDisk::mount(bench.path("disk"), 2 * MEBIBYTES)?;
    let cached = bench.file("cached", MEBIBYTES)?;
    let direct = bench.file_at(disk.path().join("direct"), MEBIBYTES)?;
    let cells = cells();
    // The runs of one row stay together, so that the machine has little time to change in between.
    let block = |cell: &Cell| {
        let engine = ENGINES.iter().position(|(engine, _)| *engine == cell.engine).unwrap_or(0);
        engine * 2 + usize::from(cell.cache == Cache::Direct)
    };
    let named = |cell: &Cell| {
        let floor = match cell.source {
            Source::File => "",
            Source::Null => "null instead of ",
            Source::Zero => "/dev/zero instead of ",
        };
        format!("{:?}, {floor}{} {}", cell.generator, cell.engine, cell.cache.name())
    };
    let found = bench.in_rounds(&cells, block, named, |bench, cell| {
        let file = if cell.cache == Cache::Direct { &direct } else { &cached };
        measure(bench, cell, file)
    })?;
    let mut evidence = Evidence::default();
    let (mut gross, mut net) = (Vec::new(), Vec::new());
    for (engine, depth) in ENGINES {
        for cache in [Cache::Buffered, Cache::Direct] {
            let values = |generator, source, by: fn(&Found) -> f64| {
                let wanted = Cell { engine, depth, cache, generator, source };
                let place = cells.iter().position(|cell| *cell == wanted);
                let found = place.and_then(|place| found.get(place)).context("a cell was not measured")?;
                Ok::<_, anyhow::Error>(found.iter().map(by).collect::<Vec<f64>>())
            };
            let mut row = vec![format!("{engine} {}, depth {depth}", cache.name())];
            for generator in [Generator::Fio, Generator::Iotoll] {
                for source in SOURCES {
                    row.push(format!("{:.0}", rounds::mean(&values(generator, source, |found| found.machine)?).value));
                }
            }
            gross.push(row);
            for floor in [Floor::Null, Floor::Zero] {
                let source = floor.source();
                let beyond = |generator, by| {
                    Ok::<_, anyhow::Error>(rounds::differences(
                        &values(generator, Source::File, by)?,
                        &values(generator, source, by)?,
                    ))
                };
                let both = |by| Ok::<_, anyhow::Error>([beyond(Generator::Fio, by)?, beyond(Generator::Iotoll, by)?]);
                let what = format!("{engine} {}", cache.name());
                let (machine, threads) = (both(|found| found.machine)?, both(|found| found.threads)?);
                net.push(agreement(&mut evidence, &what, floor, &machine, &threads));
            }
        }
    }
    evidence.note(
        "4 KiB random reads of a 64 MiB file, not pinned; net cycles of the whole machine per I/O, means over rounds. \
         io_uring with registered buffers and files in both. Direct I/O is to a disk in memory (ext4 on zram): the \
         virtual disk here is too noisy for an interval that says anything. Floors: engine `null` at the same options, \
         and the same engine on `/dev/zero` (buffered, it has no O_DIRECT), which enters the kernel and fills the buffer.",
    );
    let of = |who: &str| [who.to_owned(), format!("{who}, null"), format!("{who}, /dev/zero")];
    let header: Vec<String> = ["I/O".to_owned()].into_iter().chain(of("fio")).chain(of("iotoll")).collect();
    evidence.table(&header.iter().map(String::as_str).collect::<Vec<_>>(), &gross);
    let header = [
        "I/O",
        "floor",
        "fio − floor",
        "iotoll − floor",
        "iotoll − fio",
        "the same by the thread clocks",
        "intervals overlap / difference may be 0 / is below 10 %",
    ];
    evidence.table(&header, &net);
    Ok(evidence)
}

/// Compares what each generator found beyond one floor.
fn agreement(
    evidence: &mut Evidence,
    what: &str,
    floor: Floor,
    [fio, ours]: &[Vec<f64>; 2],
    [fio_threads, our_threads]: &[Vec<f64>; 2],
) -> Vec<String> {
    let (theirs, our) = (rounds::mean(fio), rounds::mean(ours));
    let difference = rounds::mean(&rounds::differences(ours, fio));
    let by_threads = rounds::mean(&rounds::differences(our_threads, fio_threads));
    let margin = EQUAL * theirs.value.abs();
    let within = difference.low.zip(difference.high).map(|(low, high)| -margin < low && high < margin);
    let (overlap, zero) = (rounds::overlap(&theirs, &our), difference.contains(0.0));
    let precise = [&theirs, &our].iter().all(|net| net.half_width().is_some_and(|half| half <= PRECISION * net.value));
    let sentence = match overlap {
        Some(true) if precise && zero == Some(false) => "the intervals overlap, but the difference per round is not 0",
        Some(true) if precise => "the intervals overlap",
        Some(true) => "the intervals overlap, but are too wide to decide: use more --rounds or a quieter machine",
        Some(false) => "the intervals do not overlap",
        None => "one round has no interval",
    };
    let [theirs, our, difference, by_threads] =
        [&theirs, &our, &difference, &by_threads].map(|estimate| evidence::interval(estimate, 0));
    // The criterion is agreement beyond `null`; the other floor explains a disagreement.
    if floor == Floor::Null {
        let text = format!("{what}: net of null, fio costs {theirs} and iotoll {our} cycles per I/O: {sentence}");
        evidence.criterion(overlap == Some(true) && precise, text);
    }
    let words = [overlap, zero, within].map(word).join(" / ");
    vec![what.to_owned(), floor.name().to_owned(), theirs, our, difference, by_threads, words]
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (engine, depth) in ENGINES {
        for cache in [Cache::Buffered, Cache::Direct] {
            for generator in [Generator::Fio, Generator::Iotoll] {
                cells.extend(SOURCES.map(|source| Cell { engine, depth, cache, generator, source }));
            }
        }
    }
    cells
}

fn measure(bench: &Bench, cell: &Cell, file: &Path) -> anyhow::Result<Found> {
    let depth = format!("--iodepth={}", cell.depth);
    let size = format!("--size={MEBIBYTES}m");
    let path = match cell.source {
        Source::File => format!("--filename={}", file.display()),
        Source::Null | Source::Zero => "--filename=/dev/zero".to_owned(),
    };
    let mut options = vec!["--bs=4k", &size, &depth];
    if cell.source != Source::Null {
        options.push(&path);
        if cell.engine == "io_uring" {
            // iotoll's default, which differs from fio's.
            options.extend(["--fixedbufs=1", "--registerfiles=1"]);
        }
    }
    if cell.source == Source::File {
        match cell.cache {
            Cache::Buffered => {
                read_through(file)?;
                options.push("--invalidate=0");
            }
            Cache::Direct => options.push("--direct=1"),
        }
    }
    let job = fio::job(if cell.source == Source::Null { "null" } else { cell.engine }, bench.options.seconds, &options);
    let finding = match cell.generator {
        Generator::Fio => iotoll::cost(bench, &MEASURING, &[], &[vec!["fio".to_owned()], job.clone()].concat())?,
        Generator::Iotoll => iotoll::run(bench, &MEASURING, &job)?,
    };
    let threads = iotoll::job(&finding)?.thread_cycles_per_io.context("the threads' own time is unknown")?;
    Ok(Found { machine: iotoll::net(&finding)?, threads })
}

fn word(answer: Option<bool>) -> &'static str {
    match answer {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_six_runs() {
        let cells = cells();
        assert_eq!(cells.len(), ENGINES.len() * 2 * 6);
        assert!(cells.iter().all(|cell| cells.iter().filter(|other| *other == cell).count() == 1));
    }
}
