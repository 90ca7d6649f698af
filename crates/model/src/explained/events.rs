//! Which events a change of the cost goes along with: exact counts per I/O in rounds of their own.
//!
//! Counting delays the load, so the cost in these rounds is not reported; the counts per I/O hold for all rounds. They are net of the rate in the
//! slices without a load, and of the counts of a worker's slice that ends as soon as it begins.

use super::{
    BothCases, ExplainingRounds, FEWEST_ROUNDS, OfCase, Part, PartChange, largest_first, mean_of_arms, with_slices,
};
use crate::events::{CONTEXT_SWITCHES, Events, RARE};
use crate::experiment::Metric;
use crate::record::{EventCounts, Mode};
use crate::slice::{RoundRecord, Rounds, SliceReading, SliceRecord};
use crate::study::events::counts_between;
use crate::study::windows::io_seconds;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// An event in both arms; of a blast, in the first point and in this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventChange {
    /// Its tracepoint, `sched:sched_switch`, or system call, `syscalls:pread64`.
    pub name: String,
    /// Whether the user named it, and not a group that contains it.
    pub named: bool,
    /// How often it happens for an I/O.
    #[serde(flatten)]
    pub per_io: PartChange,
}

/// The counts of each event, net of the background, and the I/Os of every case, round by round, for each set of events that were counted in
/// the same rounds.
pub(super) struct CountedEvents(Vec<OfSet>);

/// The events of a set.
struct OfSet {
    /// And whether the user named it.
    names: BTreeMap<String, bool>,
    /// And how many slices there were.
    rounds: Vec<Vec<OfCase<String, usize>>>,
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
    let counts: Vec<&EventCounts> = counts_between(slice.reading.pairs(), set, slice.reading.io_interval()).collect();
    let times = match &slice.reading {
        SliceReading::Slice { .. } | SliceReading::Command { .. } => 1.0,
        SliceReading::Execution(execution) => {
            io_seconds(execution) / counts.iter().map(|counts| seconds(counts)).sum::<f64>()
        }
    };
    (counts, times)
}

fn seconds(counts: &EventCounts) -> f64 {
    counts.end_nanos.since(counts.begin_nanos).seconds()
}

/// Why no events have been counted.
pub(super) fn why_uncounted<'a>(events: &'a Events, rounds: &[RoundRecord]) -> &'a str {
    let counts = |slice: &SliceRecord| slice.reading.pairs().any(|(before, _)| matches!(before.mode, Mode::Events(_)));
    let rounds = rounds.iter().filter(|round| round.slices.iter().any(counts)).count();
    events.refusal().unwrap_or(match rounds {
        ..FEWEST_ROUNDS => "there was no time for rounds that count them; measure longer",
        _ => "the number of I/Os is unknown, or an execution is too short for a window of theirs",
    })
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
fn names(events: &Events, set: u8, rounds: &[Vec<OfCase<String, usize>>]) -> BTreeMap<String, bool> {
    let happened = rounds.iter().flatten().flat_map(|case| case.amounts.keys());
    let is_named = |name: &String| events.events.iter().any(|event| event.named && event.name == *name);
    events.names(set, happened).into_iter().map(|name| (name.clone(), is_named(&name))).collect()
}

impl CountedEvents {
    /// The rounds in which every case was counted, of each set that has enough of them.
    pub fn of(explaining: &ExplainingRounds, events: &Events) -> Self {
        let of_set = |set: u8| {
            let rounds: Vec<RoundRecord> = explaining.rounds.iter().filter_map(|round| counting(round, set)).collect();
            let starts: Vec<RoundRecord> = rounds.iter().map(starts).collect();
            let ios = explaining.ios(&rounds).into_iter().zip(explaining.ios(&starts));
            let found = rounds.iter().zip(ios).filter_map(|(round, (ios, of_starts))| {
                let alone = Sum::of(&round.slices, None, set);
                let of_case = |(case, (ios, of_start)): (usize, (Option<f64>, Option<f64>))| {
                    let begun = Sum::of(&round.starts, Some(case), set);
                    let counts = Sum::of(&round.slices, Some(case), set).without(begun).net_of(&alone)?;
                    let ios = ios? - of_start.unwrap_or(0.0);
                    let slices = round.slices.iter().filter(|slice| slice.case == Some(case)).count();
                    (ios > 0.0).then_some(OfCase { total: counts.values().sum(), amounts: counts, ios, more: slices })
                };
                ios.into_iter().zip(of_starts).enumerate().map(of_case).collect::<Option<Vec<_>>>()
            });
            let rounds: Vec<Vec<_>> = found.collect();
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
    pub fn parts(&self, sums: &Rounds, baseline: usize, candidate: usize) -> Vec<Row> {
        let mut rows: Vec<Row> = self.0.iter().flat_map(|set| set.parts(baseline, candidate)).collect();
        let switches = sums.paired(Metric::ContextSwitchesPerIo, baseline, candidate);
        if let Some((row, rounds)) =
            rows.iter_mut().find(|row| row.part.key.as_deref() == Some(CONTEXT_SWITCHES)).zip(switches)
        {
            row.part.rounds = rounds;
        }
        rows.retain(|row| row.named || mean_of_arms(&row.part.rounds) >= RARE);
        rows
    }
}

impl OfSet {
    fn parts(&self, baseline: usize, candidate: usize) -> Vec<Row> {
        let both = BothCases::of(&self.rounds, baseline, candidate);
        // An event in each slice of either arm.
        let resolution = [0, 1].map(|arm: usize| {
            let of_arm = || both.0.iter().filter_map(|cases| cases.get(arm));
            of_arm().map(|case| case.more as f64).sum::<f64>() / of_arm().map(|case| case.ios).sum::<f64>()
        });
        let resolution = resolution.iter().sum();
        let row = |(name, named): (&String, &bool)| Row {
            part: Part { key: Some(name.clone()), rounds: both.part(name) },
            named: *named,
            resolution,
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

/// An event in both cases, round by round.
pub(super) struct Row {
    part: Part<String>,
    named: bool,
    /// A smaller change is not told from what both ends of a slice add.
    resolution: f64,
}

/// The changes of all events, each with an interval of this confidence; first those that are detected, the largest first: by their number
/// per I/O, because each one takes time, and a relative change is large where an event is rare.
pub(super) fn changes(rows: &[Row], confidence: f64) -> Vec<EventChange> {
    let change = |Row { part, named, resolution }: &Row| {
        let mut per_io = part.change(confidence)?;
        per_io.detected &= per_io.change.value.abs() > *resolution;
        Some(EventChange { name: part.key.clone()?, named: *named, per_io })
    };
    let mut changes: Vec<EventChange> = rows.iter().filter_map(change).collect();
    largest_first(&mut changes, |it| it.per_io);
    changes
}
