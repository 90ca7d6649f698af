//! Stolen time in rounds of slices: the part of its busy time that each case of a round keeps. Steal of an idle CPU is in no busy time; tasks
//! tell how long they ran.

use super::command::{self, CommandScale, Commands};
use super::rounds::cycles;
use super::{SliceReading, SliceRecord};
use crate::record::{Execution, Meter, Mode, Snapshot, Stretch, TaskOwner, TaskTimes};
use crate::study::Context;
use crate::study::windows::{Columns, part_of_steal_in};
use std::collections::BTreeMap;

/// Stolen CPU seconds, and the CPU seconds between the two readings.
pub(crate) fn stolen(slice: &SliceRecord, cpus: f64) -> (f64, f64) {
    let ends = match &slice.reading {
        SliceReading::Slice { .. } | SliceReading::Command { .. } => slice.reading.ends(),
        SliceReading::Execution(Execution { stretch: Stretch { snapshots, .. }, .. }) => {
            let measured = |snapshot: &&Snapshot| snapshot.mode != Mode::Gap;
            snapshots.iter().find(measured).zip(snapshots.last())
        }
    };
    let read = ends.and_then(|(before, after)| {
        let (first, last) = (before.system.as_ref()?, after.system.as_ref()?);
        let watched = after.at_nanos.since(before.at_nanos).seconds() * cpus;
        Some((last.steal_nanos.since(first.steal_nanos).seconds(), watched))
    });
    read.unwrap_or((0.0, 0.0))
}

/// Common properties of the slices of one case in a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SliceReadings {
    /// The CPUs of the machine, which may differ between rounds.
    pub context: Context,
    /// The fraction of busy time that remains after subtracting steal. Steal is counted in ticks of 10 ms, which is too
    /// coarse for a slice, but not for a round.
    pub kept: f64,
    /// What a count of a sliced command is worth.
    pub scale: CommandScale,
}

impl SliceReadings {
    /// For each case, and for the idle machine (`None`).
    pub fn by_case(
        slices: &[SliceRecord],
        commands: Commands,
        meter: Option<Meter>,
        context: &Context,
    ) -> BTreeMap<Option<usize>, Self> {
        let context = Context { cpus: cpus(slices).unwrap_or(context.cpus), ..*context };
        let meter = meter.filter(|meter| meter.takes_steal_for_busy());
        let mut busy: BTreeMap<Option<usize>, Busy> = BTreeMap::new();
        let (mut steal, mut sampled) = (0.0, None);
        for slice in slices {
            let of_case = busy.entry(slice.case).or_default();
            let Some((before, after)) = slice.reading.ends() else { continue };
            let (tasks, own) = match &slice.reading {
                SliceReading::Slice { work, tasks, .. } => (tasks.as_ref(), work.thread_nanos.as_f64()),
                SliceReading::Command { first, last, .. } => (None, command::thread_nanos(first, last).unwrap_or(0.0)),
                SliceReading::Execution(_) => continue,
            };
            let columns = Columns::between(before, after).unwrap_or_default();
            steal += columns.steal;
            let read = meter.and_then(|meter| cycles(slice, meter, &context));
            of_case.not_idle += read.map_or(0.0, |(cycles, _)| cycles / context.clock.0 * 1e9);
            // Clocks that include steal do not show where it is.
            of_case.charged += match tasks {
                _ if context.steal_in_task_clocks => 0.0,
                Some(tasks) => charged_in(tasks, before, after),
                None => own,
            };
            if tasks.is_none() || context.steal_in_task_clocks {
                *sampled.get_or_insert(0.0) += columns.busy.unwrap_or(0.0);
            }
        }
        let sum = |of: fn(&Busy) -> f64| busy.values().map(of).sum::<f64>();
        let (not_idle, charged) = (sum(|busy| busy.not_idle), sum(|busy| busy.charged));
        // The workers' clocks exclude the work of others, and the columns may be too low: the true value is at least
        // the larger one.
        let charged = sampled.map_or(charged, |sampled: f64| sampled.max(charged));
        let taken = steal * part_of_steal_in(not_idle, steal, Some(charged));
        let kept = shares(&busy, taken).into_iter();
        kept.map(|(case, kept)| (case, Self { context, kept, scale: CommandScale::of(commands, case) })).collect()
    }
}

