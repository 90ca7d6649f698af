//! What one meter saw between snapshots: busy cycles, capacity, and the work that was done.

use super::Context;
use super::io_time::own_growth;
use crate::cost::{BusyTime, Capacity, Cycles, WholeMachine, WorkloadThreads};
use crate::meter::{Counts, Meter, ReadAt};
use crate::record::{Done, Execution, IoInterval, Mode, Snapshot, Stretch, TaskOwner, TaskTime};
use crate::unit::Nanos;

/// At most so many groups make an interval: neighbouring windows are not independent, groups of them are
/// nearly so.
const GROUPS: usize = 20;
/// Names of the soaker's threads begin so.
pub(super) const SOAKER: &str = "iotoll-soak";

/// What one meter saw from one snapshot to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    /// Begin and end.
    pub begin: Nanos,
    pub end: Nanos,
    /// Cycles in the meter's scope.
    pub cycles: f64,
    /// Seconds of CPU that the machine had.
    pub capacity_seconds: f64,
    /// Work done, when it is counted.
    pub done: Option<Done>,
}

impl Window {
    pub(crate) fn seconds(&self) -> f64 {
        self.end.since(self.begin).seconds()
    }

    pub(super) fn join(&mut self, next: &Self) {
        self.end = next.end;
        self.cycles += next.cycles;
        self.capacity_seconds += next.capacity_seconds;
        self.done = match (self.done, next.done) {
            (Some(a), Some(b)) => Some(Done { ios: a.ios.saturating_add(b.ios), bytes: a.bytes + b.bytes }),
            _ => None,
        };
    }
}

/// What was watched: snapshots, and what is known of the tasks that ran meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched<'a> {
    stretch: &'a Stretch,
    /// Whose workload ran, if any did.
    execution: Option<&'a Execution>,
}

impl<'a> From<&'a Stretch> for Watched<'a> {
    fn from(stretch: &'a Stretch) -> Self {
        Self { stretch, execution: None }
    }
}

impl<'a> From<&'a Execution> for Watched<'a> {
    fn from(execution: &'a Execution) -> Self {
        Self { stretch: &execution.stretch, execution: Some(execution) }
    }
}

impl Watched<'_> {
    /// CPU time per second of wall time that the scheduler charged to tasks, in all of the stretch or within an interval of
    /// I/O. Its clocks leave steal out. `None` where no task could be read.
    fn charged_nanos_per_second(&self, interval: Option<IoInterval>) -> Option<f64> {
        let tasks =
            self.stretch.tasks.as_ref().filter(|tasks| tasks.wall_nanos > Nanos(0) && !tasks.tasks.is_empty())?;
        let command = self.execution.and_then(|execution| execution.command_cpu_nanos);
        // A soaker takes only time that nobody wanted, which is idle time.
        let counted = || tasks.tasks.iter().filter(|task| !task.name.starts_with(SOAKER));
        let sum =
            |of: &dyn Fn(&TaskTime) -> bool| counted().filter(|task| of(task)).map(|task| task.nanos).sum::<Nanos>();
        let per_second = |nanos: Nanos, seconds: f64| if seconds > 0.0 { nanos.as_f64() / seconds } else { 0.0 };
        // The kernel's workers for our own engines are no threads of the jobs'.
        let of_jobs = |task: &TaskTime| task.owner == TaskOwner::Workload && !task.name.starts_with("iou-");
        let others = per_second(
            sum(&|task| !of_jobs(task) && (command.is_none() || task.owner != TaskOwner::Workload)),
            tasks.wall_nanos.seconds(),
        );
        let jobs =
            self.execution.map(|execution| execution.jobs.iter().map(|job| job.thread_nanos).sum::<Option<Nanos>>());
        let jobs = jobs.flatten().filter(|nanos| *nanos > Nanos(0));
        let own = match (interval, jobs, command) {
            // What the jobs' threads used while they did I/O: a setup may have been another load altogether.
            (Some(interval), Some(jobs), _) => {
                let seconds = interval.end_nanos.since(interval.begin_nanos).seconds();
                // Jobs may count from different times on.
                let grown = self.execution.filter(|_| seconds > 0.0).and_then(own_growth);
                grown.map_or_else(|| per_second(jobs, seconds), |nanos| nanos / seconds)
            }
            // All that a command used, it used while it was watched.
            (_, _, Some(command)) => {
                let ends = self.stretch.snapshots.first().zip(self.stretch.snapshots.last());
                per_second(command, ends.map_or(0.0, |(first, last)| last.at_nanos.since(first.at_nanos).seconds()))
            }
            (_, _, None) => per_second(sum(&of_jobs), tasks.wall_nanos.seconds()),
        };
        Some(own + others)
    }
}

