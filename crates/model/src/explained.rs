//! A cost and its change, divided by explaining rounds: rounds of slices or executions that keep exact [`accounts`], sample [`functions`] or
//! count [`events`].
//!
//! What explains takes time itself, so these rounds are not among those of the answer: they only say how its cost, and its change, divide.

mod accounts;
mod events;
mod functions;

pub use accounts::reason;
pub use accounts::{AccountChange, ExplainedFinding};
pub use events::EventChange;
pub use functions::{StackChange, SymbolChange};

use crate::events::{EventFinding, Events};
use crate::experiment::{Metric, WorkCounter};
use crate::record::{Host, IoInterval, Snapshot};
use crate::slice::{Choice, MeasuredSlices, RoundRecord, Rounds, SliceReading, SliceRecord};
use crate::stats::evidence::arms;
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
pub struct ExplainingRounds<'a> {
    pub cases: usize,
    pub host: &'a Host,
    pub counter: Option<&'a WorkCounter>,
    pub rounds: &'a [RoundRecord],
}

/// What explaining rounds found of all pairs of cases.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Explanation {
    /// The changes of accounts of all cells, whose intervals hold together; `null` without rounds that kept accounts.
    pub account_family: Option<FamilyFinding>,
    /// Why the costs are not divided into accounts, and what would mend it; `null` if they are, or were not asked for.
    pub unexplained: Option<String>,
    /// The changes of functions of all cells likewise; `null` without sampled rounds (`--profile`).
    pub function_family: Option<FamilyFinding>,
    /// Number of explaining rounds that sampled stacks.
    pub sampled_rounds: usize,
    /// The changes of events of all cells likewise; `null` without rounds that counted them (`--events`).
    pub event_family: Option<FamilyFinding>,
    /// Number of explaining rounds that counted an event; if events took turns, the fewest of one.
    pub counted_rounds: usize,
    /// The events that were to be counted, and why some were not.
    pub events: Vec<EventFinding>,
    /// Why no cell has events although some were to be counted.
    pub events_reason: Option<String>,
}

/// The cost of an I/O in both arms of a comparison, divided by explaining rounds; of a blast, that of a delivered packet in the first point
/// and in this one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DividedCost {
    /// The cost in the explaining rounds, whose accounts follow; `null` without such rounds.
    pub explained: Option<ExplainedFinding>,
    /// Accounts in both arms: first those whose change is detected, the largest first (of a blast, the largest first); the last is the sum
    /// of small ones.
    pub accounts: Vec<AccountChange>,
    /// The functions of the kernel and of programs in both arms (`--profile`), first those whose change is detected; empty without one.
    pub symbols: Vec<SymbolChange>,
    /// Their stacks of calls.
    pub stacks: Vec<StackChange>,
    /// What happens for an I/O in both arms, and its change: first what changed, the most per I/O first (of a blast, the most frequent first).
    /// Rare events are left out; empty without rounds that counted events.
    pub events: Vec<EventChange>,
}

