//! Unmodified fio under a shell toggle that starts a burner: what the toggle costs each I/O is known.

use super::{COVERAGE, compare, half_widths, holds, lengths, metric};
use crate::prove::bench::Bench;
use crate::prove::evidence::{self, Evidence};
use crate::prove::rounds;
use anyhow::Context;
use model::experiment::Metric;

/// What is burnt, in percent of one CPU.
const BURNT: [f64; 3] = [1.0, 2.0, 5.0];
/// fio does so many I/Os a second whatever happens beside it, so what is burnt has so many I/Os to pay it.
const RATE: f64 = 20_000.0;

pub fn toggled(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let file = bench.file("toggled", 16)?;
    let fio = format!(
        "fio --name=toggled --ioengine=psync --rw=randread --bs=4k --size=16m --invalidate=0 --time_based \
         --runtime=500ms --rate_iops={RATE} --filename={}",
        file.display()
    );
    let pid = bench.path("burner.pid");
    let found = bench.in_rounds(
        &BURNT,
        |_| 0,
        |percent| format!("a burner of {percent} % of a CPU"),
        |bench, percent| {
            let burner = bench.load(&["burner", &percent.to_string()]).join(" ");
            let arms = [
                format!("--candidate-enter={burner} & echo $! > {}", pid.display()),
                format!("--candidate-leave=kill $(cat {})", pid.display()),
                format!("--baseline-cmd={fio}"),
                format!("--candidate-cmd={fio}"),
            ];
            compare(bench, &[], &arms)
        },
    )?;
    let mut evidence = Evidence::default();
    let (mut rows, mut held, mut of) = (Vec::new(), 0, 0);
    for (percent, runs) in BURNT.iter().zip(&found) {
        let mut truths = Vec::new();
        let mut metrics = Vec::new();
        for run in runs {
            let found = metric(run, Metric::CyclesPerIo)?;
            let burnt = percent / 100.0 * run.environment.host.tsc_hertz / RATE;
            truths.push(burnt / found.baseline.context("the baseline has no cost")?);
            metrics.push(found);
        }
        let holding = metrics.iter().zip(&truths).filter(|(found, truth)| holds(found, **truth)).count();
        held += holding;
        of += runs.len();
        rows.push(vec![
            format!("{percent} % of a CPU"),
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
    evidence.note(format!(
        "Unmodified fio, cached 4 KiB reads by psync at {RATE} a second, 500 ms an execution; the candidate's toggle starts \
         a burner of a stated part of a CPU, which these I/Os pay: {:.0} cycles each for 1 %. Truth: that over the \
         baseline's cost in the same experiment; means.",
        found.first().and_then(|runs| runs.first()).map_or(0.0, |run| run.environment.host.tsc_hertz / 100.0 / RATE)
    ));
    evidence.table(&["burnt", "truth", "found", "held", "detected", "half-width", "seconds"], &rows);
    Ok(evidence)
}
