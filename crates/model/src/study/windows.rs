//! What a meter or a counter saw in windows, the time between snapshots, and in an execution's time of I/O; and stolen time: what idle clocks
//! count of it as busy, and the part of its busy time that each of several loads keeps.
//!
//! CPU time and cycles have their scope in the type, which excludes two published mistakes with "cycles per I/O". A busy time has a scope
//! ([`WholeMachine`], [`WorkloadThreads`]), so the utilisation of one core cannot be used for a machine. And [`Capacity`], CPUs × wall
//! time, cannot be divided by I/Os: what a machine could have spent is not what an I/O costs. Only subtracting an idle
//! time gives a cost.

use super::Context;
use crate::account::named::SOAKER;
use crate::meter::{Counts, Meter};
use crate::record::{Done, Execution, IoInterval, JobRecord, Mode, Snapshot, Stretch, TaskOwner, TaskTime, TaskTimes};
use crate::unit::{Hertz, Nanos};
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// A meter's measurement between two snapshots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Begin and end.
    pub begin: Nanos,
    pub end: Nanos,
    /// Its length, without the gaps between windows that were joined.
    pub measured: Nanos,
    /// Cycles in the meter's scope.
    pub cycles: f64,
    /// Seconds of CPU time that the machine had.
    pub capacity_seconds: f64,
    /// Work done, if counted.
    pub done: Option<Done>,
}

impl Window {
    /// How much a counter grew between two readings. The capacity is the length.
    pub(crate) fn of_counter(begin: Nanos, end: Nanos, grown: f64, done: Option<Done>) -> Option<Self> {
        let measured = end.since(begin);
        let capacity_seconds = measured.seconds();
        (measured > Nanos(0)).then_some(Self { begin, end, measured, cycles: grown, capacity_seconds, done })
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.measured.seconds()
    }

    pub(super) fn join(&mut self, next: &Self) {
        self.end = next.end;
        self.measured += next.measured;
        self.cycles += next.cycles;
        self.capacity_seconds += next.capacity_seconds;
        self.done = match (self.done, next.done) {
            (Some(a), Some(b)) => Some(Done { ios: a.ios.saturating_add(b.ios), bytes: a.bytes + b.bytes }),
            _ => None,
        };
    }
}

/// The windows in which `meter` was read, within `interval` if given.
pub(crate) fn windows<'a>(
    watched: impl Into<Watched<'a>>,
    meter: Meter,
    interval: Option<IoInterval>,
    context: &Context,
) -> Vec<Window> {
    let taken_off = |(window, stolen): (Window, f64)| Window { cycles: window.cycles - stolen, ..window };
    with_steal(&watched.into(), meter, interval, context).into_iter().map(taken_off).collect()
}

/// Stolen cycles that are subtracted from the windows in an execution's time of I/O.
pub(crate) fn steal_taken_off(execution: &Execution, meter: Meter, context: &Context) -> f64 {
    with_steal(&execution.into(), meter, execution.io_interval, context).iter().map(|(_, stolen)| stolen).sum()
}

