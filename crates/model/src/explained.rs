//! A cost and its change, divided by explaining rounds: rounds of slices or executions that keep exact [`accounts`], sample [`functions`] or
//! count [`events`].
//!
//! What explains takes time itself, so these rounds are not among those of the answer: they only say how its cost, and its change, divide.

mod accounts;
mod events;
mod functions;
mod read_times;

pub use accounts::{AccountChange, ExplainedFinding};
pub(crate) use accounts::{AccountParts, Explaining, reason};
pub use events::EventChange;
pub(crate) use events::{CountedEvents, EventParts};
pub(crate) use functions::{FunctionParts, Functions};
pub use functions::{StackChange, SymbolChange};

use crate::slice::{RoundRecord, SliceRecord, is_uncounted};
use crate::stats::{Estimate, Neighbours, Pair, PairedRound, ratio_of_sums};

/// Fewer rounds give no interval worth showing: t(0.975, 1) is 12.7.
pub const FEWEST_ROUNDS: usize = 3;

/// A round with the slices that such a meter read. One whose I/Os could not be read counts neither with what was read nor with its I/Os.
fn with_slices(round: &RoundRecord, was_read: impl Fn(&SliceRecord) -> bool) -> RoundRecord {
    let counts = |slice: &&SliceRecord| was_read(slice) && !is_uncounted(slice);
    let only = |slices: &[SliceRecord]| slices.iter().filter(counts).cloned().collect();
    RoundRecord { slices: only(&round.slices), starts: only(&round.starts), ..round.clone() }
}

/// The mean of both arms: a choice by it does not depend on how they differ.
fn mean_of_arms(rounds: &[PairedRound]) -> f64 {
    let ratio = |of: fn(&PairedRound) -> Pair| {
        let sum = |part: fn(&Pair) -> f64| rounds.iter().map(|round| part(&of(round))).sum::<f64>();
        sum(|pair| pair.numerator) / sum(|pair| pair.denominator)
    };
    (ratio(|round| round.baseline) + ratio(|round| round.candidate)) / 2.0
}

/// The cost of one arm.
fn cost(rounds: &[PairedRound], arm: fn(&PairedRound) -> Pair) -> Option<Estimate> {
    Some(ratio_of_sums(&rounds.iter().map(arm).collect::<Vec<_>>(), Neighbours::Alike)?.estimate())
}

fn of_baseline(rounds: &[PairedRound]) -> Option<Estimate> {
    cost(rounds, |round| round.baseline)
}

fn of_candidate(rounds: &[PairedRound]) -> Option<Estimate> {
    cost(rounds, |round| round.candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Snapshot;
    use crate::slice::{CommandReading, SliceReading};

    #[test]
    fn a_slice_without_a_count_is_left_out() {
        let slice = |count| {
            let reading = CommandReading { count, ..CommandReading::default() };
            let (before, after) = (Box::new(Snapshot::default()), Box::new(Snapshot::default()));
            SliceRecord {
                case: Some(0),
                reading: SliceReading::Command { before, first: reading, last: reading, after },
            }
        };
        let round = RoundRecord {
            slices: vec![slice(Some(1)), slice(None)],
            starts: vec![slice(None)],
            ..RoundRecord::default()
        };
        let of = |was_read: fn(&SliceRecord) -> bool| {
            let kept = with_slices(&round, was_read);
            (kept.slices.len(), kept.starts.len())
        };
        assert_eq!(of(|_| true), (1, 0));
        assert_eq!(of(|_| false), (0, 0));
    }
}
