//! Stolen time: how much of it idle clocks count as busy. Steal of an idle CPU is in no busy time; tasks tell how long they ran.

use super::work::own_growth;
use crate::account::named::SOAKER;
use crate::record::{Execution, IoInterval, Snapshot, Stretch, TaskOwner, TaskTime};
use crate::unit::Nanos;

/// What was measured: snapshots, and what is known about the tasks that ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched<'a> {
    pub(super) stretch: &'a Stretch,
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
    pub(super) fn charged_nanos_per_second(&self, interval: Option<IoInterval>) -> Option<f64> {
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
    pub(crate) steal: f64,
    /// Sampled at the tick, and reduced by all steal of a CPU, including steal of idle time. It may be much too low,
    /// and is only used if nothing else is known.
    pub(crate) busy: Option<f64>,
}

impl Columns {
    /// `None` if they were not read.
    pub(crate) fn between(before: &Snapshot, after: &Snapshot) -> Option<Self> {
        let (before, after) = (before.system.as_ref()?, after.system.as_ref()?);
        let busy = before.busy_nanos.zip(after.busy_nanos).map(|(before, after)| after.since(before).as_f64());
        Some(Self { steal: after.steal_nanos.since(before.steal_nanos).as_f64(), busy })
    }
}

/// The part of the stolen time that an idle clock counts as not idle, in nanoseconds. The rest was a wait after a halt,
/// which is idle for the guest's clocks and stolen for KVM. Steal counts as busy up to the time that no task is charged
/// for; if that is unknown, all of it counts.
pub(crate) fn part_of_steal_in(not_idle: f64, steal: f64, charged: Option<f64>) -> f64 {
    match charged {
        Some(charged) if steal > 0.0 => ((not_idle - charged) / steal).clamp(0.0, 1.0),
        _ => 1.0,
    }
}
