//! What one meter saw between snapshots: busy cycles, capacity, and the work that was done.

use super::Context;
use crate::cost::{BusyTime, Capacity, Cycles, WholeMachine, WorkloadThreads};
use crate::record::{Done, IoInterval, Meter, Mode, Snapshot, Stretch};
use crate::unit::Nanos;

/// At most so many groups make an interval: neighbouring windows are not independent, groups of them are
/// nearly so.
const GROUPS: usize = 20;

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

    fn join(&mut self, next: &Self) {
        self.end = next.end;
        self.cycles += next.cycles;
        self.capacity_seconds += next.capacity_seconds;
        self.done = match (self.done, next.done) {
            (Some(a), Some(b)) => Some(Done { ios: a.ios.saturating_add(b.ios), bytes: a.bytes + b.bytes }),
            _ => None,
        };
    }
}

/// The windows in which `meter` was read, within `interval` where one is given.
pub(crate) fn windows(stretch: &Stretch, meter: Meter, interval: Option<IoInterval>, context: &Context) -> Vec<Window> {
    let wanted = match meter {
        Meter::Soaker => Mode::Soaker,
        Meter::Sampler => Mode::Sampler,
        _ => Mode::Quiet,
    };
    let mut found = Vec::new();
    let mut open: Option<&Snapshot> = None;
    let steal = Steal::TakenOff(steal_beside_idle(&stretch.snapshots, context));
    for snapshot in &stretch.snapshots {
        if let Some(before) = open
            && let Some(window) = window_with(before, snapshot, meter, context, steal)
        {
            found.push(window);
            open = None;
        }
        // A meter that is read at every tenth snapshot has windows ten long, but none across a time in
        // which something else ran.
        if snapshot.mode != wanted {
            open = None;
        } else if open.is_none_or(|open| meter == Meter::TimerList && open.timer_list.is_none()) {
            open = Some(snapshot);
        }
    }
    if let Some(interval) = interval {
        found.retain(|window| window.begin >= interval.begin_nanos && window.end <= interval.end_nanos);
    }
    found
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

/// What is done about time that a hypervisor took away, which the idle clocks see as busy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Steal {
    /// This part of it is taken off.
    TakenOff(f64),
    /// It is left in, for the caller to take off: it is known in ticks of 10 ms, which are too coarse for a short window.
    LeftIn,
}

/// CPU time as the columns of /proc/stat have it, from one reading to another.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Columns {
    wall: f64,
    idle: f64,
    steal: f64,
    busy: f64,
}

impl Columns {
    /// `None` when one of them was not read.
    pub(crate) fn between(before: &Snapshot, after: &Snapshot, context: &Context) -> Option<Self> {
        let (before, after) = (before.proc_stat.as_ref()?, after.proc_stat.as_ref()?);
        Some(Self {
            wall: after.at_nanos.since(before.at_nanos).as_f64() * context.cpus as f64,
            idle: after.idle_nanos.since(before.idle_nanos).as_f64(),
            steal: after.steal_nanos.since(before.steal_nanos).as_f64(),
            busy: after.busy_nanos?.since(before.busy_nanos?).as_f64(),
        })
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.wall += other.wall;
        self.idle += other.idle;
        self.steal += other.steal;
        self.busy += other.busy;
    }

    /// Which part of steal is not idle time as well. A CPU that waits for the hypervisor after a halt is idle to the guest's
    /// clocks, and KVM counts the wait as steal: then the columns are more than the wall time, by just that.
    pub(crate) fn beside_idle(&self) -> f64 {
        let overlap = (self.idle + self.busy + self.steal - self.wall).clamp(0.0, self.steal.max(0.0));
        if self.steal > 0.0 { 1.0 - overlap / self.steal } else { 1.0 }
    }
}

/// Of a whole stretch, because steal is told in ticks of 10 ms, and the busy columns are sampled. All of it, where that
/// cannot be told.
fn steal_beside_idle(snapshots: &[Snapshot], context: &Context) -> f64 {
    let mut read = snapshots.iter().filter(|snapshot| snapshot.proc_stat.is_some());
    let ends = read.next().zip(read.next_back());
    ends.and_then(|(first, last)| Columns::between(first, last, context)).map_or(1.0, |columns| columns.beside_idle())
}

