//! Unmodified commands that take turns in slices: against whole executions, against themselves, and with a known cost.

use super::{COVERAGE, FALSE_SHARE, METRICS, POWER, compare, half_widths, holds, lengths, metric};
use crate::bench::Bench;
use crate::bench::evidence::{self, Evidence};
use crate::bench::iotoll::{Measuring, cost, net};
use crate::bench::rounds;
use anyhow::{Context, ensure};
use model::comparison::CompareFinding;
use model::comparison::finding::MetricFinding;
use model::experiment::Metric;
use model::stats::Estimate;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Fio(&'static str),
    /// Writes and syncs each block, as a database does.
    Syncing,
    Iperf3,
    Dd,
}

const ALL: [Program; 6] = [
    Program::Fio("psync"),
    Program::Fio("libaio"),
    Program::Fio("io_uring"),
    Program::Iperf3,
    Program::Dd,
    Program::Syncing,
];
const AGAINST_ITSELF: [Program; 3] = [Program::Fio("psync"), Program::Fio("io_uring"), Program::Iperf3];
/// Longest median half-width of identical arms.
const HALF_WIDTH_FIO: f64 = 0.02;
const HALF_WIDTH_IPERF3: f64 = 0.035;
/// Blocks of dd in a whole execution: about 2 s.
const BLOCKS: u64 = 2_000_000;
const BLOCK: u64 = 65_536;
/// Parts of an I/O's cost that are planted.
const PLANTED: [f64; 2] = [0.05, 0.10];
/// Burnt in each I/O of both arms, because beginning to burn costs more than the first cycles burnt.
const BOTH_CYCLES: f64 = 200.0;

impl Program {
    fn name(self) -> String {
        match self {
            Self::Fio(engine) => format!("fio {engine}"),
            Self::Syncing => "fio, write and fsync".to_owned(),
            Self::Iperf3 => "iperf3, TCP".to_owned(),
            Self::Dd => "dd".to_owned(),
        }
    }

    /// Its words, to run this long; for iperf3, to the server with this name.
    fn words(self, file: &Path, seconds: u64, server: &str) -> String {
        let file = file.display();
        match self {
            Self::Fio(engine) => format!(
                "fio --name=sliced --ioengine={engine} --rw=randread --bs=4k --size=16m --invalidate=0 --time_based \
                 --runtime={seconds} --filename={file}"
            ),
            Self::Syncing => format!(
                "fio --name=sliced --ioengine=psync --rw=write --bs=4k --size=16m --fsync=1 --time_based \
                 --runtime={seconds} --filename={file}"
            ),
            Self::Iperf3 => format!("iperf3 -c 127.0.0.1 -p {{{server}.port}} -t {seconds}"),
            Self::Dd => format!("dd if=/dev/zero of=/dev/null bs={BLOCK}"),
        }
    }

    /// Flags that compare it with itself in slices.
    fn against_itself(self, file: &Path) -> Vec<String> {
        let arm = |name: &str, server| format!("--{name}-cmd={}", self.words(file, 600, server));
        let mut flags = vec!["--slices=50ms".to_owned(), arm("baseline", "one"), arm("candidate", "two")];
        match self {
            // An arm that is identical to another is refused, and iperf3's server has one client at a time.
            Self::Iperf3 => flags.extend(["one", "two"].map(|name| format!("--service={name}=iperf3 -s -p {{port}}"))),
            Self::Fio(_) | Self::Syncing | Self::Dd => {
                flags.truncate(1);
                flags.extend(["--aa".to_owned(), "--".to_owned()]);
                flags.extend(self.words(file, 600, "").split(' ').map(str::to_owned));
            }
        }
        flags
    }

    /// Net cycles per I/O of one whole execution.
    fn executed(self, bench: &Bench, file: &Path) -> anyhow::Result<f64> {
        let measuring = Measuring { meters: "default", background_millis: 1000, out: None };
        let mut words: Vec<String> = self.words(file, 2, "server").split(' ').map(str::to_owned).collect();
        let mut flags = Vec::new();
        match self {
            Self::Fio(_) | Self::Syncing => {}
            Self::Iperf3 => flags.push("--service=server=iperf3 -s -p {port}".to_owned()),
            Self::Dd => {
                words.push(format!("count={BLOCKS}"));
                // Each block is read and written.
                flags.extend([format!("--ios={}", 2 * BLOCKS), format!("--bytes={}", 2 * BLOCKS * BLOCK)]);
            }
        }
        net(&cost(bench, &measuring, &flags, &words)?)
    }
}

