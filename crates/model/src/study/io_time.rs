//! The time of I/O in an execution, and the growth of cumulative counters during it.

use crate::record::{Execution, Snapshot};
use crate::unit::Nanos;

/// How long an execution did I/O, in seconds.
pub(crate) fn io_seconds(execution: &Execution) -> f64 {
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
    let within = |snapshot: &&Snapshot| {
        let at = snapshot.at_nanos;
        execution.io_interval.is_none_or(|interval| (interval.begin_nanos..=interval.end_nanos).contains(&at))
    };
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
pub(super) fn own_growth(execution: &Execution) -> Option<f64> {
    if execution.command_cpu_nanos.is_some() {
        return None;
    }
    growth(execution, |snapshot| snapshot.thread_nanos().map(|nanos| (snapshot.at_nanos, nanos.0)))
}

/// Context switches of the whole machine during I/O, including the background.
pub(crate) fn switches(execution: &Execution) -> Option<f64> {
    growth(execution, |snapshot| snapshot.system.map(|stat| (stat.at_nanos, stat.context_switches)))
}
