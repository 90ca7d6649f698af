//! A part of why the floors of fio's psync do not add up: its own code costs more between two system calls than where there are none,
//! and the call that follows it costs more than one that follows another call. Both are measured inside fio and inside the plainest loop, by
//! a pread that is preloaded into both; see its source. A call of libc's function it replaces in both, so what that costs is not in it.

use super::bench::{Bench, read_through};
use super::evidence::{self, Evidence};
use super::memory_disk::MemoryDisk;
use super::{fio, rounds};
use anyhow::{Context, ensure};
use std::path::Path;

const SHIM: &str = include_str!("cold_call/repeated_pread.c");
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
    /// The program's own code between two reads that are none.
    alone: f64,
    /// The same between two reads.
    between: f64,
    /// A read after the program's own code.
    first: f64,
    /// A read after a read.
    second: f64,
    /// The largest part of the I/Os that was left out, because something in them took too long.
    left_out: f64,
}

impl Found {
    /// What the program's own code costs more because it is between system calls.
    fn code(&self) -> f64 {
        self.between - self.alone
    }

    /// What a read costs more because it is between the program's own code.
    fn read(&self) -> f64 {
        self.first - self.second
    }

    fn both(&self) -> f64 {
        self.code() + self.read()
    }
}

/// A column's name, and what is in it.
type Column = (&'static str, fn(&Found) -> f64);

const COLUMNS: [Column; 7] = [
    ("own code, no read between", |found| found.alone),
    ("own code between reads", |found| found.between),
    ("dearer by", Found::code),
    ("read after a read", |found| found.second),
    ("read after own code", |found| found.first),
    ("dearer by", Found::read),
    ("both", Found::both),
];

pub fn prove(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let disk = MemoryDisk::mount(bench.path("disk"), 2 * MEBIBYTES)?;
    let cached = bench.file("cached", MEBIBYTES)?;
    let direct = bench.file_at(disk.path().join("direct"), MEBIBYTES)?;
    // Who reads past the cache finds nothing there.
    rustix::fs::fadvise(&std::fs::File::open(&direct)?, 0, None, rustix::fs::Advice::DontNeed)?;
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
    let mut rows = Vec::new();
    for (pair, cells) in found.chunks_exact(2).zip(CELLS.chunks_exact(2)) {
        let ([fio, bare], Some(cell)) = (pair, cells.first()) else { continue };
        rows.push(row(&format!("fio, {}", cache(*cell)), fio, None));
        rows.push(row(&format!("loop, {}", cache(*cell)), bare, None));
        rows.push(row("fio less the loop", fio, Some(bare)));
        let both = rounds::mean(&differences(fio, bare, Found::both));
        let text =
            format!("{}: in fio, both are dearer than in the loop by {}", cache(*cell), evidence::interval(&both, 0));
        evidence.criterion(both.low.is_some_and(|low| low > 0.0), text);
    }
    evidence.note(
        "fio (psync), and a loop around libc's pread, both with a pread preloaded that looks at the TSC: cycles per I/O, means over rounds. \
         Direct I/O is to a disk in memory (ext4 on zram).",
    );
    let header = ["program"].into_iter().chain(COLUMNS.map(|(name, _)| name)).chain(["left out"]);
    evidence.table(&header.collect::<Vec<_>>(), &rows);
    Ok(evidence)
}

/// Each column with its interval; where there is another program, less what it has, round by round.
fn row(name: &str, found: &[Found], less: Option<&[Found]>) -> Vec<String> {
    let values = COLUMNS.map(|(_, of)| match less {
        Some(less) => differences(found, less, of),
        None => found.iter().map(of).collect(),
    });
    let cells = values.iter().map(|values| evidence::interval(&rounds::mean(values), 0));
    let left_out = found.iter().map(|found| found.left_out).fold(0.0, f64::max) * 100.0;
    let left_out = if less.is_some() { String::new() } else { format!("{left_out:.1} %") };
    [name.to_owned()].into_iter().chain(cells).chain([left_out]).collect()
}

fn differences(one: &[Found], other: &[Found], of: fn(&Found) -> f64) -> Vec<f64> {
    let [one, other] = [one, other].map(|found| found.iter().map(of).collect::<Vec<_>>());
    rounds::differences(&one, &other)
}

fn cache(cell: Cell) -> &'static str {
    if cell.direct { "direct" } else { "buffered" }
}

fn measure(bench: &Bench, cell: Cell, file: &Path, shim: &Path) -> anyhow::Result<Found> {
    if !cell.direct {
        read_through(file)?;
    }
    let path = file.display().to_string();
    let (size, name) = (format!("--size={MEBIBYTES}m"), format!("--filename={path}"));
    let words = match cell.program {
        Program::Fio => {
            let mode = if cell.direct { "--direct=1" } else { "--invalidate=0" };
            let job = fio::job("psync", bench.options.seconds, &["--bs=4k", &size, &name, mode]);
            [vec!["fio".to_owned(), "--output=/dev/null".to_owned()], job].concat()
        }
        Program::Bare => {
            let how = if cell.direct { "direct" } else { "cached" };
            bench.load(&["bare-pread", &path, &bench.options.seconds.to_string(), "4096", how])
        }
    };
    let run = |reads| preloaded(bench, &words, shim, reads);
    let [[alone, _, _, skipped], [between, _, _, one], [_, first, second, two]] = [run(0)?, run(1)?, run(2)?];
    Ok(Found { alone, between, first, second, left_out: skipped.max(one).max(two) })
}

/// Between reads, the first read, the second, and the part that was left out, with so many reads instead of one.
fn preloaded(bench: &Bench, words: &[String], shim: &Path, reads: u32) -> anyhow::Result<[f64; 4]> {
    let said = bench.path("cold-call");
    if said.exists() {
        std::fs::remove_file(&said)?;
    }
    let (program, rest) = words.split_first().context("a command has a program")?;
    let mut command = bench.command(program);
    command.args(rest).env("LD_PRELOAD", shim).env("COLD_CALL_OUT", &said).env("COLD_CALL_READS", reads.to_string());
    bench.output(&mut command)?;
    let text = std::fs::read_to_string(&said).context("the preloaded pread was called less than 4,096 times")?;
    parse(&text)
}

fn parse(text: &str) -> anyhow::Result<[f64; 4]> {
    let numbers: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let Ok(numbers) = <[f64; 4]>::try_from(numbers) else { anyhow::bail!("four numbers, not '{}'", text.trim()) };
    ensure!(numbers[3] < 0.5, "more than half of the I/Os took longer than the preloaded pread keeps (40,000 cycles)");
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_preloaded_pread_says_is_read() {
        assert_eq!(parse("  1800.50   7500.00  7160.25  0.012000\n").unwrap(), [1800.5, 7500.0, 7160.25, 0.012]);
        assert!(parse("1 2 3\n").is_err());
        assert!(parse("1 2 3 0.9\n").is_err());
    }

    #[test]
    fn a_row_is_of_one_program_or_of_the_difference_of_two() {
        let fio = Found { alone: 400.0, between: 900.0, first: 2600.0, second: 2500.0, left_out: 0.01 };
        let bare = Found { alone: 90.0, between: 120.0, first: 2510.0, second: 2500.0, left_out: 0.02 };
        assert_eq!(row("fio", &[fio], None), ["fio", "400", "900", "500", "2500", "2600", "100", "600", "1.0 %"]);
        assert_eq!(row("less", &[fio], Some(&[bare])), ["less", "310", "780", "470", "0", "90", "90", "560", ""]);
    }
}
