//! `iotoll cost -- fio` and `iotoll run` with the same options: once each generator's own floor, its `null`, is
//! taken off, what is left is the kernel's cost of the I/O, which both must find alike.

use super::bench::{Bench, read_through};
use super::evidence::{self, Evidence};
use super::iotoll::{self, Measuring};
use super::memory_disk::MemoryDisk;
use super::{fio, rounds};
use anyhow::Context;
use std::path::Path;

/// Engines, and I/Os in flight.
const ENGINES: [(&str, u32); 3] = [("psync", 1), ("libaio", 16), ("io_uring", 16)];
const MEASURING: Measuring = Measuring { meters: "idle,thread", background_millis: 500, out: None };
const MEBIBYTES: usize = 64;
/// An interval wider than this part of the cost (half of its width) would agree with nearly anything.
const PRECISION: f64 = 0.15;

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

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    engine: &'static str,
    depth: u32,
    cache: Cache,
    generator: Generator,
    floor: bool,
}

impl Cache {
    fn name(self) -> &'static str {
        match self {
            Self::Buffered => "buffered",
            Self::Direct => "direct",
        }
    }
}

pub fn prove(bench: &mut Bench) -> anyhow::Result<Evidence> {
    // Each has a file of its own: a page that is cached changes the way of a direct read.
    let disk = MemoryDisk::mount(bench.path("disk"), 2 * MEBIBYTES)?;
    let cached = bench.file("cached", MEBIBYTES)?;
    let direct = bench.file_at(disk.path().join("direct"), MEBIBYTES)?;
    let cells = cells();
    // The four runs of one row stay together, so that the machine has little time to change between them.
    let block = |cell: &Cell| {
        let engine = ENGINES.iter().position(|(engine, _)| *engine == cell.engine).unwrap_or(0);
        engine * 2 + usize::from(cell.cache == Cache::Direct)
    };
    let named = |cell: &Cell| {
        let floor = if cell.floor { "null instead of " } else { "" };
        format!("{:?}, {floor}{} {}", cell.generator, cell.engine, cell.cache.name())
    };
    let found = bench.in_rounds(&cells, block, named, |bench, cell| {
        let file = if cell.cache == Cache::Direct { &direct } else { &cached };
        measure(bench, cell, file)
    })?;
    let mut evidence = Evidence::default();
    let mut rows = Vec::new();
    for (engine, depth) in ENGINES {
        for cache in [Cache::Buffered, Cache::Direct] {
            let values = |generator, floor| {
                let wanted = Cell { engine, depth, cache, generator, floor };
                let place = cells.iter().position(|cell| *cell == wanted);
                place.and_then(|place| found.get(place)).context("a cell was not measured")
            };
            let (fio, fio_floor) = (values(Generator::Fio, false)?, values(Generator::Fio, true)?);
            let (ours, our_floor) = (values(Generator::Iotoll, false)?, values(Generator::Iotoll, true)?);
            let (fio_net, our_net) = (rounds::differences(fio, fio_floor), rounds::differences(ours, our_floor));
            let (theirs, our) = (rounds::mean(&fio_net), rounds::mean(&our_net));
            let difference = rounds::mean(&rounds::differences(&our_net, &fio_net));
            let (overlap, zero) = (rounds::overlap(&theirs, &our), difference.contains(0.0));
            let mut row = vec![format!("{engine} {}, depth {depth}", cache.name())];
            row.extend([fio, fio_floor, ours, our_floor].map(|values| format!("{:.0}", rounds::mean(values).value)));
            row.extend([&theirs, &our, &difference].map(|estimate| evidence::interval(estimate, 0)));
            row.push(format!("{} / {}", word(overlap), word(zero)));
            rows.push(row);
            let precise =
                [&theirs, &our].iter().all(|net| net.half_width().is_some_and(|half| half <= PRECISION * net.value));
            let said = match overlap {
                Some(true) if precise => "the intervals overlap",
                Some(true) => {
                    "the intervals overlap, but are too wide to say anything: more --rounds, a quieter machine"
                }
                Some(false) => "the intervals do not overlap",
                None => "one round has no interval",
            };
            let text = format!(
                "{engine} {}: net of its floor, fio costs {} and iotoll {} cycles per I/O: {said}",
                cache.name(),
                evidence::interval(&theirs, 0),
                evidence::interval(&our, 0)
            );
            evidence.criterion(overlap == Some(true) && precise, text);
        }
    }
    evidence.note(
        "4 KiB random reads of a 64 MiB file, not pinned; net cycles of the whole machine per I/O, means over rounds; \
         floor: `null` at the same options. io_uring with registered buffers and files in both. Direct I/O is to a disk \
         in memory (ext4 on zram): the virtual disk here is too noisy for an interval that says anything.",
    );
    let header = [
        "I/O",
        "fio",
        "its floor",
        "iotoll",
        "its floor",
        "fio − floor",
        "iotoll − floor",
        "iotoll less fio",
        "intervals overlap / difference may be 0",
    ];
    evidence.table(&header, &rows);
    Ok(evidence)
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (engine, depth) in ENGINES {
        for cache in [Cache::Buffered, Cache::Direct] {
            for generator in [Generator::Fio, Generator::Iotoll] {
                cells.extend([false, true].map(|floor| Cell { engine, depth, cache, generator, floor }));
            }
        }
    }
    cells
}

fn measure(bench: &Bench, cell: &Cell, file: &Path) -> anyhow::Result<f64> {
    let (depth, path) = (format!("--iodepth={}", cell.depth), format!("--filename={}", file.display()));
    let size = format!("--size={MEBIBYTES}m");
    let mut options = vec!["--bs=4k", &size, &depth];
    if !cell.floor {
        options.push(&path);
        match cell.cache {
            Cache::Buffered => {
                read_through(file)?;
                options.push("--invalidate=0");
            }
            Cache::Direct => options.push("--direct=1"),
        }
        if cell.engine == "io_uring" {
            // iotoll's default, and another way through the kernel than fio's.
            options.extend(["--fixedbufs=1", "--registerfiles=1"]);
        }
    }
    let job = fio::job(if cell.floor { "null" } else { cell.engine }, bench.options.seconds, &options);
    let finding = match cell.generator {
        Generator::Fio => iotoll::cost(bench, &MEASURING, &[], &[vec!["fio".to_owned()], job].concat())?,
        Generator::Iotoll => iotoll::run(bench, &MEASURING, &job)?,
    };
    iotoll::net(&finding)
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
    fn every_row_has_its_four_runs() {
        let cells = cells();
        assert_eq!(cells.len(), ENGINES.len() * 2 * 4);
        assert!(cells.iter().all(|cell| cells.iter().filter(|other| *other == cell).count() == 1));
    }
}
