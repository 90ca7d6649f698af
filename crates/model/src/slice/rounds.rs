//! What was measured in slices and executions, summed by case and round.
//!
//! The sums grow while the experiment is measured, because it ends when it is precise enough.

use super::command::{self, CommandScale, Commands, is_uncounted};
use super::{Measured, Round, RoundRecord, Rounds, SliceReading, SliceRecord};
use crate::experiment::{Metric, WorkCounter};
use crate::record::{
    Direction, Execution, Host, JobRecord, Latency, Meter, MeterStatus, Mode, Snapshot, Stretch, TaskOwner, TaskTimes,
};
use crate::study::steal::{Columns, part_of_steal_in};
use crate::study::windows::{self, Window, steal_taken_off, window};
use crate::study::work::{self, io_seconds};
use crate::study::{Context, page_cache};
use crate::unit::Bytes;
use std::collections::BTreeMap;

/// How the meter of the cycles is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// By the first round; the others are not measured yet.
    FirstRound,
    /// By all of the rounds.
    AllRounds,
    /// Already chosen; may be none.
    Fixed(Option<Meter>),
}

/// Rounds of slices, as they are measured.
pub struct MeasuredSlices {
    pub rounds: Rounds,
    /// How to read the slices of each case, by round.
    readings: Vec<BTreeMap<usize, SliceReadings>>,
    context: Context,
    choice: Choice,
    counter: Option<WorkCounter>,
}

impl MeasuredSlices {
    /// These rounds; more may be added.
    pub fn of(
        cases: usize,
        host: &Host,
        counter: Option<&WorkCounter>,
        (choice, rounds): (Choice, &[RoundRecord]),
    ) -> Self {
        let context = Context::of(host);
        let meter = match choice {
            Choice::Fixed(meter) => meter,
            Choice::AllRounds => first_that_reads(rounds, &context),
            Choice::FirstRound => None,
        };
        let empty = Rounds::new(cases, context, meter);
        let mut measured = Self { rounds: empty, readings: Vec::new(), context, choice, counter: counter.cloned() };
        rounds.iter().for_each(|round| measured.add(round));
        measured
    }

    /// Without this many rounds at the beginning.
    pub fn after(&self, rounds: usize) -> Self {
        let readings = self.readings.get(rounds..).unwrap_or_default().to_vec();
        let (context, choice, counter) = (self.context, self.choice, self.counter.clone());
        Self { rounds: self.rounds.after(rounds), readings, context, choice, counter }
    }

    /// Adds a complete round.
    pub fn add(&mut self, round: &RoundRecord) {
        if self.choice == Choice::FirstRound && self.rounds.rounds.is_empty() {
            self.rounds.meter = first_that_reads(std::slice::from_ref(round), &self.context);
        }
        let mut sums = Round { cases: vec![Measured::default(); self.rounds.cases()], ..Round::default() };
        let mut readings = BTreeMap::new();
        let meter = self.rounds.meter;
        let commands = Commands { counter: self.counter.as_ref(), totals: &round.commands };
        let by_case = SliceReadings::by_case(&round.slices, commands, meter, &self.context);
        for slice in round.slices.iter().filter(|slice| !is_uncounted(slice)) {
            let by_case = by_case.get(&slice.case).copied().unwrap_or_else(|| self.unknown_readings());
            let read = measured(slice, meter, &by_case);
            let (stolen, watched) = stolen(slice, by_case.context.cpus as f64);
            sums.stolen = (sums.stolen.0 + stolen, sums.stolen.1 + watched);
            match slice.case {
                None => sums.background.add(&read),
                Some(case) => {
                    readings.insert(case, by_case);
                    if let Some(case) = sums.cases.get_mut(case) {
                        case.add(&read);
                    }
                }
            }
        }
        self.rounds.rounds.push(sums);
        self.readings.push(readings);
    }

    fn unknown_readings(&self) -> SliceReadings {
        SliceReadings { context: self.context, kept: 1.0, scale: CommandScale::default() }
    }

    /// One slice, net of the background of its round.
    pub fn cost(&self, round: usize, slice: &SliceRecord) -> SliceCost {
        let known = self.readings.get(round).and_then(|readings| readings.get(&slice.case?).copied());
        let readings = known.unwrap_or_else(|| self.unknown_readings());
        let read = measured(slice, self.rounds.meter, &readings);
        let (ios, seconds) = (read.ios, Some(read.seconds).filter(|seconds| *seconds > 0.0));
        let alone = self.rounds.rounds.get(round).filter(|round| !self.rounds.is_unseen(round)).map(|round| Round {
            cases: vec![read],
            background: round.background.clone(),
            ..Round::default()
        });
        let pair = alone.and_then(|alone| alone.pair(Metric::CyclesPerIo, 0));
        let cycles_per_io = pair.filter(|pair| pair.denominator > 0.0).map(|pair| pair.numerator / pair.denominator);
        SliceCost { ios, seconds, cycles_per_io }
    }
}

