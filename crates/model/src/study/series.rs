//! A phase over time: turns the windows of its headline meter, or the intervals between snapshots, into points with
//! rate, load and cost.

use super::Context;
use super::net_cost::BackgroundRates;
use super::regimes::{Step, steps};
use super::windows::{Window, windows};
use crate::finding::SeriesPoint;
use crate::record::{Execution, Meter};
use crate::unit::Nanos;

/// Maximum number of points in a series, as many as a chart can show.
pub(crate) const MOST_POINTS: usize = 400;

/// The series of the first execution. Without a headline meter, it only contains rates.
pub(super) fn study(executions: &[Execution], headline: Option<Meter>, rates: &BackgroundRates) -> Vec<SeriesPoint> {
    let Some(execution) = executions.first() else { return Vec::new() };
    let Some(begin) = execution.stretch.snapshots.first().map(|snapshot| snapshot.at_nanos) else { return Vec::new() };
    let found = headline.map_or_else(|| unmetered(execution), |meter| metered(execution, meter, &rates.context));
    let background = headline.and_then(|meter| rates.of(meter)).map_or(0.0, |rate| rate.cycles_per_capacity_second);
    let point = |window: &Window| {
        let seconds = window.seconds();
        let cycles = headline.map(|_| window.cycles - background * window.capacity_seconds);
        let ios = window.done.map(|done| done.ios);
        SeriesPoint {
            seconds: (window.begin.since(begin).seconds() + window.end.since(begin).seconds()) / 2.0,
            window_seconds: seconds,
            busy_cpus: headline.map(|_| window.cycles / rates.context.clock.0 / seconds),
            iops: ios.map(|ios| ios as f64 / seconds),
            ios,
            bytes: window.done.map(|done| done.bytes.0),
            cycles,
            cycles_per_io: cycles.zip(ios.filter(|ios| *ios > 0)).map(|(cycles, ios)| cycles / ios as f64),
        }
    };
    merged(&found).iter().map(point).collect()
}

fn metered(execution: &Execution, meter: Meter, context: &Context) -> Vec<Window> {
    // The setup of a command is shown, a ramp is not, because the user asked to exclude it.
    let interval = execution.io_interval.filter(|_| execution.command_cpu_nanos.is_none());
    let mut found = windows(execution, meter, interval, context);
    // The last window is cut short by the end, and not representative.
    if let [.., before, last] = found.as_slice()
        && last.seconds() < before.seconds() / 2.0
    {
        found.pop();
    }
    found
}

fn unmetered(execution: &Execution) -> Vec<Window> {
    let counted = steps(execution).into_iter().filter(|step| step.done.is_some());
    let window = |step: Step| {
        let Step { begin, end, done, .. } = step;
        Window { begin, end, measured: end.since(begin), cycles: 0.0, capacity_seconds: 0.0, done }
    };
    counted.map(window).collect()
}

/// Merges neighbours into at most [`MOST_POINTS`] windows.
pub(super) fn merged(windows: &[Window]) -> Vec<Window> {
    let each = windows.len().div_ceil(MOST_POINTS).max(1);
    let join = |chunk: &[Window]| {
        let (first, rest) = chunk.split_first()?;
        Some(rest.iter().fold(*first, |mut joined, next| {
            joined.join(next);
            joined
        }))
    };
    windows.chunks(each).filter_map(join).collect()
}

/// What the jobs of an execution did between each two snapshots.
pub(super) fn progress(execution: &Execution) -> Vec<SeriesPoint> {
    let begin = execution.io_interval.map_or(Nanos(0), |interval| interval.begin_nanos);
    let snapshots = || execution.stretch.snapshots.iter().skip_while(|snapshot| snapshot.at_nanos < begin);
    let first = snapshots().next().map_or(begin, |snapshot| snapshot.at_nanos);
    let points = snapshots().zip(snapshots().skip(1)).filter_map(|(from, to)| {
        let (done, before) = (to.done?, from.done?);
        let window_seconds = to.at_nanos.since(from.at_nanos).seconds();
        Some(SeriesPoint {
            seconds: from.at_nanos.since(first).seconds() + window_seconds / 2.0,
            busy_cpus: None,
            iops: None,
            window_seconds,
            ios: Some(done.ios.saturating_sub(before.ios)),
            bytes: Some(done.bytes.since(before.bytes).0),
            cycles: None,
            cycles_per_io: None,
        })
    });
    points.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Done;
    use crate::unit::{Bytes, Nanos};

    fn window(second: u64) -> Window {
        Window {
            begin: Nanos(second * 1_000_000_000),
            end: Nanos((second + 1) * 1_000_000_000),
            measured: Nanos(1_000_000_000),
            cycles: 10.0,
            capacity_seconds: 2.0,
            done: Some(Done { ios: 5, bytes: Bytes(20) }),
        }
    }

    #[test]
    fn neighbours_are_joined_and_nothing_is_lost() {
        let windows: Vec<Window> = (0..1001).map(window).collect();
        let merged = merged(&windows);
        assert_eq!(merged.len(), 334);
        assert_eq!(merged.iter().filter_map(|window| window.done).map(|done| done.ios).sum::<u64>(), 5005);
        assert_eq!(merged.iter().map(|window| window.cycles).sum::<f64>(), 10_010.0);
        assert!(merged.iter().zip(merged.iter().skip(1)).all(|(one, next)| one.end == next.begin));
        assert_eq!(super::merged(&windows[..400]), windows[..400]);
    }

    /// Another meter runs in every other second.
    #[test]
    fn unmeasured_time_is_in_no_rate() {
        let windows: Vec<Window> = (0..1000).map(|number| window(2 * number)).collect();
        for window in merged(&windows) {
            assert_eq!(window.done.unwrap().ios as f64 / window.seconds(), 5.0);
        }
    }
}