/// Each window with the stolen cycles that the meter counts as busy.
fn with_steal(watched: &Watched, meter: Meter, interval: Option<IoInterval>, context: &Context) -> Vec<(Window, f64)> {
    let wanted = Mode::of(meter);
    let mut found: Vec<(Window, Columns)> = Vec::new();
    let mut open: Option<&Snapshot> = None;
    for snapshot in &watched.stretch.snapshots {
        let is_read = snapshot.counts.get(meter).is_some();
        if let Some(before) = open.take_if(|_| is_read)
            && let Some(window) = window(before, snapshot, meter, context)
        {
            let between = Columns::between(before, snapshot).filter(|_| meter.takes_steal_for_busy());
            found.push((window, between.unwrap_or_default()));
        }
        // A meter that is read at every tenth snapshot has windows of ten snapshots, but none that spans another
        // meter's windows.
        if snapshot.mode != wanted {
            open = None;
        } else if is_read {
            open = Some(snapshot);
        }
    }
    if let Some(interval) = interval {
        found.retain(|(window, _)| window.begin >= interval.begin_nanos && window.end <= interval.end_nanos);
    }
    // Computed for all windows together: steal is counted in ticks of 10 ms, and tasks were read before and after all
    // windows.
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

/// What was measured: snapshots, and what is known about the tasks that ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched<'a> {
    stretch: &'a Stretch,
    /// The execution of the workload, if it ran.
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
    /// CPU time per second of wall time that the scheduler charged to tasks, over the whole stretch or an interval of
    /// I/O. Its clocks exclude steal. `None` if no task could be read.
    fn charged_nanos_per_second(&self, interval: Option<IoInterval>) -> Option<f64> {
        let tasks =
            self.stretch.tasks.as_ref().filter(|tasks| tasks.wall_nanos > Nanos(0) && !tasks.tasks.is_empty())?;
        let command = self.execution.and_then(|execution| execution.command_cpu_nanos);
        // A soaker only uses otherwise idle time.
        let counted = || tasks.tasks.iter().filter(|task| !task.name.starts_with(SOAKER));
        let sum =
            |of: &dyn Fn(&TaskTime) -> bool| counted().filter(|task| of(task)).map(|task| task.nanos).sum::<Nanos>();
        let per_second = |nanos: Nanos, seconds: f64| if seconds > 0.0 { nanos.as_f64() / seconds } else { 0.0 };
        let ends = self.stretch.snapshots.first().zip(self.stretch.snapshots.last());
        let (length, measuring) = ends.map_or_else(Default::default, |(first, last)| {
            (last.at_nanos.since(first.at_nanos).seconds(), last.own_nanos.since(first.own_nanos))
        });
        // The kernel's workers for iotoll's own engines are not threads of the jobs.
        let of_jobs = |task: &TaskTime| task.owner == TaskOwner::Workload && !task.name.starts_with("iou-");
        let others = per_second(
            sum(&|task| !of_jobs(task) && (command.is_none() || task.owner != TaskOwner::Workload)),
            tasks.wall_nanos.seconds(),
        );
        let jobs =
            self.execution.map(|execution| execution.jobs.iter().map(|job| job.thread_nanos).sum::<Option<Nanos>>());
        let jobs = jobs.flatten().filter(|nanos| *nanos > Nanos(0));
        let own = match (interval, jobs, command) {
            // What the jobs' threads used during I/O, because the setup may be a different load.
            (Some(interval), Some(jobs), _) => {
                let seconds = interval.end_nanos.since(interval.begin_nanos).seconds();
                // Jobs may start counting at different times.
                let grown = self.execution.filter(|_| seconds > 0.0).and_then(own_growth);
                grown.map_or_else(|| per_second(jobs, seconds), |nanos| nanos / seconds)
            }
            // A command used all of its CPU time while it was measured.
            (_, _, Some(command)) => per_second(command, length),
            (_, _, None) => per_second(sum(&of_jobs), tasks.wall_nanos.seconds()),
        };
        // The thread that measures is left out of the busy time.
        Some((own + others - per_second(measuring, length)).max(0.0))
    }
}

/// Steal and busy time according to /proc/stat, in nanoseconds over all CPUs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Columns {
    pub steal: f64,
    /// Sampled at the tick, and reduced by all steal of a CPU, including steal of idle time. It may be much too low,
    /// and is only used if nothing else is known.
    pub busy: Option<f64>,
}

impl Columns {
    /// `None` if they were not read.
    pub(crate) fn between(before: &Snapshot, after: &Snapshot) -> Option<Self> {
        let (before, after) = (before.system.as_ref()?, after.system.as_ref()?);
        let busy = before.busy_nanos.zip(after.busy_nanos).map(|(before, after)| after.since(before).as_f64());
        Some(Self { steal: after.steal_nanos.since(before.steal_nanos).as_f64(), busy })
    }
}

/// The fraction of the stolen time that an idle clock counts as not idle. The rest was a wait after a halt,
/// which is idle for the guest's clocks and stolen for KVM. Steal counts as busy up to the time that no task is charged
/// for; if that is unknown, all of it counts.
pub(crate) fn part_of_steal_in(not_idle: f64, steal: f64, charged: Option<f64>) -> f64 {
    match charged {
        Some(charged) if steal > 0.0 => ((not_idle - charged) / steal).clamp(0.0, 1.0),
        _ => 1.0,
    }
}

/// CPU time that tasks were charged between two snapshots, in nanoseconds. Tasks were read before the first and after
/// the second, and iotoll did little else in between.
pub(crate) fn charged_in(tasks: &TaskTimes, before: &Snapshot, after: &Snapshot) -> f64 {
    let others = tasks.tasks.iter().filter(|task| task.owner != TaskOwner::Iotoll);
    let nanos: f64 = others.map(|task| task.nanos.as_f64()).sum();
    let (read, slice) = (tasks.wall_nanos.seconds(), after.at_nanos.since(before.at_nanos).seconds());
    if read > 0.0 { nanos * (slice / read).min(1.0) } else { 0.0 }
}