/// The first meter that read every slice of these rounds, and is fine enough for them.
fn first_that_reads(rounds: &[RoundRecord], context: &Context) -> Option<Meter> {
    Meter::by_trust().find(|meter| slices(rounds).all(|slice| reads(*meter, slice, context)))
}

/// Why none of these meters did.
pub fn why_unmetered(rounds: &[RoundRecord], meters: &[MeterStatus]) -> &'static str {
    let of_machine = || meters.iter().filter(|it| Meter::by_trust().any(|meter| meter == it.meter));
    let runs = |fits: &dyn Fn(Meter) -> bool| of_machine().any(|it| it.status.taken().is_some() && fits(it.meter));
    if runs(&|meter| slices(rounds).all(|slice| is_fine_enough(meter, slice))) {
        "no meter of the whole machine read all slices: a CPU came or went, or a reading failed; measure again"
    } else if runs(&|_| true) {
        "slices are too short for the steps of the meters of the whole machine; see `iotoll doctor`"
    } else if of_machine().any(|it| it.status.reason().is_some_and(|reason| reason.starts_with("not chosen"))) {
        "--meters leaves out the meters of the whole machine"
    } else {
        "no meter of the whole machine is available; see `iotoll doctor`"
    }
}

fn slices(rounds: &[RoundRecord]) -> impl Iterator<Item = &SliceRecord> {
    rounds.iter().flat_map(|round| &round.slices)
}

fn reads(meter: Meter, slice: &SliceRecord, context: &Context) -> bool {
    is_fine_enough(meter, slice) && cycles(slice, meter, context).is_some()
}

/// Whether a slice of a case has a thousand steps of the meter's reading: 10 s for the ticks of /proc/stat.
fn is_fine_enough(meter: Meter, slice: &SliceRecord) -> bool {
    const STEPS: f64 = 1e3;
    let length = |(before, after): (&Snapshot, &Snapshot)| after.at_nanos.since(before.at_nanos).as_f64();
    let is_slice = slice.case.is_some() && !matches!(slice.reading, SliceReading::Execution(_));
    let length = slice.reading.ends().filter(|_| is_slice).map(length);
    length.is_none_or(|length| length >= STEPS * meter.resolution_nanos())
}

/// What one slice did, and what that cost; `None` where it is unknown.
pub struct SliceCost {
    pub ios: Option<f64>,
    /// The time that they took, in seconds.
    pub seconds: Option<f64>,
    /// Net cycles per I/O.
    pub cycles_per_io: Option<f64>,
}

fn measured(slice: &SliceRecord, meter: Option<Meter>, readings: &SliceReadings) -> Measured {
    let context = &readings.context;
    let (gross_cycles, capacity_seconds) = meter
        .and_then(|meter| cycles(slice, meter, context))
        .map_or((None, 0.0), |(cycles, capacity)| (Some(cycles), capacity));
    let of_slice = || Measured {
        count: 1.0,
        gross_cycles: gross_cycles.map(|cycles| cycles * readings.kept),
        stolen_cycles: gross_cycles.map_or(0.0, |cycles| cycles * (1.0 - readings.kept)),
        capacity_seconds,
        switches: slice.reading.ends().and_then(|(before, after)| switches(before, after)),
        ..Measured::default()
    };
    match &slice.reading {
        SliceReading::Slice { before, after, .. } if slice.case.is_none() => {
            Measured { seconds: after.at_nanos.since(before.at_nanos).seconds(), ..of_slice() }
        }
        SliceReading::Slice { work, .. } => Measured {
            seconds: work.wall_nanos.seconds(),
            ios: Some(work.ios as f64),
            bytes: Some(work.bytes.as_f64()),
            thread_cycles: Some(work.thread_nanos.seconds() * context.clock.0),
            latency_nanos: Some(work.latency_nanos.as_f64()),
            read_bytes: work.read_bytes.map(Bytes::as_f64),
            storage_read: work.storage_read.map(Bytes::as_f64),
            ..of_slice()
        },
        SliceReading::Command { first, last, .. } => Measured {
            seconds: last.at_nanos.since(first.at_nanos).seconds(),
            ios: readings.scale.ios(first, last),
            bytes: readings.scale.bytes(first, last),
            thread_cycles: command::thread_nanos(first, last).map(|nanos| nanos / 1e9 * context.clock.0),
            read_bytes: readings.scale.read_bytes(first, last),
            storage_read: command::storage_read(first, last),
            ..of_slice()
        },
        SliceReading::Execution(execution) => {
            let whole = meter.and_then(|meter| whole(execution, meter, context));
            Measured {
                count: 1.0,
                whole_seconds: whole_seconds(execution),
                whole_cycles: whole.map(|(cycles, _)| cycles),
                whole_capacity_seconds: whole.map(|(_, capacity)| capacity),
                seconds: io_seconds(execution),
                ios: total(execution, JobRecord::ios),
                bytes: total(execution, |job| job.bytes().0),
                gross_cycles,
                stolen_cycles: meter.map_or(0.0, |meter| steal_taken_off(execution, meter, context)),
                capacity_seconds,
                switches: work::switches(execution),
                thread_cycles: execution.own_nanos().map(|nanos| nanos.seconds() * context.clock.0),
                latency_nanos: reported_mean(execution),
                read_bytes: page_cache::file_reads(execution),
                storage_read: page_cache::from_storage(execution),
                reported: reported_percentiles(execution),
            }
        }
    }
}