/// The windows in which `meter` was read, within `interval` where one is given.
pub(crate) fn windows<'a>(
    watched: impl Into<Watched<'a>>,
    meter: Meter,
    interval: Option<IoInterval>,
    context: &Context,
) -> Vec<Window> {
    let taken_off = |(window, stolen): (Window, f64)| Window { cycles: window.cycles - stolen, ..window };
    with_steal(&watched.into(), meter, interval, context).into_iter().map(taken_off).collect()
}

/// Cycles that are taken off the windows in an execution's time of I/O, because a hypervisor took them.
pub(crate) fn steal_taken_off(execution: &Execution, meter: Meter, context: &Context) -> f64 {
    with_steal(&execution.into(), meter, execution.io_interval, context).iter().map(|(_, stolen)| stolen).sum()
}

/// Each window with the cycles that a hypervisor took in it, as far as the meter has them as busy.
fn with_steal(watched: &Watched, meter: Meter, interval: Option<IoInterval>, context: &Context) -> Vec<(Window, f64)> {
    let wanted = Mode::of(meter);
    let mut found: Vec<(Window, Columns)> = Vec::new();
    let mut open: Option<&Snapshot> = None;
    for snapshot in &watched.stretch.snapshots {
        if let Some(before) = open
            && let Some(window) = window(before, snapshot, meter, context)
        {
            let between = Columns::between(before, snapshot).filter(|_| meter.takes_steal_for_busy());
            found.push((window, between.unwrap_or_default()));
            open = None;
        }
        // A meter that is read at every tenth snapshot has windows ten long, but none across a time in
        // which something else ran.
        if snapshot.mode != wanted {
            open = None;
        } else if open.is_none_or(|open| !is_read(open, meter)) {
            open = Some(snapshot);
        }
    }
    if let Some(interval) = interval {
        found.retain(|(window, _)| window.begin >= interval.begin_nanos && window.end <= interval.end_nanos);
    }
    // Of all windows together: steal is told in ticks of 10 ms, and tasks were read before and after all of them.
    let seconds: f64 = found.iter().map(|(window, _)| window.seconds()).sum();
    let not_idle = found.iter().map(|(window, _)| window.cycles).sum::<f64>() / context.clock.0 * 1e9;
    let steal = found.iter().map(|(_, columns)| columns.steal).sum();
    let busy = found.iter().map(|(_, columns)| columns.busy).sum::<Option<f64>>();
    let charged = watched.charged_nanos_per_second(interval).filter(|_| !context.steal_in_task_clocks);
    let charged = charged.map(|charged| charged * seconds).or(busy);
    let part = part_of_steal_in(not_idle, steal, charged);
    let cycles = |columns: Columns| context.clock.0 / 1e9 * columns.steal * part;
    found.into_iter().map(|(window, columns)| (window, cycles(columns))).collect()
}

/// Neighbouring windows together, at most [`GROUPS`] of about equal length.
pub(super) fn grouped(windows: &[Window]) -> Vec<Window> {
    let total: f64 = windows.iter().map(Window::seconds).sum();
    let least = total / GROUPS as f64 * 0.999;
    let mut groups: Vec<Window> = Vec::new();
    let mut length = 0.0;
    for window in windows {
        match groups.last_mut() {
            Some(group) if length < least => {
                group.join(window);
                length += window.seconds();
            }
            _ => {
                groups.push(*window);
                length = window.seconds();
            }
        }
    }
    // The last group may be a stub, too short to weigh as one of many.
    if let [.., before, last] = groups.as_mut_slice()
        && last.seconds() < least / 2.0
    {
        let last = *last;
        before.join(&last);
        groups.pop();
    }
    groups
}

