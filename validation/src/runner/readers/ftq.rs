//! Periods in a recording whose quanta are shuffled: none of them is real.

use super::lines_of_record;
use crate::bench::Bench;
use crate::bench::seeded::Seeded;
use anyhow::Context;
use model::kind::Recorded;
use model::unit::Nanos;
use verbs::ftq::FtqRecord;

/// Readings of a block that is moved as a whole: 7 ms, much less than any period, more than most natural stalls.
const BLOCK: usize = 16;

/// How many periods the same readings show in another order: each keeps its amount and its length, which is several quanta if it was late.
pub(super) fn shuffled(bench: &Bench, _: &[String]) -> anyhow::Result<Vec<f64>> {
    let mut lines = lines_of_record(bench)?.into_iter();
    let envelope =
        lines.next().and_then(|first| first.get("envelope").cloned()).context("the record has no envelope")?;
    let lines = lines.map(serde_json::from_value).collect::<Result<Vec<_>, _>>()?;
    let mut record: FtqRecord = FtqRecord::assemble(serde_json::from_value(envelope)?, lines)
        .map_err(|wrong| anyhow::anyhow!("line {}: {}", wrong.line, wrong.why))?;
    let pairs = record.chunks.iter().flat_map(|chunk| chunk.at.iter().copied().zip(chunk.amount.iter().copied()));
    let readings: Vec<(Nanos, u64)> = pairs.collect();
    let increase = |pair: &[(Nanos, u64)]| match pair {
        [(from, less), (to, more)] => (to.since(*from).0, more.saturating_sub(*less)),
        _ => (0, 0),
    };
    let increases: Vec<(u64, u64)> = readings.windows(2).map(increase).collect();
    let mut blocks: Vec<&[(u64, u64)]> = increases.chunks(BLOCK).collect();
    // Each recording in an order of its own.
    let first = readings.first().map_or(0, |(at, _)| at.0);
    Seeded::new(bench.options.seed ^ first).shuffle(&mut blocks);
    let (mut at, mut amount) = readings.first().map_or((0, 0), |(at, amount)| (at.0, *amount));
    let moved = blocks.into_iter().flatten().map(|(length, increase)| {
        (at, amount) = (at + length, amount + increase);
        (Nanos(at), amount)
    });
    let mut rows = readings.iter().take(1).copied().chain(moved);
    for chunk in &mut record.chunks {
        for (at, amount) in chunk.at.iter_mut().zip(&mut chunk.amount) {
            (*at, *amount) = rows.next().unwrap_or_default();
        }
    }
    Ok(vec![record.study(None).periodic.len() as f64])
}
