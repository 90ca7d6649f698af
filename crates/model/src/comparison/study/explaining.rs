//! Which accounts a change belongs to.

use super::View;
use crate::comparison::record::{RoundRecord, Schedule};
use crate::events::Events;
use crate::explained::{self, DividedCost, ExplainingRounds, Explanation, FEWEST_ROUNDS};
use crate::measured::Rounds;
use crate::meter::{Meter, MeterStatus};
use crate::record::Mode;

/// Divides the costs of these comparisons.
pub(super) fn explain(record: View, sums: &Rounds, pairs: &[(usize, usize)]) -> (Explanation, Vec<DividedCost>) {
    let header = record.header;
    let (cases, counter) = (sums.cases(), header.work_counter.as_ref());
    let rounds = ExplainingRounds { cases, host: &header.host, counter, rounds: record.explaining };
    let (mut explanation, costs) = rounds.divide(sums, header.events.as_ref(), pairs);
    let events = header.events.as_ref().filter(|_| explanation.event_family.is_none());
    explanation.events_reason = events.map(|events| uncounted(events, record.explaining));
    (explanation, costs)
}

/// Why no events have been counted.
fn uncounted(events: &Events, rounds: &[RoundRecord]) -> String {
    let counts = |round: &RoundRecord| does(round, |mode| matches!(mode, Mode::Events(_)));
    match events.refusal() {
        Some(reason) => reason.to_owned(),
        None if rounds.iter().filter(|round| counts(round)).count() < FEWEST_ROUNDS => {
            "there was no time for rounds that count them; use a longer --budget".to_owned()
        }
        None => "the number of I/Os is unknown, or an execution is too short for a window of theirs".to_owned(),
    }
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
    let can = |status: &MeterStatus| status.meter == Meter::Accounts && status.status.taken().is_some();
    let of_boots = header.schedule == Schedule::Boots && header.meters.iter().any(can);
    let of_boots = of_boots.then(|| "each boot measures one arm, so no round has the accounts of both".to_owned());
    explained::reason(&header.meters).or(of_boots)
}
