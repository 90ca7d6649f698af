//! A cost and its change, divided by explaining rounds: rounds of slices or executions that keep exact [`accounts`], sample [`functions`] or
//! count [`events`].
//!
//! What explains takes time itself, so these rounds are not among those of the answer: they only say how its cost, and its change, divide.

mod accounts;
mod events;
mod functions;

pub(crate) use accounts::reason;
pub use accounts::{AccountChange, ExplainedFinding};
pub use events::EventChange;
pub use functions::{StackChange, SymbolChange};

use crate::events::Events;
use crate::experiment::{Metric, WorkCounter};
use crate::measured::Rounds;
use crate::record::{Host, IoInterval, Snapshot};
use crate::slice::rounds::{Choice, MeasuredSlices};
use crate::slice::{RoundRecord, SliceReading, SliceRecord, is_uncounted};
use crate::stats::log_ratio::arms;
use crate::stats::{Estimate, Neighbours, Pair, PairedRound, confidence_of_each, difference, ratio_of_sums};
use crate::study::windows::io_seconds;
use crate::unit::Nanos;
use accounts::Explaining;
use events::CountedEvents;
use functions::Functions;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Comparisons whose intervals all hold together with a confidence of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FamilyFinding {
    /// Number of comparisons; metrics that are multiples of each other count once.
    pub comparisons: usize,
    /// Confidence of the interval of each, 0 to 1: 1 − 0.05/comparisons.
    pub confidence: f64,
}

/// Fewer rounds give no interval worth showing: t(0.975, 1) is 12.7.
pub const FEWEST_ROUNDS: usize = 3;

/// The explaining rounds of a record, and what their slices are of.
#[derive(Clone, Copy)]
pub(crate) struct ExplainingRounds<'a> {
    pub cases: usize,
    pub host: &'a Host,
    pub counter: Option<&'a WorkCounter>,
    pub rounds: &'a [RoundRecord],
}

/// The costs of pairs of cases, divided.
#[derive(Default)]
pub(crate) struct Divided {
    /// All changes of accounts, whose intervals hold together; `None` without rounds that kept accounts.
    pub account_family: Option<FamilyFinding>,
    /// All changes of functions; `None` without sampled rounds.
    pub function_family: Option<FamilyFinding>,
    pub sampled_rounds: usize,
    /// All changes of events; `None` without rounds that counted.
    pub event_family: Option<FamilyFinding>,
    pub counted_rounds: usize,
    /// One for each pair.
    pub costs: Vec<DividedCost>,
}

/// The cost in both cases of a pair.
#[derive(Default)]
pub(crate) struct DividedCost {
    pub explained: Option<ExplainedFinding>,
    pub accounts: Vec<AccountChange>,
    pub symbols: Vec<SymbolChange>,
    pub stacks: Vec<StackChange>,
    pub events: Vec<EventChange>,
}

impl ExplainingRounds<'_> {
    /// Divides the costs of pairs of cases. `sums` are their rounds that nothing disturbed. A pair of a case with itself tests no change.
    pub fn divide(&self, sums: &Rounds, events: Option<&Events>, pairs: &[(usize, usize)]) -> Divided {
        let costs = pairs.iter().map(|_| DividedCost::default()).collect();
        let mut divided = Divided { costs, ..Divided::default() };
        let family = |counts: &mut dyn Iterator<Item = usize>| {
            let comparisons = counts.zip(pairs).filter(|(_, (one, other))| one != other).map(|(count, _)| count).sum();
            FamilyFinding { comparisons, confidence: confidence_of_each(comparisons) }
        };
        // By a meter that never saw the machine idle, no cost is known; accounts are.
        let meter = sums.meter.filter(|_| sums.never_idle().is_none());
        if let Some(explaining) = Explaining::of(self, meter) {
            let parts: Vec<_> = pairs.iter().map(|&(one, other)| explaining.parts(one, other)).collect();
            let family = family(&mut parts.iter().map(|parts| parts.rows.len()));
            for ((cost, parts), &(one, other)) in divided.costs.iter_mut().zip(&parts).zip(pairs) {
                let undisturbed = sums.paired(Metric::CyclesPerIo, one, other);
                cost.explained = parts.whole(undisturbed.as_deref());
                cost.accounts = parts.changes(family.confidence);
            }
            divided.account_family = Some(family);
        }
        if let Some(functions) = Functions::of(self) {
            let parts: Vec<_> = pairs.iter().map(|&(one, other)| functions.parts(one, other)).collect();
            let family = family(&mut parts.iter().map(Vec::len));
            for ((cost, parts), &(one, other)) in divided.costs.iter_mut().zip(&parts).zip(pairs) {
                cost.symbols = functions::changes(parts, family.confidence);
                cost.stacks = functions.stacks(one, other);
            }
            (divided.function_family, divided.sampled_rounds) = (Some(family), functions.0.len());
        }
        if let Some(counted) = events.map(|events| CountedEvents::of(self, events))
            && let Some(rounds) = counted.rounds()
        {
            let parts: Vec<_> = pairs.iter().map(|&(one, other)| counted.parts(sums, one, other)).collect();
            let family = family(&mut parts.iter().map(Vec::len));
            for (cost, parts) in divided.costs.iter_mut().zip(&parts) {
                cost.events = events::changes(parts, family.confidence);
            }
            (divided.event_family, divided.counted_rounds) = (Some(family), rounds);
        }
        divided
    }

    /// The I/Os of every case in these rounds.
    fn ios(&self, rounds: &[RoundRecord]) -> Vec<Vec<Option<f64>>> {
        let sums = MeasuredSlices::of(self.cases, self.host, self.counter, (Choice::Fixed(None), rounds)).rounds;
        sums.rounds.iter().map(|round| round.cases.iter().map(|case| case.ios).collect()).collect()
    }
}