/// CPU time in the slices of one case, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Busy {
    pub not_idle: f64,
    /// The part that is known to have been charged to tasks.
    pub charged: f64,
}

/// The fraction that each case keeps when `taken` is subtracted from all of them, in proportion to their busy time, but
/// at most the time that no task was charged for. A case that sleeps has little of that, because it loses the CPU while
/// it is idle.
pub(crate) fn shares(busy: &BTreeMap<Option<usize>, Busy>, taken: f64) -> BTreeMap<Option<usize>, f64> {
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

/// What `meter` measured between two snapshots, including stolen time.
pub(crate) fn window(before: &Snapshot, after: &Snapshot, meter: Meter, context: &Context) -> Option<Window> {
    if after.at_nanos <= before.at_nanos {
        return None;
    }
    // Two readings of a different number of CPUs have nothing in between.
    let earlier = before.counts.get(meter)?;
    let count = after.counts.get(meter).filter(|count| count.cpus == earlier.cpus)?;
    let capacity = Capacity::of(count.cpus, count.at_nanos.since(earlier.at_nanos));
    let counted = count.total.saturating_sub(earlier.total);
    let own = after.own_nanos.since(before.own_nanos);
    let cycles = match meter.descriptor().counts {
        Counts::IdleTime => capacity.minus_idle(Nanos(counted) + own).cycles(context.clock).count(),
        Counts::BusyTime if !meter.sees_whole_machine() => {
            BusyTime::<WorkloadThreads>::from_nanos(counted as f64).cycles(context.clock).count()
        }
        Counts::BusyTime => BusyTime::<WholeMachine>::from_nanos(counted as f64).cycles(context.clock).count(),
        Counts::CoreCycles => Cycles::<WholeMachine>::counted(counted as f64).count(),
    };
    let done = done_between(before, after);
    let (begin, end) = (before.at_nanos, after.at_nanos);
    Some(Window { begin, end, measured: end.since(begin), cycles, capacity_seconds: capacity.cpu_seconds(), done })
}

/// Scope: every CPU, whoever used it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WholeMachine;

/// Scope: the threads of the workload, without what others did for them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkloadThreads;

/// The time that a machine can spend in a window: the sum over CPUs of the window's length on that CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    nanos: f64,
}

impl Capacity {
    /// `cpus` CPUs for `wall`.
    pub fn of(cpus: u32, wall: Nanos) -> Self {
        Self { nanos: f64::from(cpus) * wall.as_f64() }
    }

    /// The time of the whole machine that was not idle, including what the hypervisor stole while a CPU was busy. A
    /// clock that ran a little ahead can make it negative. It is not clipped, because the sum over windows corrects
    /// that.
    pub fn minus_idle(self, idle: Nanos) -> BusyTime<WholeMachine> {
        BusyTime::from_nanos(self.nanos - idle.as_f64())
    }

    pub fn cpu_seconds(self) -> f64 {
        self.nanos / 1e9
    }
}

/// CPU time used within a scope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BusyTime<S> {
    nanos: f64,
    scope: PhantomData<S>,
}

impl<S> BusyTime<S> {
    /// From nanoseconds of CPU time of this scope.
    pub fn from_nanos(nanos: f64) -> Self {
        Self { nanos, scope: PhantomData }
    }

    /// Reference cycles: TSC Hz × CPU time.
    pub fn cycles(self, clock: Hertz) -> Cycles<S> {
        Cycles { count: self.nanos * clock.0 / 1e9, scope: PhantomData }
    }
}

/// Cycles used within a scope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cycles<S> {
    count: f64,
    scope: PhantomData<S>,
}

impl<S> Cycles<S> {
    /// From a hardware counter of this scope.
    pub fn counted(count: f64) -> Self {
        Self { count, scope: PhantomData }
    }

    /// Number of cycles.
    pub fn count(self) -> f64 {
        self.count
    }

    /// Cycles per I/O or byte; `None` if `work` is 0.
    pub fn per(self, work: u64) -> Option<f64> {
        (work > 0).then(|| self.count / work as f64)
    }
}

/// The windows of a counter that snapshots have, within `interval` if given. `between` tells how much it grew.
pub(super) fn windows_of_counter(
    stretch: &Stretch,
    interval: Option<IoInterval>,
    between: impl Fn(&Snapshot, &Snapshot) -> Option<Window>,
) -> Vec<Window> {
    let window = |(before, after): (&Snapshot, &Snapshot)| {
        let window = between(before, after)?;
        IoInterval::covers(interval, window.begin.min(before.at_nanos), after.at_nanos).then_some(window)
    };
    quiet_pairs(stretch).filter_map(window).collect()
}

