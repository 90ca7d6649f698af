//! Which events a change of the cost goes along with: exact counts per I/O in rounds of their own.
//!
//! Counting delays the load, so the cost in these rounds is not reported; the counts per I/O hold for all rounds. They are net of the rate in the
//! slices without a load, and of the counts of a worker's slice that ends as soon as it begins.

use super::{FEWEST_ROUNDS, mean_of_arms, of_baseline, of_candidate, with_slices};
use crate::events::{CONTEXT_SWITCHES, Events, RARE};
use crate::experiment::{Metric, WorkCounter};
use crate::measured::Rounds;
use crate::record::{EventCounts, Execution, Host, Mode};
use crate::slice::rounds::{Choice, MeasuredSlices};
use crate::slice::{RoundRecord, SliceReading, SliceRecord};
use crate::stats::{Estimate, Pair, PairedRound, difference};
use crate::study::events::counts_in;
use crate::study::io_time::io_seconds;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// An event in both arms; of a blast, in the first point and in this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventChange {
    /// Its tracepoint, `sched:sched_switch`, or system call, `syscalls:pread64`.
    pub name: String,
    /// Whether the user named it, and not a group that contains it.
    pub named: bool,
    /// How often it happens for an I/O of the baseline, on the whole machine, net of the background.
    pub baseline: Estimate,
    /// The same of the arm.
    pub candidate: Estimate,
    /// Change of this count: candidate − baseline. Its interval holds together with those of all events of all cells (95 %).
    pub change_per_io: Estimate,
    /// Whether this interval excludes 0, and the change is more than one event in each slice, whose ends differ by as much.
    pub detected: bool,
}

/// The counts of each event and the I/Os of every case, round by round, for each set of events that were counted in the same rounds.
pub(crate) struct CountedEvents(Vec<OfSet>);

/// The events of a set.
struct OfSet {
    /// And whether the user named it.
    names: BTreeMap<String, bool>,
    rounds: Vec<Vec<OfCase>>,
}

/// One case in one round.
struct OfCase {
    /// Net of the background.
    counts: BTreeMap<String, f64>,
    ios: f64,
    slices: usize,
}

/// What slices of one kind in a round counted.
#[derive(Default)]
struct Sum {
    counts: BTreeMap<String, f64>,
    seconds: f64,
}

/// The counts of a set in a slice, and how often the slice is as long as their times: 1, but for an execution, whose I/Os are those of its
/// whole time of I/O.
fn counted(slice: &SliceRecord, set: u8) -> (Vec<&EventCounts>, f64) {
    match &slice.reading {
        SliceReading::Slice { before, after, .. } | SliceReading::Command { before, after, .. } => {
            let counts = after.events.iter().filter(|_| before.mode == Mode::Events(set));
            (counts.collect(), 1.0)
        }
        SliceReading::Execution(execution) => {
            let Execution { stretch, io_interval, .. } = execution;
            let counts: Vec<&EventCounts> = counts_in(stretch, set, *io_interval).collect();
            let seconds: f64 = counts.iter().map(|counts| seconds(counts)).sum();
            (counts, io_seconds(execution) / seconds)
        }
    }
}

fn seconds(counts: &EventCounts) -> f64 {
    counts.end_nanos.since(counts.begin_nanos).seconds()
}

/// A round with its slices that counted this set; `None` if none did.
fn counting(round: &RoundRecord, set: u8) -> Option<RoundRecord> {
    let round = with_slices(round, |slice| !counted(slice, set).0.is_empty());
    (!round.slices.is_empty()).then_some(round)
}

/// A round of the slices that end as soon as they begin.
fn starts(round: &RoundRecord) -> RoundRecord {
    RoundRecord { slices: round.starts.clone(), ..round.clone() }
}

/// The events of a set that happened or can, and whether the user named them.
fn names(events: &Events, set: u8, rounds: &[Vec<OfCase>]) -> BTreeMap<String, bool> {
    let happened = rounds.iter().flatten().flat_map(|case| case.counts.keys());
    let is_named = |name: &String| events.events.iter().any(|event| event.named && event.name == *name);
    events.names(set, happened).into_iter().map(|name| (name.clone(), is_named(&name))).collect()
}

impl CountedEvents {
    /// The rounds in which every case was counted, of each set that has enough of them.
    pub fn of(
        cases: usize,
        host: &Host,
        counter: Option<&WorkCounter>,
        events: &Events,
        rounds: &[RoundRecord],
    ) -> Self {
        let ios = |rounds: &[RoundRecord]| -> Vec<Vec<Option<f64>>> {
            let sums = MeasuredSlices::of(cases, host, counter, (Choice::Fixed(None), rounds)).rounds;
            sums.rounds.iter().map(|round| round.cases.iter().map(|case| case.ios).collect()).collect()
        };
        let of_set = |set: u8| {
            let rounds: Vec<RoundRecord> = rounds.iter().filter_map(|round| counting(round, set)).collect();
            let starts: Vec<RoundRecord> = rounds.iter().map(starts).collect();
            let ios = ios(&rounds).into_iter().zip(ios(&starts));
            let found = rounds.iter().zip(ios).filter_map(|(round, (ios, of_starts))| {
                let alone = Sum::of(&round.slices, None, set);
                let of_case = |(case, (ios, of_start)): (usize, (Option<f64>, Option<f64>))| {
                    let begun = Sum::of(&round.starts, Some(case), set);
                    let counts = Sum::of(&round.slices, Some(case), set).without(begun).net_of(&alone)?;
                    let ios = ios? - of_start.unwrap_or(0.0);
                    let slices = round.slices.iter().filter(|slice| slice.case == Some(case)).count();
                    (ios > 0.0).then_some(OfCase { counts, ios, slices })
                };
                ios.into_iter().zip(of_starts).enumerate().map(of_case).collect::<Option<Vec<OfCase>>>()
            });
            let rounds: Vec<Vec<OfCase>> = found.collect();
            OfSet { names: names(events, set, &rounds), rounds }
        };
        let sets = events.sets().into_iter().map(of_set);
        Self(sets.filter(|set| set.rounds.len() >= FEWEST_ROUNDS).collect())
    }