/// Steal and busy time as the columns of /proc/stat have them, in nanoseconds of all CPUs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Columns {
    pub(crate) steal: f64,
    /// Sampled at the tick, and all steal of a CPU is taken off it, that of idle time too: it may be much too little, and is for
    /// where nothing else is known.
    pub(crate) busy: Option<f64>,
}

impl Columns {
    /// `None` when they were not read.
    pub(crate) fn between(before: &Snapshot, after: &Snapshot) -> Option<Self> {
        let (before, after) = (before.system.as_ref()?, after.system.as_ref()?);
        let busy = before.busy_nanos.zip(after.busy_nanos).map(|(before, after)| after.since(before).as_f64());
        Some(Self { steal: after.steal_nanos.since(before.steal_nanos).as_f64(), busy })
    }
}

/// Which part of steal lies in what an idle clock has as not idle, all in nanoseconds. The rest was a wait after a halt, which is
/// idle to the guest's clocks and stolen to KVM's. Steal is taken for busy as far as there is time that was charged to
/// nobody; all of it where that is not known.
pub(crate) fn part_of_steal_in(not_idle: f64, steal: f64, charged: Option<f64>) -> f64 {
    match charged {
        Some(charged) if steal > 0.0 => ((not_idle - charged) / steal).clamp(0.0, 1.0),
        _ => 1.0,
    }
}

/// What `meter` saw from one snapshot to another, with what the hypervisor took in it.
pub(crate) fn window(before: &Snapshot, after: &Snapshot, meter: Meter, context: &Context) -> Option<Window> {
    if after.at_nanos <= before.at_nanos {
        return None;
    }
    let (capacity, counted) = match meter.descriptor().read_at {
        ReadAt::EachCpu => counted_on_each_cpu(before, after, meter)?,
        ReadAt::Once => counted_once(before, after, meter, context)?,
    };
    let cycles = match meter.descriptor().counts {
        Counts::IdleTime => capacity.minus_idle(Nanos(counted)).cycles(context.clock).count(),
        Counts::BusyTime if !meter.sees_whole_machine() => {
            BusyTime::<WorkloadThreads>::from_nanos(counted as f64).cycles(context.clock).count()
        }
        Counts::BusyTime => BusyTime::<WholeMachine>::from_nanos(counted as f64).cycles(context.clock).count(),
        Counts::CoreCycles => Cycles::<WholeMachine>::counted(counted as f64).count(),
    };
    let done = match (before.done, after.done) {
        (Some(before), Some(after)) => {
            Some(Done { ios: after.ios.saturating_sub(before.ios), bytes: after.bytes.since(before.bytes) })
        }
        _ => None,
    };
    Some(Window { begin: before.at_nanos, end: after.at_nanos, cycles, capacity_seconds: capacity.cpu_seconds(), done })
}

/// Each CPU's counter between that CPU's own two readings.
fn counted_on_each_cpu(before: &Snapshot, after: &Snapshot, meter: Meter) -> Option<(Capacity, u64)> {
    let mut lengths = Vec::with_capacity(after.cpus.len());
    let mut counted = 0_u64;
    for (before, after) in before.cpus.iter().zip(&after.cpus) {
        lengths.push(after.at_nanos.since(before.at_nanos));
        let grown = after.counts.get(meter)?.total.saturating_sub(before.counts.get(meter)?.total);
        counted = counted.saturating_add(grown);
    }
    Some((Capacity::of_windows(lengths), counted))
}

fn counted_once(before: &Snapshot, after: &Snapshot, meter: Meter, context: &Context) -> Option<(Capacity, u64)> {
    let (before, after) = (before.clocks.get(meter)?, after.clocks.get(meter)?);
    let grown: Nanos = after.nanos.iter().zip(&before.nanos).map(|(after, before)| after.since(*before)).sum();
    Some((Capacity::of(context.cpus, after.at_nanos.since(before.at_nanos)), grown.0))
}

/// Whether a snapshot holds what `meter` read.
fn is_read(snapshot: &Snapshot, meter: Meter) -> bool {
    match meter.descriptor().read_at {
        ReadAt::EachCpu => snapshot.cpus.iter().all(|cpu| cpu.counts.get(meter).is_some()),
        ReadAt::Once => snapshot.clocks.get(meter).is_some(),
    }
}