/// Net cycles per I/O of a program in slices, and of whole executions before and after.
struct Sliced {
    sliced: f64,
    executed: f64,
    /// The part of the cost that the report says counting takes.
    counting: f64,
}

/// Cost per I/O in slices, relative to whole executions of the same program.
pub fn bias(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let file = bench.file("sliced", 16)?;
    let found = bench.in_rounds(
        &ALL,
        |_| 0,
        |program| program.name(),
        |bench, program| {
            let earlier = program.executed(bench, &file)?;
            let sliced = compare(bench, &[], &program.against_itself(&file))?;
            let later = program.executed(bench, &file)?;
            let cost = metric(&sliced, Metric::CyclesPerIo)?;
            let (baseline, candidate) =
                cost.baseline.zip(cost.candidate).context("the sliced program has no cost per I/O")?;
            // What counting takes is said beside the cost.
            let counting = sliced.counting_fraction.unwrap_or(0.0);
            let (sliced, executed) = (f64::midpoint(baseline, candidate), f64::midpoint(earlier, later));
            Ok(Sliced { sliced, executed, counting })
        },
    )?;
    let mut evidence = Evidence::default();
    let mut rows = Vec::new();
    for (program, runs) in ALL.iter().zip(&found) {
        let of = |cost: fn(&Sliced) -> f64| runs.iter().map(cost).collect::<Vec<f64>>();
        let (sliced, executed) = (of(|run| run.sliced), of(|run| run.executed));
        let ratio = rounds::ratio(&sliced, &executed);
        let without: Vec<f64> = runs.iter().map(|run| run.sliced * (1.0 - run.counting)).collect();
        let without = rounds::ratio(&without, &executed);
        let counting = rounds::mean(&of(|run| run.counting)).value;
        let less = if counting > 0.0 { ", less the part that the report says counting takes," } else { "" };
        let text = format!("{}: slices{less} ÷ whole executions is {}", program.name(), evidence::change(&without));
        evidence.criterion(contains_one(&without), text);
        rows.push(vec![
            program.name(),
            evidence::number(Some(rounds::median(&sliced)), 0),
            evidence::number(Some(rounds::median(&executed)), 0),
            evidence::change(&ratio),
            if counting > 0.0 { format!("{:.0} %", counting * 100.0) } else { "–".to_owned() },
        ]);
    }
    evidence.note(
        "Cycles per I/O of unmodified programs: both arms of a comparison with itself in slices of 50 ms, and the mean of \
         two whole executions of 2 s, before and after it (`iotoll cost`); medians over rounds, and the ratio with its interval over rounds.",
    );
    let header = ["program", "in slices", "whole execution", "slices ÷ execution", "counting, by the report"];
    evidence.table(&header, &rows);
    Ok(evidence)
}

fn contains_one(ratio: &Estimate) -> bool {
    ratio.low.is_some_and(|low| low <= 1.0) && ratio.high.is_some_and(|high| high >= 1.0)
}