    /// Rounds of the set with the fewest; `None` if none was counted.
    pub fn rounds(&self) -> Option<usize> {
        self.0.iter().map(|set| set.rounds.len()).min()
    }

    /// The events of two cases that are not rare. Context switches are those of the undisturbed rounds, if they are known there, so that a
    /// comparison has one figure of them.
    pub fn parts(&self, sums: &Rounds, baseline: usize, candidate: usize) -> EventParts {
        let mut rows: Vec<Row> = self.0.iter().flat_map(|set| set.parts(baseline, candidate)).collect();
        let switches = sums.paired(Metric::ContextSwitchesPerIo, baseline, candidate);
        if let Some((row, rounds)) = rows.iter_mut().find(|row| row.name == CONTEXT_SWITCHES).zip(switches) {
            row.rounds = rounds;
        }
        rows.retain(Row::is_tested);
        EventParts(rows)
    }
}

impl OfSet {
    fn parts(&self, baseline: usize, candidate: usize) -> Vec<Row> {
        let rounds: Vec<(&OfCase, &OfCase)> =
            self.rounds.iter().filter_map(|round| round.get(baseline).zip(round.get(candidate))).collect();
        let pair = |case: &OfCase, name: &str| Pair {
            numerator: case.counts.get(name).copied().unwrap_or(0.0),
            denominator: case.ios,
        };
        // An event in each slice of either arm.
        let resolution = [0, 1].map(|arm| {
            let of_arm = || rounds.iter().map(|(one, other)| if arm == 0 { one } else { other });
            of_arm().map(|case| case.slices as f64).sum::<f64>() / of_arm().map(|case| case.ios).sum::<f64>()
        });
        let resolution = resolution.iter().sum();
        let row = |(name, named): (&String, &bool)| Row {
            name: name.clone(),
            named: *named,
            resolution,
            rounds: rounds
                .iter()
                .map(|(one, other)| PairedRound { baseline: pair(one, name), candidate: pair(other, name) })
                .collect(),
        };
        self.names.iter().map(row).collect()
    }
}

impl Sum {
    /// Of the slices of a case; `None` for those without a load.
    fn of(slices: &[SliceRecord], case: Option<usize>, set: u8) -> Self {
        let mut sum = Self::default();
        for slice in slices.iter().filter(|slice| slice.case == case) {
            let (counts, times) = counted(slice, set);
            for counts in counts.into_iter().filter(|_| times.is_finite()) {
                sum.seconds += seconds(counts) * times;
                for (name, count) in &counts.counts {
                    *sum.counts.entry(name.clone()).or_default() += *count as f64 * times;
                }
            }
        }
        sum
    }

    fn without(mut self, other: Self) -> Self {
        self.seconds -= other.seconds;
        for (name, count) in other.counts {
            *self.counts.entry(name).or_default() -= count;
        }
        self
    }

    /// Net of what happens without a load; `None` if one of them was not counted.
    fn net_of(self, alone: &Self) -> Option<BTreeMap<String, f64>> {
        let names: BTreeSet<&String> = self.counts.keys().chain(alone.counts.keys()).collect();
        let of = |sum: &Self, name: &str| sum.counts.get(name).copied().unwrap_or(0.0);
        let net = |name: &&String| ((*name).clone(), of(&self, name) - of(alone, name) / alone.seconds * self.seconds);
        (self.seconds > 0.0 && alone.seconds > 0.0).then(|| names.iter().map(net).collect())
    }
}

/// Events in both cases, round by round.
pub(crate) struct EventParts(Vec<Row>);

struct Row {
    name: String,
    named: bool,
    /// A smaller change is not told from what both ends of a slice add.
    resolution: f64,
    rounds: Vec<PairedRound>,
}

impl Row {
    fn is_tested(&self) -> bool {
        self.named || mean_of_arms(&self.rounds) >= RARE
    }

    fn change(&self, confidence: f64) -> Option<EventChange> {
        let found = difference(&self.rounds)?;
        Some(EventChange {
            name: self.name.clone(),
            named: self.named,
            baseline: of_baseline(&self.rounds)?,
            candidate: of_candidate(&self.rounds)?,
            change_per_io: found.estimate(confidence),
            detected: found.excludes_zero(confidence) && found.value.abs() > self.resolution,
        })
    }
}

impl EventParts {
    /// Number of events whose changes are tested.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The changes of all events, each with an interval of this confidence; first those that are detected, the largest first: by their number
    /// per I/O, because each one takes time, and a relative change is large where an event is rare.
    pub fn changes(&self, confidence: f64) -> Vec<EventChange> {
        let mut changes: Vec<EventChange> = self.0.iter().filter_map(|row| row.change(confidence)).collect();
        changes.sort_by(|one, other| {
            let size = |change: &EventChange| change.change_per_io.value.abs();
            other.detected.cmp(&one.detected).then(size(other).total_cmp(&size(one)))
        });
        changes
    }
}
