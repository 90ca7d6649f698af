//! Unmodified fio under a shell toggle that starts a burner: what the toggle costs each I/O is known.

use super::{COVERAGE, compare, half_widths, holds, lengths, metric};
use crate::bench::Bench;
use crate::bench::evidence::{self, Evidence};
use crate::bench::rounds;
use anyhow::Context;
use model::comparison::CompareFinding;
use model::experiment::Metric;

/// One kind of experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    pace: Pace,
    /// What is burnt, as a part of the CPU on which fio runs too.
    burnt: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// fio does what it can: what is burnt is taken away from it.
    FlatOut,
    /// fio rests between bursts: it does as much as before, and the machine pays more for it.
    Resting,
}

/// A resting fio has a fifth of the CPU, so that its I/Os pay five times as much for what is burnt.
const CELLS: [Cell; 4] = [
    Cell { pace: Pace::FlatOut, burnt: 0.05 },
    Cell { pace: Pace::FlatOut, burnt: 0.10 },
    Cell { pace: Pace::Resting, burnt: 0.01 },
    Cell { pace: Pace::Resting, burnt: 0.03 },
];

impl Pace {
    fn name(self) -> &'static str {
        match self {
            Self::FlatOut => "flat out",
            Self::Resting => "with rests",
        }
    }

    /// 200 reads are some 200 µs.
    fn options(self) -> &'static str {
        match self {
            Self::FlatOut => "",
            Self::Resting => "--thinktime=1000 --thinktime_blocks=200",
        }
    }
}

pub fn toggled(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let file = bench.file("toggled", 16)?;
    // Both on one CPU: on another one the burner would slow fio where two CPUs share a core, and nobody could say by
    // how much. Here it takes what it burns away from fio, and nothing else.
    let cpu = sys::schedule::allowed_cpus()?.first().copied().unwrap_or(0);
    let pinned = format!("taskset -c {cpu}");
    let fio = |pace: Pace| {
        format!(
            "{pinned} fio --name=toggled --ioengine=psync --rw=randread --bs=4k --size=16m --invalidate=0 --time_based \
             --runtime=500ms {} --filename={}",
            pace.options(),
            file.display()
        )
    };
    let pid = bench.path("burner.pid");
    let found = bench.in_rounds(
        &CELLS,
        |_| 0,
        |cell| format!("fio {}, a burner of {} % of the CPU", cell.pace.name(), cell.burnt * 100.0),
        |bench, cell| {
            let burner = bench.load(&["burner", &(cell.burnt * 100.0).to_string()]).join(" ");
            let arms = [
                format!("--candidate-setup={pinned} {burner} & echo $! > {}", pid.display()),
                format!("--candidate-cleanup=kill $(cat {})", pid.display()),
                format!("--baseline-cmd={}", fio(cell.pace)),
                format!("--candidate-cmd={}", fio(cell.pace)),
            ];
            compare(bench, &[], &arms)
        },
    )?;
    let mut evidence = Evidence::default();
    let (mut rows, mut held, mut of) = (Vec::new(), 0_usize, 0);
    for (cell, runs) in CELLS.iter().zip(&found) {
        let mut truths = Vec::new();
        let mut metrics = Vec::new();
        let mut slower = Vec::new();
        for run in runs {
            truths.push(truth(run, cell.burnt)?);
            metrics.push(metric(run, Metric::CyclesPerIo)?);
            slower.extend(metric(run, Metric::Iops)?.change);
        }
        let holding = metrics.iter().zip(&truths).filter(|(found, truth)| holds(found, **truth)).count();
        held += holding;
        of += runs.len();
        rows.push(vec![
            format!("fio {}, {:.0} % of the CPU", cell.pace.name(), cell.burnt * 100.0),
            evidence::percent(&rounds::mean(&slower)),
            evidence::percent(&rounds::mean(&truths)),
            evidence::percent(&rounds::mean(&metrics.iter().filter_map(|found| found.change).collect::<Vec<_>>())),
            format!("{holding} of {}", runs.len()),
            format!("{} of {}", metrics.iter().filter(|found| found.detected).count(), runs.len()),
            half_widths(&metrics),
            lengths(runs),
        ]);
    }
    let text = format!("cycles_per_io: the interval holds the truth in {held} of {of} experiments");
    evidence.criterion(held as f64 >= COVERAGE * of as f64, text);
    evidence.note(
        "Unmodified fio, cached 4 KiB reads by psync, 500 ms an execution, and in the candidate a burner of a stated part \
         of the CPU's time, both on one CPU. Change of cycles per I/O; truth: what is burnt in the time of one I/O of the \
         candidate, over the baseline's cost in the same experiment; means. Flat out, IOPS are the other side of the same \
         coin; with rests they hardly move, and only the cost tells.",
    );
    let header = ["", "IOPS", "truth", "found", "held", "detected", "half-width", "seconds"];
    evidence.table(&header, &rows);
    Ok(evidence)
}

/// What the burner adds to an I/O, as a part of what it costs.
fn truth(run: &CompareFinding, burnt: f64) -> anyhow::Result<f64> {
    let iops = metric(run, Metric::Iops)?.candidate.context("the candidate has no IOPS")?;
    let cost = metric(run, Metric::CyclesPerIo)?.baseline.context("the baseline has no cost")?;
    Ok(burnt * run.environment.host.tsc_hertz / iops / cost)
}
