//! Which accounts a change belongs to.

use super::View;
use crate::compare::record::RoundRecord;
use model::explained::{self, DividedCost, ExplainingRounds, Explanation};
use model::meter::Meter;
use model::record::Mode;
use model::slice::Rounds;

/// Divides the costs of these comparisons.
pub(super) fn explain(record: View, sums: &Rounds, pairs: &[(usize, usize)]) -> (Explanation, Vec<DividedCost>) {
    let header = record.header;
    let (cases, counter) = (sums.cases(), header.work_counter.as_ref());
    let rounds = ExplainingRounds { cases, host: &header.host, counter, rounds: record.explaining };
    rounds.divide(sums, header.events.as_ref(), pairs)
}

/// Whether a slice of a round has such a mode.
fn does(round: &RoundRecord, fits: fn(Mode) -> bool) -> bool {
    round.slices.iter().any(|slice| slice.reading.pairs().any(|(before, _)| fits(before.mode)))
}

/// What the rounds did, in words.
pub(super) fn done(record: View) -> Vec<&'static str> {
    let is_done = |fits: fn(Mode) -> bool| record.explaining.iter().any(|round| does(round, fits));
    let done = [
        is_done(|mode| mode == Mode::Alone(Meter::Accounts)).then_some("kept accounts"),
        is_done(|mode| matches!(mode, Mode::Events(_))).then_some("counted events"),
        is_done(|mode| mode == Mode::Alone(Meter::Sampler)).then_some("sampled stacks"),
    ];
    done.into_iter().flatten().collect()
}

/// Why there are none, if somebody could mend it.
pub(super) fn reason(record: View) -> Option<String> {
    let header = record.header;
    if !record.explaining.is_empty() || record.end.is_none() {
        return None;
    }
    explained::reason(&header.meters)
}
