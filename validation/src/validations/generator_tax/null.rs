//! I/Os per second of `null`, which does nothing: only the generator remains, including full histograms.

use crate::bench::Bench;
use crate::bench::evidence::{self, Evidence, rate};
use crate::bench::iotoll::{self, Measuring};
use crate::bench::{fio, rounds};

const DEPTHS: [u32; 2] = [1, 32];
/// Required ratio to fio's rate.
const LEAST: f64 = 8.0;

pub fn validate(bench: &mut Bench, evidence: &mut Evidence) -> anyhow::Result<()> {
    let cells: Vec<(u32, bool)> = DEPTHS.iter().flat_map(|&depth| [(depth, false), (depth, true)]).collect();
    let named = |(depth, ours): &(u32, bool)| format!("null at depth {depth}, {}", program(*ours));
    let block = |(depth, _): &(u32, bool)| usize::try_from(*depth).unwrap_or(0);
    let found = bench.in_rounds(&cells, block, named, |bench, (depth, ours)| {
        let depth = format!("--iodepth={depth}");
        let job = fio::job("null", bench.options.seconds, &["--bs=4k", "--size=64m", &depth]);
        match ours {
            true => Ok(iotoll::job(&iotoll::run(bench, &Measuring::LEAST, &job)?)?.iops),
            false => Ok(fio::run(bench, &job)?.iops),
        }
    })?;
    let mut rows = Vec::new();
    for (depth, pair) in DEPTHS.iter().zip(found.chunks(2)) {
        let [fio, ours] = pair else { continue };
        let ratio = rounds::ratio(ours, fio);
        let mean = |values: &[f64]| rate(rounds::mean(values).value);
        rows.push(vec![depth.to_string(), mean(fio), mean(ours), evidence::interval(&ratio, 2)]);
        let text =
            format!("null at depth {depth}: {} times fio's IOPS, at least {LEAST}", evidence::interval(&ratio, 2));
        evidence.criterion(ratio.value >= LEAST, text);
    }
    evidence.note("`null`, with histograms of every I/O: IOPS.");
    evidence.table(&["depth", "fio", "iotoll", "iotoll ÷ fio"], &rows);
    Ok(())
}

fn program(ours: bool) -> &'static str {
    if ours { "iotoll" } else { "fio" }
}