/// A round with the slices that such a meter read. One whose I/Os could not be read counts neither with what was read nor with its I/Os.
fn with_slices(round: &RoundRecord, was_read: impl Fn(&SliceRecord) -> bool) -> RoundRecord {
    let counts = |slice: &&SliceRecord| was_read(slice) && !is_uncounted(slice);
    let only = |slices: &[SliceRecord]| slices.iter().filter(counts).cloned().collect();
    RoundRecord { slices: only(&round.slices), starts: only(&round.starts), ..round.clone() }
}

/// A time of a slice in which a meter that disturbs ran, and what it read.
struct ReadTime<'a, T> {
    before: &'a Snapshot,
    after: &'a Snapshot,
    /// When it began: at the snapshot before it, or earlier if it covers several windows.
    begin: Nanos,
    read: &'a T,
}

/// All of a slice, or the windows of an execution in its time of I/O.
fn read_times<'a, T>(
    slice: &'a SliceRecord,
    window: impl Fn(&'a Snapshot, &'a Snapshot) -> Option<ReadTime<'a, T>>,
) -> Vec<ReadTime<'a, T>> {
    let interval = slice.reading.io_interval();
    let read = slice.reading.pairs().filter_map(|(before, after)| window(before, after));
    read.filter(|it| IoInterval::covers(interval, it.begin, it.after.at_nanos)).collect()
}

/// How often a slice is as long as these times: 1, but for an execution, whose I/Os are those of its whole time of I/O.
fn times_read<T>(slice: &SliceRecord, all: &[ReadTime<T>]) -> f64 {
    let SliceReading::Execution(execution) = &slice.reading else { return 1.0 };
    let seconds = |it: &ReadTime<T>| it.after.at_nanos.since(it.begin).seconds();
    io_seconds(execution) / all.iter().map(seconds).sum::<f64>()
}

/// One case in one round.
struct OfCase<K, More> {
    /// What belongs to each key.
    amounts: BTreeMap<K, f64>,
    /// Of all of them.
    total: f64,
    ios: f64,
    more: More,
}

/// Two cases in every round.
struct BothCases<'a, K, More>(Vec<[&'a OfCase<K, More>; 2]>);

/// A part of the amounts of both cases, round by round.
struct Part<K> {
    /// `None` for the sum of small parts.
    key: Option<K>,
    rounds: Vec<PairedRound>,
}

impl<'a, K: Clone + Ord, More> BothCases<'a, K, More> {
    fn of(rounds: &'a [Vec<OfCase<K, More>>], baseline: usize, candidate: usize) -> Self {
        let both = |round: &'a Vec<OfCase<K, More>>| Some([round.get(baseline)?, round.get(candidate)?]);
        Self(rounds.iter().filter_map(both).collect())
    }

    fn cases(&self) -> impl Iterator<Item = &'a OfCase<K, More>> {
        self.0.iter().flatten().copied()
    }

    fn paired(&self, of: impl Fn(&OfCase<K, More>) -> f64) -> Vec<PairedRound> {
        let pair = |case: &OfCase<K, More>| Pair { numerator: of(case), denominator: case.ios };
        self.0.iter().map(|[one, other]| PairedRound { baseline: pair(one), candidate: pair(other) }).collect()
    }

    fn part(&self, key: &K) -> Vec<PairedRound> {
        self.paired(|case| case.amounts.get(key).copied().unwrap_or(0.0))
    }

    /// A part for each key that is large, and one for the sum of all others.
    fn parts(&self, is_large: impl Fn(&K, &[PairedRound]) -> bool) -> Vec<Part<K>> {
        let keys: BTreeSet<&K> = self.cases().flat_map(|case| case.amounts.keys()).collect();
        let all = keys.into_iter().map(|key| (key, self.part(key)));
        let (large, small): (Vec<_>, Vec<_>) = all.partition(|(key, rounds)| is_large(key, rounds));
        let mut parts: Vec<Part<K>> =
            large.into_iter().map(|(key, rounds)| Part { key: Some(key.clone()), rounds }).collect();
        if !small.is_empty() {
            let small: BTreeSet<&K> = small.into_iter().map(|(key, _)| key).collect();
            let rest = |case: &OfCase<K, More>| {
                let amounts = case.amounts.iter().filter(|(key, _)| small.contains(key));
                amounts.map(|(_, amount)| amount).sum()
            };
            parts.push(Part { key: None, rounds: self.paired(rest) });
        }
        parts
    }
}

/// The amount of a part for an I/O of both cases, and its change.
struct Changed {
    baseline: Estimate,
    candidate: Estimate,
    change: Estimate,
    /// Whether the interval excludes 0.
    detected: bool,
}

impl<K> Part<K> {
    fn change(&self, confidence: f64) -> Option<Changed> {
        let found = difference(&self.rounds)?;
        Some(Changed {
            baseline: of_baseline(&self.rounds)?,
            candidate: of_candidate(&self.rounds)?,
            change: found.estimate(confidence),
            detected: found.excludes_zero(confidence),
        })
    }
}

/// Sorts changes: first those that are detected, the largest first.
fn largest_first<T>(changes: &mut [T], of: impl Fn(&T) -> (bool, Estimate)) {
    changes.sort_by(|one, other| {
        let ((found, change), (other_found, other_change)) = (of(one), of(other));
        other_found.cmp(&found).then(other_change.value.abs().total_cmp(&change.value.abs()))
    });
}

/// The mean of both arms: a choice by it does not depend on how they differ.
fn mean_of_arms(rounds: &[PairedRound]) -> f64 {
    let [baseline, candidate] = arms(rounds).map(|arm| Pair::sum(arm.into_iter()).ratio());
    (baseline + candidate) / 2.0
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
