//! When an execution did I/O, and what cumulative counters did meanwhile.

use crate::record::{Execution, Snapshot};
use crate::unit::Nanos;

/// How long an execution did I/O.
pub(crate) fn io_seconds(execution: &Execution) -> f64 {
    match (execution.io_interval, execution.stretch.snapshots.as_slice()) {
        (Some(interval), _) => interval.end_nanos.since(interval.begin_nanos).seconds(),
        (None, [first, .., last]) => last.at_nanos.since(first.at_nanos).seconds(),
        _ => 0.0,
    }
}

/// By how much a cumulative counter grew while an execution did I/O; `read` says when it was read and what it was. The
/// ends of that time lie between two snapshots, so the first and the last within it stand for all of it, by time.
/// `None` where fewer than two of them hold the counter.
pub(super) fn growth(execution: &Execution, read: impl Fn(&Snapshot) -> Option<(Nanos, u64)>) -> Option<f64> {
    let within = |snapshot: &&Snapshot| {
        let at = snapshot.at_nanos;
        execution.io_interval.is_none_or(|interval| (interval.begin_nanos..=interval.end_nanos).contains(&at))
    };
    let mut readings = execution.stretch.snapshots.iter().filter(within).filter_map(read);
    let ((begin, before), (end, after)) = (readings.next()?, readings.next_back()?);
    let seconds = end.since(begin).seconds();
    (seconds > 0.0).then(|| after.saturating_sub(before) as f64 / seconds * io_seconds(execution))
}

/// What the workload's own threads did within one time: their CPU time in nanoseconds, and the I/Os.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Own {
    pub(super) nanos: f64,
    pub(super) ios: f64,
}

/// The same of all executions, where the snapshots hold it. Jobs may count from different times on (each after its own start and ramp), and
/// what they say then cannot be laid beside what a meter saw in the time in which all of them ran.
pub(super) fn own_in_interval(executions: &[Execution]) -> Option<Own> {
    let mut own = Own::default();
    for execution in executions {
        execution.io_interval?;
        own.nanos += own_growth(execution)?;
        own.ios += growth(execution, |snapshot| snapshot.done.map(|done| (snapshot.at_nanos, done.ios)))?;
    }
    (own.ios > 0.0 && own.nanos > 0.0).then_some(own)
}

/// CPU time of the workload's own threads, in nanoseconds, while an execution did I/O. Of a command the snapshots do not hold it.
pub(super) fn own_growth(execution: &Execution) -> Option<f64> {
    if execution.command_cpu_nanos.is_some() {
        return None;
    }
    growth(execution, |snapshot| snapshot.thread_nanos().map(|nanos| (snapshot.at_nanos, nanos.0)))
}

/// Context switches of the whole machine while an execution did I/O, the background's included.
pub(crate) fn switches(execution: &Execution) -> Option<f64> {
    growth(execution, |snapshot| snapshot.system.map(|stat| (stat.at_nanos, stat.context_switches)))
}