impl ExplainingRounds<'_> {
    /// Divides the costs of pairs of cases. `sums` are their rounds that nothing disturbed. A pair of a case with itself tests no change.
    pub fn divide(
        &self,
        sums: &Rounds,
        events: Option<&Events>,
        pairs: &[(usize, usize)],
    ) -> (Explanation, Vec<DividedCost>) {
        let mut costs = vec![DividedCost::default(); pairs.len()];
        let mut found =
            Explanation { events: events.map(Events::findings).unwrap_or_default(), ..Explanation::default() };
        let family = |counts: &mut dyn Iterator<Item = usize>| {
            let comparisons = counts.zip(pairs).filter(|(_, (one, other))| one != other).map(|(count, _)| count).sum();
            FamilyFinding { comparisons, confidence: confidence_of_each(comparisons) }
        };
        // By a meter that never saw the machine idle, no cost is known; accounts are.
        let meter = sums.meter.filter(|_| sums.never_idle().is_none());
        if let Some(explaining) = Explaining::of(self, meter) {
            let parts: Vec<_> = pairs.iter().map(|&(one, other)| explaining.parts(one, other)).collect();
            let family = family(&mut parts.iter().map(|parts| parts.rows.len()));
            for ((cost, parts), &(one, other)) in costs.iter_mut().zip(&parts).zip(pairs) {
                let undisturbed = sums.paired(Metric::CyclesPerIo, one, other);
                cost.explained = parts.whole(undisturbed.as_deref());
                cost.accounts = parts.changes(family.confidence);
            }
            found.account_family = Some(family);
        }
        if let Some(functions) = Functions::of(self) {
            let parts: Vec<_> = pairs.iter().map(|&(one, other)| functions.parts(one, other)).collect();
            let family = family(&mut parts.iter().map(Vec::len));
            for ((cost, parts), &(one, other)) in costs.iter_mut().zip(&parts).zip(pairs) {
                cost.symbols = functions::changes(parts, family.confidence);
                cost.stacks = functions.stacks(one, other);
            }
            (found.function_family, found.sampled_rounds) = (Some(family), functions.0.len());
        }
        if let Some(counted) = events.map(|events| CountedEvents::of(self, events))
            && let Some(rounds) = counted.rounds()
        {
            let parts: Vec<_> = pairs.iter().map(|&(one, other)| counted.parts(sums, one, other)).collect();
            let family = family(&mut parts.iter().map(Vec::len));
            for (cost, parts) in costs.iter_mut().zip(&parts) {
                cost.events = events::changes(parts, family.confidence);
            }
            (found.event_family, found.counted_rounds) = (Some(family), rounds);
        }
        let uncounted = events.filter(|_| found.event_family.is_none());
        found.events_reason = uncounted.map(|events| events::why_uncounted(events, self.rounds).to_owned());
        (found, costs)
    }

    /// The I/Os of every case in these rounds.
    fn ios(&self, rounds: &[RoundRecord]) -> Vec<Vec<Option<f64>>> {
        let sums = MeasuredSlices::of(self.cases, self.host, self.counter, (Choice::Fixed(None), rounds)).rounds;
        sums.rounds.iter().map(|round| round.cases.iter().map(|case| case.ios).collect()).collect()
    }
}

/// A round with the slices that such a meter read. One whose I/Os could not be read counts neither with what was read nor with its I/Os.
fn with_slices(round: &RoundRecord, was_read: impl Fn(&SliceRecord) -> bool) -> RoundRecord {
    let counts = |slice: &&SliceRecord| was_read(slice) && !slice.reading.is_uncounted();
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

/// A part of the cost, or a count, for an I/O in both arms; of a blast, for a packet in the first point and in this one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartChange {
    /// For an I/O of the baseline on the whole machine, net of the background, in the explaining rounds: cycles, or a count.
    pub baseline: Estimate,
    /// The same of the arm.
    pub candidate: Estimate,
    /// candidate − baseline. Its interval holds together with those of all accounts, all functions or all events of all cells (95 %).
    pub change: Estimate,
    /// Whether this interval excludes 0; of an event also whether the change is more than one in each slice, whose ends differ by as much.
    pub detected: bool,
}

impl<K> Part<K> {
    fn change(&self, confidence: f64) -> Option<PartChange> {
        let found = difference(&self.rounds)?;
        let [Some(baseline), Some(candidate)] = costs(&self.rounds) else { return None };
        Some(PartChange {
            baseline,
            candidate,
            change: found.estimate(confidence),
            detected: found.excludes_zero(confidence),
        })
    }
}

/// Sorts changes: first those that are detected, the largest first.
fn largest_first<T>(changes: &mut [T], of: impl Fn(&T) -> PartChange) {
    changes.sort_by(|one, other| {
        let (one, other) = (of(one), of(other));
        other.detected.cmp(&one.detected).then(other.change.value.abs().total_cmp(&one.change.value.abs()))
    });
}

/// The mean of both arms: a choice by it does not depend on how they differ.
fn mean_of_arms(rounds: &[PairedRound]) -> f64 {
    let [baseline, candidate] = arms(rounds).map(|arm| Pair::sum(arm.into_iter()).ratio());
    (baseline + candidate) / 2.0
}

/// The costs of both arms.
fn costs(rounds: &[PairedRound]) -> [Option<Estimate>; 2] {
    arms(rounds).map(|arm| Some(ratio_of_sums(&arm, Neighbours::Alike)?.estimate()))
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