fn switches(before: &Snapshot, after: &Snapshot) -> Option<f64> {
    let (before, after) = (before.system.as_ref()?, after.system.as_ref()?);
    Some(after.context_switches.saturating_sub(before.context_switches) as f64)
}

fn total(execution: &Execution, of: fn(&JobRecord) -> u64) -> Option<f64> {
    let total: u64 = execution.jobs.iter().map(of).fold(0, u64::saturating_add);
    (total > 0).then_some(total as f64)
}

fn reported_mean(execution: &Execution) -> Option<f64> {
    let mut sum = 0.0;
    for direction in active(execution) {
        let Latency::Reported { mean_nanos, .. } = direction.latency else { return None };
        sum += mean_nanos * direction.ios as f64;
    }
    (sum > 0.0).then_some(sum)
}

/// Percentiles of several jobs or directions cannot be pooled, so the result is then empty.
fn reported_percentiles(execution: &Execution) -> Vec<(f64, f64)> {
    match active(execution).collect::<Vec<_>>().as_slice() {
        [only] => match &only.latency {
            Latency::Reported { percentiles, .. } => {
                percentiles.iter().map(|(percent, nanos)| (*percent, nanos.as_f64())).collect()
            }
            Latency::None | Latency::Ticks(_) => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The directions of all jobs in which I/Os were done.
fn active(execution: &Execution) -> impl Iterator<Item = &Direction> {
    execution.jobs.iter().flat_map(JobRecord::directions).filter(|direction| direction.ios > 0)
}

/// Stolen CPU seconds, and the CPU seconds between the two readings.
fn stolen(slice: &SliceRecord, cpus: f64) -> (f64, f64) {
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
struct SliceReadings {
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

/// Cycles of the whole machine in a slice (including stolen ones for short slices), and the available seconds of CPU
/// time.
fn cycles(slice: &SliceRecord, meter: Meter, context: &Context) -> Option<(f64, f64)> {
    match &slice.reading {
        SliceReading::Slice { before, after, .. } | SliceReading::Command { before, after, .. } => {
            let window = window(before, after, meter, context)?;
            (window.capacity_seconds > 0.0).then_some((window.cycles, window.capacity_seconds))
        }
        SliceReading::Execution(execution) => {
            let whole = io_seconds(execution) * context.cpus as f64;
            let (cycles, capacity) = during_io(execution, meter, context);
            // Windows cover all of the time except its ends, so their rate is used for the whole time.
            (capacity > 0.0).then(|| (cycles / capacity * whole, whole))
        }
    }
}

/// From before the start of a command until after its end.
fn whole_seconds(execution: &Execution) -> Option<f64> {
    let snapshots = &execution.stretch.snapshots;
    Some(snapshots.last()?.at_nanos.since(snapshots.first()?.at_nanos).seconds())
}

/// Cycles and capacity over a whole execution.
fn whole(execution: &Execution, meter: Meter, context: &Context) -> Option<(f64, f64)> {
    let windows = windows::windows(execution, meter, None, context);
    let sum = |of: fn(&Window) -> f64| windows.iter().map(of).sum::<f64>();
    let (cycles, capacity) = (sum(|window| window.cycles), sum(|window| window.capacity_seconds));
    let all = whole_seconds(execution)? * context.cpus as f64;
    (capacity > 0.0).then(|| (cycles / capacity * all, all))
}

/// Cycles and capacity of the windows in which the command did I/O. If these windows cover less than half of that time,
/// the windows at its ends are included in proportion.
fn during_io(execution: &Execution, meter: Meter, context: &Context) -> (f64, f64) {
    let sum = |windows: &[(f64, Window)]| {
        let add = |(cycles, capacity): (f64, f64), (part, window): &(f64, Window)| {
            (cycles + part * window.cycles, capacity + part * window.capacity_seconds)
        };
        windows.iter().fold((0.0, 0.0), add)
    };
    let within = windows::windows(execution, meter, execution.io_interval, context);
    let covered: f64 = within.iter().map(Window::seconds).sum();
    match execution.io_interval {
        Some(interval) if covered < io_seconds(execution) / 2.0 => {
            let part = |window: Window| {
                let (begin, end) = (window.begin.max(interval.begin_nanos), window.end.min(interval.end_nanos));
                (end.since(begin).seconds() / window.seconds(), window)
            };
            sum(&windows::windows(execution, meter, None, context).into_iter().map(part).collect::<Vec<_>>())
        }
        _ => sum(&within.into_iter().map(|window| (1.0, window)).collect::<Vec<_>>()),
    }
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