/// What `meter` saw from one snapshot to another, with or without what the hypervisor took.
pub(crate) fn window_with(
    before: &Snapshot,
    after: &Snapshot,
    meter: Meter,
    context: &Context,
    steal: Steal,
) -> Option<Window> {
    let length = after.at_nanos.since(before.at_nanos);
    if length == Nanos(0) {
        return None;
    }
    let stolen = match (&before.proc_stat, &after.proc_stat) {
        (Some(before), Some(after)) => after.steal_nanos.since(before.steal_nanos),
        _ => Nanos(0),
    };
    let stolen = match steal {
        Steal::TakenOff(part) => Nanos((stolen.as_f64() * part) as u64),
        Steal::LeftIn => Nanos(0),
    };
    let (capacity, cycles) = match meter {
        Meter::Idle | Meter::Soaker => per_cpu_idle(before, after, meter, stolen, context)?,
        Meter::TimerList => {
            let (before, after) = (before.timer_list.as_ref()?, after.timer_list.as_ref()?);
            let idle = after.idle_nanos.iter().zip(&before.idle_nanos).map(|(after, before)| after.since(*before));
            let capacity = Capacity::of(context.cpus, after.at_nanos.since(before.at_nanos));
            (capacity, capacity.minus_idle(idle.sum(), stolen).cycles(context.clock).count())
        }
        Meter::ProcStat => {
            let (before, after) = (before.proc_stat.as_ref()?, after.proc_stat.as_ref()?);
            let capacity = Capacity::of(context.cpus, after.at_nanos.since(before.at_nanos));
            let busy = capacity.minus_idle(after.idle_nanos.since(before.idle_nanos), stolen);
            (capacity, busy.cycles(context.clock).count())
        }
        Meter::Sampler => sampled(before, after, context)?,
        Meter::Pmu => counted(before, after)?,
        Meter::Thread => {
            let used = after.thread_nanos?.since(before.thread_nanos?).as_f64();
            let cycles = BusyTime::<WorkloadThreads>::from_nanos(used).cycles(context.clock);
            (Capacity::of(context.cpus, length), cycles.count())
        }
    };
    let done = match (before.done, after.done) {
        (Some(before), Some(after)) => {
            Some(Done { ios: after.ios.saturating_sub(before.ios), bytes: after.bytes.since(before.bytes) })
        }
        _ => None,
    };
    Some(Window { begin: before.at_nanos, end: after.at_nanos, cycles, capacity_seconds: capacity.cpu_seconds(), done })
}

/// Each CPU's idle time against that CPU's own window.
fn per_cpu_idle(
    before: &Snapshot,
    after: &Snapshot,
    meter: Meter,
    stolen: Nanos,
    context: &Context,
) -> Option<(Capacity, f64)> {
    let idle = |reading: &crate::record::CpuReading| match meter {
        Meter::Soaker => reading.soaked_nanos,
        _ => reading.idle_nanos,
    };
    let mut lengths = Vec::with_capacity(after.cpus.len());
    let mut total = Nanos(0);
    for (before, after) in before.cpus.iter().zip(&after.cpus) {
        lengths.push(after.at_nanos.since(before.at_nanos));
        total += idle(after)?.since(idle(before)?);
    }
    let capacity = Capacity::of_windows(lengths);
    let busy: BusyTime<WholeMachine> = capacity.minus_idle(total, stolen);
    Some((capacity, busy.cycles(context.clock).count()))
}

fn sampled(before: &Snapshot, after: &Snapshot, context: &Context) -> Option<(Capacity, f64)> {
    let mut lengths = Vec::with_capacity(after.cpus.len());
    let mut nanos = 0.0;
    for (before, after) in before.cpus.iter().zip(&after.cpus) {
        lengths.push(after.at_nanos.since(before.at_nanos));
        let (earlier, later) = (before.samples?, after.samples?);
        let count = later.count().saturating_sub(earlier.count());
        nanos += count as f64 * later.period_nanos.as_f64();
    }
    let cycles = BusyTime::<WholeMachine>::from_nanos(nanos).cycles(context.clock);
    Some((Capacity::of_windows(lengths), cycles.count()))
}

fn counted(before: &Snapshot, after: &Snapshot) -> Option<(Capacity, f64)> {
    let mut lengths = Vec::with_capacity(after.cpus.len());
    let mut cycles = Cycles::<WholeMachine>::counted(0.0);
    for (before, after) in before.cpus.iter().zip(&after.cpus) {
        lengths.push(after.at_nanos.since(before.at_nanos));
        cycles = cycles + Cycles::counted(after.pmu_cycles?.saturating_sub(before.pmu_cycles?) as f64);
    }
    Some((Capacity::of_windows(lengths), cycles.count()))
}