/// CPU time that tasks were charged between two snapshots, in nanoseconds. Tasks were read before the first and after
/// the second, and iotoll did little else in between.
fn charged_in(tasks: &TaskTimes, before: &Snapshot, after: &Snapshot) -> f64 {
    let others = tasks.tasks.iter().filter(|task| task.owner != TaskOwner::Iotoll);
    let nanos: f64 = others.map(|task| task.nanos.as_f64()).sum();
    let (read, slice) = (tasks.wall_nanos.seconds(), after.at_nanos.since(before.at_nanos).seconds());
    if read > 0.0 { nanos * (slice / read).min(1.0) } else { 0.0 }
}

/// CPU time in the slices of one case, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    not_idle: f64,
    /// The part that is known to have been charged to tasks.
    charged: f64,
}

/// The fraction that each case keeps when `taken` is subtracted from all of them, in proportion to their busy time, but
/// at most the time that no task was charged for. A case that sleeps has little of that, because it loses the CPU while
/// it is idle.
fn shares(busy: &BTreeMap<Option<usize>, Busy>, taken: f64) -> BTreeMap<Option<usize>, f64> {
    let mut kept: BTreeMap<Option<usize>, f64> = busy.keys().map(|case| (*case, 1.0)).collect();
    let mut open: Vec<Option<usize>> =
        busy.iter().filter(|(_, busy)| busy.not_idle > 0.0).map(|(case, _)| *case).collect();
    let mut left = taken;
    while !open.is_empty() && left > 0.0 {
        let of = |case: &Option<usize>| busy.get(case).copied().unwrap_or_default();
        let sum: f64 = open.iter().map(|case| of(case).not_idle).sum();
        let rate = left / sum;
        let (full, rest): (Vec<_>, Vec<_>) = open.iter().partition(|case| {
            let busy = of(case);
            busy.not_idle * rate > busy.not_idle - busy.charged
        });
        for case in &full {
            let busy = of(case);
            let part = ((busy.not_idle - busy.charged) / busy.not_idle).clamp(0.0, 1.0);
            kept.insert(*case, 1.0 - part);
            left -= part * busy.not_idle;
        }
        if full.is_empty() {
            kept.extend(rest.iter().map(|case| (*case, (1.0 - rate).max(0.0))));
            break;
        }
        open = rest;
    }
    kept
}

/// Number of CPUs according to the machine's own clocks.
fn cpus(slices: &[SliceRecord]) -> Option<usize> {
    let of = |snapshot: &Snapshot| {
        let most =
            snapshot.counts.iter().filter(|(meter, _)| meter.sees_whole_machine()).map(|(_, count)| count.cpus).max();
        most.and_then(|cpus| usize::try_from(cpus).ok()).filter(|cpus| *cpus > 0)
    };
    slices.iter().find_map(|slice| slice.reading.pairs().find_map(|(before, _)| of(before)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kept fraction of each case when `taken` is subtracted, for pairs of busy time and time charged to tasks.
    fn kept(cases: &[(f64, f64)], taken: f64) -> Vec<f64> {
        let busy = cases.iter().map(|&(not_idle, charged)| Busy { not_idle, charged });
        let busy: BTreeMap<Option<usize>, Busy> = busy.enumerate().map(|(case, busy)| (Some(case), busy)).collect();
        shares(&busy, taken).into_values().collect()
    }

    #[test]
    fn a_sleeping_load_loses_at_most_its_uncharged_time() {
        let near = |found: Vec<f64>, expected: &[f64]| {
            let same = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9);
            assert!(same && found.len() == expected.len(), "{found:?}, not {expected:?}");
        };
        // One is busy all the time, and 0.3 s were stolen from it; the other sleeps, and lost the CPU while idle.
        near(kept(&[(2.0, 1.7), (0.2, 0.19)], 0.31), &[0.85, 0.95]);
        // Equal cases keep equal fractions, whoever does their work.
        near(kept(&[(1.0, 0.9), (1.0, 0.9)], 0.1), &[0.95, 0.95]);
        near(kept(&[(1.05, 1.0), (1.05, 0.5)], 0.1), &[1.0 / 1.05, 1.0 / 1.05]);
        // Nothing stolen; as much as possible; more than that; a case that did nothing.
        near(kept(&[(1.0, 0.5), (2.0, 0.5)], 0.0), &[1.0, 1.0]);
        near(kept(&[(1.0, 0.5), (2.0, 0.5)], 2.0), &[0.5, 0.25]);
        near(kept(&[(1.0, 0.5), (2.0, 0.5)], 9.0), &[0.5, 0.25]);
        near(kept(&[(0.0, 0.0), (2.0, 0.5)], 0.5), &[1.0, 0.75]);
        near(kept(&[(1.0, 1.1), (2.0, 0.5)], 0.5), &[1.0, 0.75]);
    }
}
