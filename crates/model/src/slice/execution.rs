//! What was measured in a whole execution of a command: its windows do not cover all of its time, and it reports its latencies itself.

use super::Measured;
use crate::record::{Direction, Execution, JobRecord, Latency, Meter};
use crate::study::windows::{Window, io_seconds, steal_taken_off, switches, total, windows};
use crate::study::{Context, page_cache};

/// All but the cycles during I/O.
pub(super) fn measured(execution: &Execution, meter: Option<Meter>, context: &Context) -> Measured {
    let whole = meter.and_then(|meter| whole(execution, meter, context));
    let jobs = || execution.jobs.iter();
    Measured {
        count: 1.0,
        whole_seconds: whole_seconds(execution),
        whole_cycles: whole.map(|(cycles, _)| cycles),
        whole_capacity_seconds: whole.map(|(_, capacity)| capacity),
        seconds: io_seconds(execution),
        ios: total(jobs(), JobRecord::ios).map(|ios| ios as f64),
        bytes: total(jobs(), |job| job.bytes().0).map(|bytes| bytes as f64),
        stolen_cycles: meter.map_or(0.0, |meter| steal_taken_off(execution, meter, context)),
        switches: switches(execution),
        thread_cycles: execution.own_nanos().map(|nanos| nanos.seconds() * context.clock.0),
        latency_nanos: reported_mean(execution),
        read_bytes: page_cache::file_reads(execution),
        storage_read: page_cache::from_storage(execution),
        reported: reported_percentiles(execution),
        ..Measured::default()
    }
}

/// Cycles of the whole machine during I/O, and the seconds of CPU time that it had.
pub(super) fn cycles(execution: &Execution, meter: Meter, context: &Context) -> Option<(f64, f64)> {
    let whole = io_seconds(execution) * context.cpus as f64;
    let (cycles, capacity) = during_io(execution, meter, context);
    // Windows cover all of the time except its ends, so their rate is used for the whole time.
    (capacity > 0.0).then(|| (cycles / capacity * whole, whole))
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

/// From before the start of a command until after its end.
fn whole_seconds(execution: &Execution) -> Option<f64> {
    let snapshots = &execution.stretch.snapshots;
    Some(snapshots.last()?.at_nanos.since(snapshots.first()?.at_nanos).seconds())
}

/// Cycles and capacity over a whole execution.
fn whole(execution: &Execution, meter: Meter, context: &Context) -> Option<(f64, f64)> {
    let windows = windows(execution, meter, None, context);
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
    let within = windows(execution, meter, execution.io_interval, context);
    let covered: f64 = within.iter().map(Window::seconds).sum();
    match execution.io_interval {
        Some(interval) if covered < io_seconds(execution) / 2.0 => {
            let part = |window: Window| {
                let (begin, end) = (window.begin.max(interval.begin_nanos), window.end.min(interval.end_nanos));
                (end.since(begin).seconds() / window.seconds(), window)
            };
            sum(&windows(execution, meter, None, context).into_iter().map(part).collect::<Vec<_>>())
        }
        _ => sum(&within.into_iter().map(|window| (1.0, window)).collect::<Vec<_>>()),
    }
}
