//! Why the floors of fio's psync do not add up: between two system calls its own code costs more than in `null`, and the
//! call that follows costs more than one that follows another call. Both are measured inside an unmodified fio, by a
//! pread that is preloaded and reads eight times; see its source.

use super::bench::{Bench, read_through};
use super::evidence::{self, Evidence};
use super::iotoll::{self, Measuring};
use super::memory_disk::MemoryDisk;
use super::{fio, rounds};
use anyhow::{Context, ensure};
use std::path::Path;

const SHIM: &str = include_str!("cold_call/repeated_pread.c");
const MEASURING: Measuring = Measuring { meters: "thread", background_millis: 200, out: None };
const MEBIBYTES: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    /// fio's psync.
    Fio,
    /// A loop around libc's pread.
    Bare,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    program: Program,
    direct: bool,
}

const CELLS: [Cell; 4] = [
    Cell { program: Program::Fio, direct: false },
    Cell { program: Program::Bare, direct: false },
    Cell { program: Program::Fio, direct: true },
    Cell { program: Program::Bare, direct: true },
];

/// Cycles of the TSC, means.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Found {
    /// From the end of a read to the next: the program's own code.
    between: f64,
    /// All that one I/O costs in `null`: the same code, with no read between. 0 of the loop.
    null: f64,
    /// A read after the program's own code.
    first: f64,
    /// A read after a read.
    others: f64,
    /// Part of the I/Os that was left out, because something in it took too long.
    left_out: f64,
}

pub fn prove(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let disk = MemoryDisk::mount(bench.path("disk"), 2 * MEBIBYTES)?;
    let cached = bench.file("cached", MEBIBYTES)?;
    let direct = bench.file_at(disk.path().join("direct"), MEBIBYTES)?;
    let source = bench.path("repeated_pread.c");
    std::fs::write(&source, SHIM)?;
    let shim = bench.path("repeated_pread.so");
    bench.output(bench.command("cc").args(["-O2", "-shared", "-fPIC", "-o"]).arg(&shim).arg(&source))?;
    let named = |cell: &Cell| format!("{:?}, {}", cell.program, cache(*cell));
    let found = bench.in_rounds(
        &CELLS,
        |_| 0,
        named,
        |bench, cell| measure(bench, *cell, if cell.direct { &direct } else { &cached }, &shim),
    )?;
    let mut evidence = Evidence::default();
    let rows = CELLS.iter().zip(&found).map(|(cell, found)| row(*cell, found)).collect::<Vec<_>>();
    evidence.note(
        "An unmodified fio (psync), and a loop around libc's pread, with a pread preloaded that reads eight times: TSC cycles \
         per I/O, means over rounds. Direct I/O is to a disk in memory (ext4 on zram).",
    );
    let header = [
        "program",
        "own code between reads",
        "the same in null",
        "beyond null",
        "read after own code",
        "read after a read",
        "dearer by",
        "beyond null and dearer",
        "I/Os left out",
    ];
    evidence.table(&header, &rows);
    Ok(evidence)
}

fn row(cell: Cell, found: &[Found]) -> Vec<String> {
    let mean = |by: fn(&Found) -> f64| evidence::interval(&rounds::mean(&found.iter().map(by).collect::<Vec<_>>()), 0);
    let program = match cell.program {
        Program::Fio => "fio",
        Program::Bare => "loop",
    };
    let left_out = rounds::mean(&found.iter().map(|found| found.left_out * 100.0).collect::<Vec<_>>()).value;
    vec![
        format!("{program}, {}", cache(cell)),
        mean(|found| found.between),
        mean(|found| found.null),
        mean(|found| found.between - found.null),
        mean(|found| found.first),
        mean(|found| found.others),
        mean(|found| found.first - found.others),
        mean(|found| found.between - found.null + found.first - found.others),
        format!("{left_out:.1} %"),
    ]
}

fn cache(cell: Cell) -> &'static str {
    if cell.direct { "direct" } else { "buffered" }
}

fn measure(bench: &Bench, cell: Cell, file: &Path, shim: &Path) -> anyhow::Result<Found> {
    let said = bench.path("cold-call");
    if said.exists() {
        std::fs::remove_file(&said)?;
    }
    if !cell.direct {
        read_through(file)?;
    }
    let path = file.display().to_string();
    let length = bench.options.seconds.to_string();
    let (size, name) = (format!("--size={MEBIBYTES}m"), format!("--filename={path}"));
    let mode = if cell.direct { "--direct=1" } else { "--invalidate=0" };
    let (words, null) = match cell.program {
        Program::Fio => {
            let job = |engine, options: &[&str]| fio::job(engine, bench.options.seconds, options);
            let quiet = ["fio".to_owned(), "--output=/dev/null".to_owned()];
            let null = [vec!["fio".to_owned()], job("null", &["--bs=4k", &size])].concat();
            let null = iotoll::cost(bench, &MEASURING, &[], &null)?;
            let null = iotoll::job(&null)?.thread_cycles_per_io.context("the threads' own time is not known")?;
            ([quiet.to_vec(), job("psync", &["--bs=4k", &size, &name, mode])].concat(), null)
        }
        Program::Bare => {
            let how = if cell.direct { "direct" } else { "cached" };
            (bench.load(&["bare-pread", &path, &length, "4096", "called", how]), 0.0)
        }
    };
    let (program, rest) = words.split_first().context("a command has a program")?;
    bench.output(bench.command(program).args(rest).env("LD_PRELOAD", shim).env("COLD_CALL_OUT", &said))?;
    let text =
        std::fs::read_to_string(&said).context("the preloaded pread was not called: is it a dynamic program?")?;
    parse(&text, null)
}

fn parse(text: &str, null: f64) -> anyhow::Result<Found> {
    let numbers: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let [between, first, others, left_out] = numbers[..] else { anyhow::bail!("four numbers, not '{}'", text.trim()) };
    ensure!(left_out < 0.5, "more than half of the I/Os took too long: a quieter machine");
    Ok(Found { between, null, first, others, left_out })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_preloaded_pread_says_is_read() {
        let found = parse("  1800.50   7500.00  7160.25  0.012000\n", 420.5).unwrap();
        assert_eq!(found, Found { between: 1800.5, null: 420.5, first: 7500.0, others: 7160.25, left_out: 0.012 });
        assert_eq!(row(CELLS[2], &[found])[3..8], ["1380", "7500", "7160", "340", "1720"]);
        assert!(parse("1 2 3\n", 0.0).is_err());
        assert!(parse("1 2 3 0.9\n", 0.0).is_err());
    }
}