/// The windows that show the load: if a meter that disturbs it runs in some, only the quiet ones do.
pub(super) fn quiet_pairs(stretch: &Stretch) -> impl Iterator<Item = (&Snapshot, &Snapshot)> {
    let quiet = stretch.snapshots.iter().any(|snapshot| snapshot.mode == Mode::Quiet);
    let counts = move |mode: Mode| if quiet { mode == Mode::Quiet } else { mode != Mode::Gap };
    stretch.pairs().filter(move |(before, _)| counts(before.mode))
}

/// The work between two snapshots, if both have it.
pub(super) fn done_between(before: &Snapshot, after: &Snapshot) -> Option<Done> {
    let (before, after) = (before.done?, after.done?);
    Some(Done { ios: after.ios.saturating_sub(before.ios), bytes: after.bytes.since(before.bytes) })
}

/// How long an execution did I/O, in seconds.
pub fn io_seconds(execution: &Execution) -> f64 {
    let (begin, end) = match (execution.io_interval, execution.stretch.snapshots.as_slice()) {
        (Some(interval), _) => (interval.begin_nanos, interval.end_nanos),
        (None, [first, .., last]) => (first.at_nanos, last.at_nanos),
        _ => return 0.0,
    };
    at_work(execution, end).since(begin).seconds()
}

/// This instant, or the end of the jobs if that was before it.
fn at_work(execution: &Execution, at: Nanos) -> Nanos {
    execution.jobs_ended_nanos.map_or(at, |ended| ended.min(at))
}

/// The growth of a cumulative counter during the time of I/O. `read` returns the time and the value of a reading. The
/// ends of this time lie between snapshots, so the growth between the first and the last snapshot within it is scaled
/// by time. `None` if fewer than two snapshots have the counter.
pub(super) fn growth(execution: &Execution, read: impl Fn(&Snapshot) -> Option<(Nanos, u64)>) -> Option<f64> {
    let within = |at: &&Snapshot| IoInterval::covers(execution.io_interval, at.at_nanos, at.at_nanos);
    let mut readings = execution.stretch.snapshots.iter().filter(within).filter_map(read);
    let ((begin, before), (end, after)) = (readings.next()?, readings.next_back()?);
    let seconds = at_work(execution, end).since(begin).seconds();
    (seconds > 0.0).then(|| after.saturating_sub(before) as f64 / seconds * io_seconds(execution))
}

/// The work of the workload's own threads in a common time: CPU time in nanoseconds, and I/Os.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Own {
    pub(super) nanos: f64,
    pub(super) ios: f64,
}

/// The sum over all executions, if the snapshots have the values. The jobs' own totals start at different times (each
/// after its own start and ramp), so they cannot be compared with a meter's reading over the time in which all jobs
/// ran.
pub(super) fn own_in_interval(executions: &[Execution]) -> Option<Own> {
    let mut own = Own::default();
    for execution in executions {
        execution.io_interval?;
        own.nanos += own_growth(execution)?;
        own.ios += growth(execution, |snapshot| snapshot.done.map(|done| (snapshot.at_nanos, done.ios)))?;
    }
    (own.ios > 0.0 && own.nanos > 0.0).then_some(own)
}

/// CPU time of the workload's own threads during I/O, in nanoseconds. `None` for a command, whose snapshots do not
/// contain it.
pub(crate) fn own_growth(execution: &Execution) -> Option<f64> {
    if execution.command_cpu_nanos.is_some() {
        return None;
    }
    growth(execution, |snapshot| snapshot.thread_nanos().map(|nanos| (snapshot.at_nanos, nanos.0)))
}

/// Context switches of the whole machine during I/O, including the background.
pub(crate) fn switches(execution: &Execution) -> Option<f64> {
    growth(execution, |snapshot| snapshot.system.map(|stat| (stat.at_nanos, stat.context_switches)))
}

/// A sum over jobs; `None` if it is 0, because the value is then unknown.
pub(crate) fn total<'a>(jobs: impl Iterator<Item = &'a JobRecord>, of: impl Fn(&JobRecord) -> u64) -> Option<u64> {
    Some(jobs.map(of).fold(0, u64::saturating_add)).filter(|total| *total > 0)
}

#[cfg(test)]
mod tests;
