//! What an execution did in its time of I/O: how long that was, how much counters grew in it, and the work done, with its rate.

use super::windows::{Per, Rate, Window, done_between, per_work, windows_of_counter};
use crate::record::{Done, Execution, IoInterval, JobRecord, Snapshot};
use crate::stats::{Estimate, Neighbours, Pair, ratio_of_sums};
use crate::unit::Nanos;

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

/// The work done. The counts are those of the jobs; rates come from the snapshots if they have the work, because jobs
/// may start counting at different times.
pub(super) struct Work {
    pub ios: Option<u64>,
    pub bytes: Option<u64>,
    pub wall_seconds: f64,
    pub counted_ios: Option<f64>,
    pub counted_bytes: Option<f64>,
}

impl Work {
    pub(super) fn of(executions: &[Execution]) -> Self {
        let jobs = || executions.iter().flat_map(|execution| &execution.jobs);
        let (ios, bytes) = (total(jobs(), JobRecord::ios), total(jobs(), |job| job.bytes().0));
        let counted = |total: Option<u64>, of: fn(&Done) -> u64| {
            let read = |snapshot: &Snapshot| snapshot.done.map(|done| (snapshot.at_nanos, of(&done)));
            let counted: Option<f64> = executions.iter().map(|execution| growth(execution, read)).sum();
            total.map(|total| counted.unwrap_or(total as f64))
        };
        Self {
            ios,
            bytes,
            wall_seconds: executions.iter().map(io_seconds).sum(),
            counted_ios: counted(ios, |done| done.ios),
            counted_bytes: counted(bytes, |done| done.bytes.0),
        }
    }

    /// Work per second, of which `counted` is in the time of I/O, with its interval: over executions, or over groups of windows of one. Where
    /// snapshots do not have the work, it is that of the `jobs`.
    pub(super) fn rate(
        &self,
        counted: Option<f64>,
        executions: &[Execution],
        done: fn(&Done) -> u64,
        jobs: fn(&JobRecord) -> u64,
    ) -> Option<Estimate> {
        let value = counted.filter(|_| self.wall_seconds > 0.0)? / self.wall_seconds;
        let seen = |execution: &Execution| {
            let counted = windows_of_counter(&execution.stretch, execution.io_interval, |before, after| {
                let between = done_between(before, after)?;
                Window::of_counter(before.at_nanos, after.at_nanos, done(&between) as f64, Some(between))
            });
            if counted.is_empty() {
                let end = Nanos((io_seconds(execution) * 1e9) as u64);
                let whole = total(execution.jobs.iter(), jobs)?;
                return Some(vec![Window::of_counter(Nanos(0), end, whole as f64, None)?]);
            }
            Some(counted)
        };
        let Some(found) = per_work(executions, Per::Second, Rate::default(), seen).map(|cost| cost.net) else {
            return Some(Estimate::bare(value));
        };
        // Windows and whole phases differ by what lies between.
        let off = value - found.value;
        Some(Estimate { value, low: found.low.map(|low| low + off), high: found.high.map(|high| high + off) })
    }
}

/// A sum over jobs; `None` if it is 0, because the value is then unknown.
pub(crate) fn total<'a>(jobs: impl Iterator<Item = &'a JobRecord>, of: impl Fn(&JobRecord) -> u64) -> Option<u64> {
    Some(jobs.map(of).fold(0, u64::saturating_add)).filter(|total| *total > 0)
}

/// Duration of an execution: of one exact, of several the mean.
pub(super) fn seconds(executions: &[Execution]) -> Option<Estimate> {
    let units: Vec<Pair> =
        executions.iter().map(|execution| Pair { numerator: io_seconds(execution), denominator: 1.0 }).collect();
    match units.as_slice() {
        [one] => Some(Estimate::exact(one.numerator)),
        several => Some(ratio_of_sums(several, Neighbours::Independent)?.estimate()),
    }
}
