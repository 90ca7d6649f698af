//! Unmodified fio under a shell toggle that starts a burner with a known cost per I/O.

use super::{COVERAGE, compare, half_widths, holds, lengths, metric};
use crate::bench::Bench;
use crate::bench::evidence::{self, Evidence};
use crate::bench::rounds;
use anyhow::Context;
use model::comparison::CompareFinding;
use model::experiment::Metric;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    pace: Pace,
    /// The burner's fraction of the CPU on which fio runs too.
    burnt: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// fio runs at full speed: the burner takes CPU time from it.
    FlatOut,
    /// fio pauses between bursts: it does as much as before, and the machine pays more for it.
    Resting,
}

/// A pausing fio uses a fifth of the CPU, so its I/Os pay five times as much for the burner.
const CELLS: [Cell; 4] = [
    Cell { pace: Pace::FlatOut, burnt: 0.05 },
    Cell { pace: Pace::FlatOut, burnt: 0.10 },
    Cell { pace: Pace::Resting, burnt: 0.01 },
    Cell { pace: Pace::Resting, burnt: 0.03 },
];

impl Pace {
    fn name(self) -> &'static str {
        match self {
            Self::FlatOut => "full speed",
            Self::Resting => "with pauses",
        }
    }

    /// 200 reads take some 200 µs.
    fn options(self) -> &'static str {
        match self {
            Self::FlatOut => "",
            Self::Resting => "--thinktime=1000 --thinktime_blocks=200",
        }
    }
}

pub fn toggled(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let file = bench.file("toggled", 16)?;
    // Both run on one CPU: on another, the burner would slow fio by an unknown amount if the two CPUs share a core.
    // Here it only takes its share away from fio.
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
        |cell| format!("fio {}, burner with {} % of the CPU", cell.pace.name(), cell.burnt * 100.0),
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
    let text = format!("cycles_per_io: the interval contains the true change in {held} of {of} experiments");
    evidence.criterion(held as f64 >= COVERAGE * of as f64, text);
    evidence.note(
        "Unmodified fio, cached 4 KiB reads by psync, 500 ms per execution; in the candidate, a burner with a fixed share \
         of the CPU, both on one CPU. Change of cycles per I/O; true change: the cycles burnt per I/O of the \
         candidate divided by the baseline's cost in the same experiment; means. At full speed, IOPS fall as the cost \
         rises; with pauses IOPS hardly change, and only the cost shows the burner.",
    );
    let header = ["", "IOPS", "true change", "found", "in interval", "detected", "half-width", "seconds"];
    evidence.table(&header, &rows);
    Ok(evidence)
}

/// The burner's cost per I/O as a fraction of the baseline's cost.
fn truth(run: &CompareFinding, burnt: f64) -> anyhow::Result<f64> {
    let iops = metric(run, Metric::Iops)?.candidate.context("the candidate has no IOPS")?;
    let cost = metric(run, Metric::CyclesPerIo)?.baseline.context("the baseline has no cost")?;
    Ok(burnt * run.environment.host.tsc_hertz / iops / cost)
}
