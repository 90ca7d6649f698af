//! Events per I/O: counts in the windows of their own, net of their rates without the load.

use super::net_cost::{Per, Rate, per_work, rate};
use super::windows::Window;
use crate::events::Events;
use crate::finding::CountedFinding;
use crate::record::{EventCounts, Execution, IoInterval, Mode, Record, Snapshot, Stretch};
use crate::stats::Estimate;
use std::collections::BTreeSet;

/// Counting slows a load by less than this: what a count adds is measured at the costliest event.
const MOST_SLOWED: f64 = 0.5;

/// Names of counters of the hardware.
const HARDWARE_PREFIX: &str = "hw:";

/// What happened for an I/O of a phase.
pub(super) fn study(record: &Record, executions: &[Execution]) -> CountedFinding {
    let Some(events) = &record.events else { return CountedFinding::default() };
    let without = |reason: &str| CountedFinding { reason: Some(reason.to_owned()), ..CountedFinding::default() };
    if let Some(reason) = events.refusal() {
        return without(reason);
    }
    let sets = events.sets();
    let mut found = CountedFinding::default();
    let (mut counting, mut passed, mut windows) = (0.0, 0.0, 0);
    for set in sets {
        let of_set = Set { set, events, record, executions };
        let (nanos, length) = (of_set.nanos_of_counting(), of_set.seconds() * 1e9);
        (counting, passed) = (counting + nanos, passed + length);
        windows += usize::from(length > 0.0);
        // At most: if each count delayed the load.
        let slowed = if length > 0.0 { (nanos / length).min(MOST_SLOWED) } else { 0.0 };
        for name in of_set.names() {
            if let Some(estimate) = of_set.per_io(&name, slowed) {
                found.per_io.insert(name, estimate);
            }
        }
    }
    found.counting_fraction = (passed > 0.0).then(|| counting / passed);
    found.reason = match (found.per_io.is_empty(), windows) {
        (false, _) => None,
        (true, 0) => Some("the run was too short for a window of theirs; run longer".to_owned()),
        (true, _) if record.background.is_empty() => Some("the number of I/Os is unknown".to_owned()),
        (true, _) => Some(
            "the number of I/Os is unknown, or the background was too short for a window of theirs; use a longer --background"
                .to_owned(),
        ),
    };
    found
}

/// Events that were counted in the same windows.
struct Set<'a> {
    set: u8,
    events: &'a Events,
    record: &'a Record,
    executions: &'a [Execution],
}

impl Set<'_> {
    /// Its tracepoints, and the system calls that happened.
    fn names(&self) -> BTreeSet<String> {
        self.events.names(self.set, self.all().flat_map(|counts| counts.counts.keys()))
    }

    /// Counts while the load ran.
    fn all(&self) -> impl Iterator<Item = &EventCounts> {
        self.executions.iter().flat_map(|it| counts_in(&it.stretch, self.set, it.io_interval))
    }

    fn seconds(&self) -> f64 {
        self.all().map(|counts| counts.end_nanos.since(counts.begin_nanos).seconds()).sum()
    }

    fn nanos_of_counting(&self) -> f64 {
        // The hardware counts by itself.
        let by_programs =
            self.all().flat_map(|counts| &counts.counts).filter(|(name, _)| !name.starts_with(HARDWARE_PREFIX));
        let counts: f64 = by_programs.map(|(_, count)| *count as f64).sum();
        counts * self.events.nanos_per_count.unwrap_or(0.0)
    }

    /// How often an event happens for an I/O. `slowed` is the part of its time that a load at most loses by being counted.
    fn per_io(&self, name: &str, slowed: f64) -> Option<Estimate> {
        let windows = |stretch: &Stretch, interval| -> Vec<Window> {
            counts_in(stretch, self.set, interval).filter_map(|counts| window(counts, name)).collect()
        };
        let background = &self.record.background;
        let rate = rate(background.iter().map(|stretch| windows(stretch, None)));
        // If no background was measured, every figure is gross, and a caveat says so.
        let rate = rate.or_else(|| background.is_empty().then(Rate::default))?;
        let seen = |execution: &Execution| {
            Some(windows(&execution.stretch, execution.io_interval)).filter(|windows| !windows.is_empty())
        };
        let net = per_work(self.executions, Per::Io, rate, seen)?.net;
        // I/Os that are only counted in total give their mean rate, which a load that is slowed does not reach.
        let live = self.all().all(|counts| counts.done.is_some());
        let high = net.high.map(|high| if live { high } else { high / (1.0 - slowed) });
        Some(Estimate { high: high.zip(net.high).map(|(wider, high)| wider.max(high)), ..net })
    }
}

/// The counts of a set in a stretch, within an interval of I/O if there is one.
pub(crate) fn counts_in(
    stretch: &Stretch,
    set: u8,
    interval: Option<IoInterval>,
) -> impl Iterator<Item = &EventCounts> {
    counts_between(stretch.pairs(), set, interval)
}

/// The same between these snapshots.
pub(crate) fn counts_between<'a>(
    pairs: impl Iterator<Item = (&'a Snapshot, &'a Snapshot)>,
    set: u8,
    interval: Option<IoInterval>,
) -> impl Iterator<Item = &'a EventCounts> {
    let ended = pairs.filter(move |(before, _)| before.mode == Mode::Events(set));
    let inside = move |counts: &&EventCounts| IoInterval::covers(interval, counts.begin_nanos, counts.end_nanos);
    ended.flat_map(|(_, after)| &after.events).filter(inside)
}

/// One event as a window.
fn window(counts: &EventCounts, name: &str) -> Option<Window> {
    let count = counts.counts.get(name).map_or(0.0, |count| *count as f64);
    Window::of_counter(counts.begin_nanos, counts.end_nanos, count, counts.done)
}
