//! What keeping accounts adds to a switch and a wake-up: two threads on one CPU that wake each other, with accounts and without.

use super::charged;
use crate::bench::evidence::{self, Evidence};
use crate::bench::iotoll::{self, Measuring};
use crate::bench::{Bench, rounds};
use anyhow::Context;
use model::meter::Meter;
use model::record::Mode;

/// Approximate rate of one CPU of a virtual machine, in a second.
const TRIPS_PER_SECOND: f64 = 200_000.0;
/// Pairs for each round of the validation, because the effect is small.
const PAIRS: usize = 2;
/// The meters of both measurements, and those of an ordinary one.
const METERS: [&str; 3] = ["accounts", "thread", "default"];

pub fn measure(bench: &mut Bench, evidence: &mut Evidence) -> anyhow::Result<()> {
    let trips = (TRIPS_PER_SECOND * bench.options.seconds / 2.0).round();
    let cpu = sys::schedule::online_cpus()?.last().copied().unwrap_or(0).to_string();
    let found = bench.in_this_many_rounds(
        PAIRS * bench.options.rounds,
        &METERS,
        |_| 0,
        |meters| format!("two threads that wake each other, --meters {meters}"),
        |bench, meters| {
            let (out, file) = (bench.path("kept"), bench.path("nanos"));
            let measuring = Measuring { meters, background_millis: 200, out: Some(out.clone()) };
            let load = bench.load(&["pipe-pair", &cpu, &trips.to_string(), &file.display().to_string()]);
            iotoll::cost(bench, &measuring, &["--ios=1".to_owned()], &load)?;
            let kept = kept_part(&out);
            std::fs::remove_dir_all(&out)?;
            Ok((crate::load::read_nanos(&file)? / trips / 2.0, kept?))
        },
    )?;
    let [kept, without, ordinary] = found.as_slice() else { return Ok(()) };
    let nanos = |runs: &[(f64, f64)]| runs.iter().map(|(nanos, _)| *nanos).collect::<Vec<f64>>();
    let [with, without, ordinary_nanos] = [kept, without, ordinary].map(|runs| nanos(runs));
    let more = rounds::mean(&rounds::differences(&with, &without));
    let slower =
        rounds::mean(&with.iter().zip(&without).map(|(with, without)| with / without - 1.0).collect::<Vec<_>>());
    let in_ordinary = rounds::mean(
        &ordinary_nanos.iter().zip(&without).map(|(one, without)| one / without - 1.0).collect::<Vec<_>>(),
    );
    let part = rounds::mean(&ordinary.iter().map(|(_, kept)| *kept).collect::<Vec<f64>>());
    let cpus = std::thread::available_parallelism()?.get() as f64;
    evidence.note(
        "Two threads on one CPU that wake each other through pipes, so each switch comes with a wake-up: their CPU time, with accounts all the \
         time, without, and with default meters.",
    );
    evidence.table(
        &[
            "switches per second of that CPU",
            "ns per switch",
            "ns more with accounts",
            "more, % of that CPU",
            "% of the machine",
            "accounts are kept by default, % of the time",
            "more by default, %",
        ],
        &[vec![
            evidence::rate(1e9 / rounds::mean(&without).value),
            format!("{:.0}", rounds::mean(&without).value),
            evidence::interval(&more, 0),
            evidence::interval(&rounds::scaled(&slower, 100.0), 1),
            evidence::interval(&rounds::scaled(&slower, 100.0 / cpus), 1),
            format!("{:.1}", part.value * 100.0),
            evidence::interval(&rounds::scaled(&in_ordinary, 100.0), 1),
        ]],
    );
    Ok(())
}

/// The part of the run in which accounts were kept.
fn kept_part(out: &std::path::Path) -> anyhow::Result<f64> {
    let record = charged::read(&out.join("record.jsonl"))?;
    let execution = record.phases.first().and_then(|phase| phase.executions.first()).context("no execution")?;
    let snapshots = &execution.stretch.snapshots;
    let (mut kept, mut all) = (0.0, 0.0);
    for (before, after) in snapshots.iter().zip(snapshots.iter().skip(1)) {
        let nanos = after.at_nanos.since(before.at_nanos).as_f64();
        all += nanos;
        kept += if before.mode == Mode::Alone(Meter::Accounts) { nanos } else { 0.0 };
    }
    Ok(kept / all)
}
