//! The course of an experiment: where its warm-up ends, and whether a slice depends on the arm before it. Neither
//! depends on the difference between arms.

use super::View;
use crate::comparison::record::{RoundRecord, Schedule, SliceReading, SliceRecord};
use crate::stats::rank_sum_p;
use crate::stats::steady::{Steady, steady};
use crate::stats::stopping::FEWEST_ROUNDS;

/// The rounds to discard at the beginning.
pub(super) struct WarmUp {
    /// Number of whole rounds.
    pub rounds: usize,
    /// Whether the rate is steady after them.
    pub settles: bool,
}

/// Rounds before the common rate of all arms is steady. Only for slices, because there are too few executions to judge.
pub(super) fn warm_up(record: View) -> WarmUp {
    let blocks = match record.header.schedule {
        Schedule::Slices { blocks, .. } => blocks,
        // The cells of a sweep follow each other, at rates of their own.
        Schedule::SlicedCommands { blocks, .. } if record.header.experiment.cells.len() == 1 => blocks,
        _ => return WarmUp { rounds: 0, settles: true },
    };
    let blocks = blocks.max(1) as usize;
    let series: Vec<f64> = record.rounds.iter().flat_map(|round| rates_of_blocks(round, blocks)).collect();
    let settled = series.len() == record.rounds.len() * blocks && series.iter().all(|rate| rate.is_finite());
    match if settled { steady(&series) } else { Steady::TooShort } {
        // The remaining rounds must be enough for an answer.
        Steady::From(block) if record.rounds.len() >= block.div_ceil(blocks) + FEWEST_ROUNDS => {
            WarmUp { rounds: block.div_ceil(blocks), settles: true }
        }
        Steady::From(_) => WarmUp { rounds: 0, settles: true },
        Steady::Never => WarmUp { rounds: 0, settles: false },
        Steady::TooShort => WarmUp { rounds: 0, settles: true },
    }
}

/// I/Os per second of all arms together, for each block of a round.
fn rates_of_blocks(round: &RoundRecord, blocks: usize) -> Vec<f64> {
    let turns = (round.slices.len() / blocks).max(1);
    let rate = |slices: &[SliceRecord]| {
        let (ios, seconds) = slices
            .iter()
            .filter_map(work)
            .fold((0.0, 0.0), |(ios, seconds), (more, longer)| (ios + more, seconds + longer));
        ios / seconds
    };
    round.slices.chunks(turns).map(rate).collect()
}

/// I/Os and seconds of an arm's slice.
fn work(slice: &SliceRecord) -> Option<(f64, f64)> {
    match (&slice.reading, slice.case) {
        (SliceReading::Slice { work, .. }, Some(_)) => Some((work.ios as f64, work.wall_nanos.seconds())),
        // Counts are enough, because only relative rates matter.
        (SliceReading::Command { first, last, .. }, Some(_)) => {
            let count = last.count?.saturating_sub(first.count?) as f64;
            Some((count, last.at_nanos.since(first.at_nanos).seconds()))
        }
        _ => None,
    }
}

/// How much faster an arm's slices are after one of its own than after another arm's, as a fraction, for the arm with
/// the largest effect, if it is detected and not negligible. Slices after the idle machine are ignored.
pub(super) fn carry_over(record: View) -> Option<f64> {
    /// A smaller effect changes the result by less than the margin.
    const LEAST: f64 = 0.01;
    /// Every comparison is tested, so false alarms must be very rare.
    const FALSE_ALARM: f64 = 0.001;
    if record.header.schedule == Schedule::Boots {
        // Nothing is carried over into a boot.
        return None;
    }
    let cases = record.header.experiment.cases.len();
    // Each arm is compared only with itself: an arm that slows down all successors affects both its own slices and
    // those of others.
    let mut pairs: Vec<(Vec<f64>, Vec<f64>)> = vec![(Vec::new(), Vec::new()); cases];
    for round in record.rounds {
        let logs: Vec<Option<(usize, f64)>> = round.slices.iter().map(log_rate).collect();
        let mut sums = vec![(0.0, 0.0); cases];
        for (case, log) in logs.iter().flatten() {
            if let Some((sum, count)) = sums.get_mut(*case) {
                (*sum, *count) = (*sum + log, *count + 1.0);
            }
        }
        let means: Vec<f64> = sums.into_iter().map(|(sum, count)| sum / count).collect();
        for pair in logs.windows(2) {
            let [Some((before, _)), Some((case, log))] = pair else { continue };
            // Relative to the arm's mean in the round, because arms and rounds may differ.
            let (Some((own, other)), Some(mean)) = (pairs.get_mut(*case), means.get(*case)) else { continue };
            if before == case { own } else { other }.push(log - mean);
        }
    }
    let found = pairs.iter().filter_map(|(own, other)| {
        let difference = median(own)? - median(other)?;
        let told = rank_sum_p(own, other)? * cases as f64 <= FALSE_ALARM && difference.abs() > LEAST;
        told.then(|| difference.exp_m1())
    });
    found.max_by(|one, other| one.abs().total_cmp(&other.abs()))
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

fn log_rate(slice: &SliceRecord) -> Option<(usize, f64)> {
    let (ios, seconds) = work(slice)?;
    let log = (ios / seconds).ln();
    log.is_finite().then_some((slice.case?, log))
}