/// Unmodified programs against themselves.
pub fn same(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let file = bench.file("sliced", 16)?;
    let found = bench.in_rounds(
        &AGAINST_ITSELF,
        |_| 0,
        |program| program.name(),
        |bench, program| compare(bench, &[], &program.against_itself(&file)),
    )?;
    let mut evidence = Evidence::default();
    let mut rows = Vec::new();
    for which in METRICS {
        // All programs together: a handful of experiments of one says nothing about a rate of 5 %.
        let all: Vec<&MetricFinding> =
            found.iter().flatten().map(|run| metric(run, which)).collect::<Result<_, _>>()?;
        let (different, of) = (all.iter().filter(|found| found.detected).count(), all.len());
        let most = (FALSE_SHARE * of as f64).floor();
        let text = format!("{}: {different} of {of} are called different, at most {most:.0}", which.name());
        evidence.criterion(different as f64 <= most, text);
    }
    for (program, runs) in AGAINST_ITSELF.iter().zip(&found) {
        for which in METRICS {
            let metrics: Vec<&MetricFinding> = runs.iter().map(|run| metric(run, which)).collect::<Result<_, _>>()?;
            let different = metrics.iter().filter(|found| found.detected).count();
            let (name, of) = (program.name(), runs.len());
            let longest = if *program == Program::Iperf3 { HALF_WIDTH_IPERF3 } else { HALF_WIDTH_FIO };
            let widths = metrics.iter().filter_map(|found| Some((found.high? - found.low?) / 2.0));
            let median = rounds::median(&widths.collect::<Vec<_>>());
            let text = format!(
                "{name}, {}: median half-width ±{:.1} %, at most ±{:.1} %",
                which.name(),
                median * 100.0,
                longest * 100.0
            );
            evidence.criterion(median <= longest, text);
            let changes: Vec<f64> = metrics.iter().filter_map(|found| found.change).collect();
            rows.push(vec![
                name,
                which.name().to_owned(),
                format!("{different} of {of}"),
                half_widths(&metrics),
                evidence::percent(&rounds::mean(&changes)),
                lengths(runs),
            ]);
        }
    }
    evidence.note(format!(
        "Unmodified programs against themselves in slices of 50 ms, experiments of at most {} s.",
        bench.options.seconds
    ));
    let header = ["program", "metric", "called different", "half-width: median [5th, 95th]", "mean change", "seconds"];
    evidence.table(&header, &rows);
    Ok(evidence)
}

/// A library that burns cycles in each pread of fio.
pub fn known_cost(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let file = bench.file("sliced", 16)?;
    let library = burning_pread(bench)?;
    let fio = |cycles: f64, seconds, notes: &Path| {
        let words = Program::Fio("psync").words(&file, seconds, "");
        let (library, notes) = (library.display(), notes.display());
        format!("env LD_PRELOAD={library} BURN_CYCLES={cycles:.0} BURN_NOTES={notes} {words}")
    };
    let measuring = Measuring { meters: "default", background_millis: 1000, out: None };
    let words: Vec<String> =
        fio(BOTH_CYCLES, 3, &Burnt::notes(bench, "first")?).split(' ').map(str::to_owned).collect();
    let each = net(&cost(bench, &measuring, &[], &words)?)?;
    let found = bench.in_rounds(
        &PLANTED,
        |_| 0,
        |part| format!("{:.0} % of an I/O", part * 100.0),
        |bench, part| {
            let arms = [("baseline", 0.0), ("candidate", part * each)];
            let notes = [Burnt::notes(bench, "baseline")?, Burnt::notes(bench, "candidate")?];
            let flags = arms.iter().zip(&notes);
            let flags =
                flags.map(|((arm, more), notes)| format!("--{arm}-cmd={}", fio(BOTH_CYCLES + more, 600, notes)));
            let flags: Vec<String> = std::iter::once("--slices=50ms".to_owned()).chain(flags).collect();
            let run = compare(bench, &[], &flags)?;
            let [baseline, candidate] = [Burnt::read(&notes[0])?, Burnt::read(&notes[1])?];
            Ok((run, candidate.each()? - baseline.each()?))
        },
    )?;
    let mut evidence = Evidence::default();
    let mut rows = Vec::new();
    for (part, runs) in PLANTED.iter().zip(&found) {
        let metrics: Vec<&MetricFinding> =
            runs.iter().map(|(run, _)| metric(run, Metric::CyclesPerIo)).collect::<Result<_, _>>()?;
        let truths: Vec<f64> = runs.iter().map(|(run, cycles)| truth(run, *cycles)).collect::<anyhow::Result<_>>()?;
        let holding = metrics.iter().zip(&truths).filter(|(found, truth)| holds(found, **truth)).count();
        let detected = metrics.iter().filter(|found| found.detected).count();
        let (name, of) = (format!("{:.0} %", part * 100.0), runs.len());
        let text = format!("{name}: the interval contains the planted cost in {holding} of {of}");
        evidence.criterion(holding as f64 >= COVERAGE * of as f64, text);
        let text = format!("{name}: the planted cost is detected in {detected} of {of}");
        evidence.criterion(detected as f64 >= POWER * of as f64, text);
        let cycles: Vec<f64> = runs.iter().map(|(_, cycles)| *cycles).collect();
        rows.push(vec![
            name,
            evidence::number(Some(rounds::median(&cycles)), 0),
            evidence::percent(&rounds::mean(&truths)),
            evidence::percent(&rounds::mean(&metrics.iter().filter_map(|found| found.change).collect::<Vec<_>>())),
            format!("{holding} of {of}"),
            format!("{detected} of {of}"),
            half_widths(&metrics),
            lengths(runs.iter().map(|(run, _)| run)),
        ]);
    }
    evidence.note(format!(
        "Unmodified fio, cached 4 KiB reads by psync, in slices of 50 ms. A preloaded library burns {BOTH_CYCLES} cycles of the \
         time-stamp counter in each pread of both arms, and a part of an I/O's cost ({each:.0} cycles) more in the candidate; it \
         notes how many it really burns. Change of cycles per I/O; means."
    ));
    let header = [
        "planted",
        "cycles",
        "true change",
        "found",
        "in interval",
        "detected",
        "half-width: median [5th, 95th]",
        "seconds",
    ];
    evidence.table(&header, &rows);
    Ok(evidence)
}

/// The burnt cycles as a fraction of the baseline's cost in the same experiment.
fn truth(run: &CompareFinding, burnt: f64) -> anyhow::Result<f64> {
    Ok(burnt / metric(run, Metric::CyclesPerIo)?.baseline.context("the baseline has no cost")?)
}

/// What the library noted: cycles burnt, and how often.
struct Burnt {
    cycles: u64,
    times: u64,
}

impl Burnt {
    /// An empty file for the notes.
    fn notes(bench: &Bench, name: &str) -> anyhow::Result<PathBuf> {
        let path = bench.path(&format!("burnt-{name}"));
        std::fs::write(&path, [0; 16])?;
        Ok(path)
    }

    fn read(notes: &Path) -> anyhow::Result<Self> {
        let bytes = std::fs::read(notes)?;
        let number = |from: usize| -> anyhow::Result<u64> {
            let bytes = bytes.get(from..from + 8).context("the notes are cut short")?;
            Ok(u64::from_ne_bytes(bytes.try_into()?))
        };
        Ok(Self { cycles: number(0)?, times: number(8)? })
    }

    fn each(&self) -> anyhow::Result<f64> {
        ensure!(self.times > 0, "the library burnt nothing");
        Ok(self.cycles as f64 / self.times as f64)
    }
}

/// Compiles the library: pread spins on the time-stamp counter until BURN_CYCLES have passed, as engine spin does, and notes how many
/// passed really, because a loop ends a part of a turn late. A burning that was interrupted or frozen is not noted.
fn burning_pread(bench: &Bench) -> anyhow::Result<PathBuf> {
    const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <x86intrin.h>

static unsigned long long cycles;
static unsigned long long nowhere[2];
static unsigned long long *notes = nowhere;
static ssize_t (*next)(int, void *, size_t, off64_t);

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("BURN_CYCLES"), *path = getenv("BURN_NOTES");
    cycles = text ? strtoull(text, 0, 10) : 0;
    next = (ssize_t (*)(int, void *, size_t, off64_t))dlsym(RTLD_NEXT, "pread64");
    int file = path ? open(path, O_RDWR) : -1;
    void *mapped = mmap(0, sizeof nowhere, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED)
        notes = mapped;
}

ssize_t pread64(int fd, void *buffer, size_t size, off64_t offset) {
    _mm_lfence();
    unsigned long long begun = __rdtsc();
    while (__rdtsc() - begun < cycles) {
    }
    /* After the branch that leaves the loop, which the processor predicts for some lengths only. */
    _mm_lfence();
    unsigned long long passed = __rdtsc() - begun;
    if (passed < cycles + 1000) {
        notes[0] += passed;
        notes[1] += 1;
    }
    return next(fd, buffer, size, offset);
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset) { return pread64(fd, buffer, size, offset); }
"#;
    ensure!(cfg!(target_arch = "x86_64"), "the library reads the time-stamp counter of x86-64");
    let (source, library) = (bench.path("burning_pread.c"), bench.path("burning_pread.so"));
    std::fs::write(&source, SOURCE)?;
    let mut compiler = bench.command("cc");
    bench.output(compiler.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl"))?;
    Ok(library)
}
