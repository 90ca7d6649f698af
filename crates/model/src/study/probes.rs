//! The results of probes for a phase: rates and costs of counters, levels of gauges.
//!
//! Counters are treated like meters: windows, the background's rate, and the common estimator. A gauge's mean uses its
//! level at both ends of each window. A counter that decreased has no result, only a reason.

use super::net_cost::{Per, Rate, per_work, rate};
use super::series::merged;
use super::windows::{Window, done_between, windows_of_counter};
use crate::finding::ProbeFinding;
use crate::probe::{Descriptor, Kind};
use crate::record::{Execution, IoInterval, Snapshot, Stretch};
use crate::unit::Nanos;

/// The results of all probes for a phase. `background` contains the stretches without the workload.
pub(super) fn study(asked: &[Descriptor], executions: &[Execution], background: &[Stretch]) -> Vec<ProbeFinding> {
    let of = |(place, descriptor): (usize, &Descriptor)| Probe { place, descriptor }.study(executions, background);
    asked.iter().enumerate().map(of).collect()
}

/// One probe, and the index of its readings.
#[derive(Clone, Copy)]
pub struct Probe<'a> {
    pub place: usize,
    pub descriptor: &'a Descriptor,
}

impl Probe<'_> {
    fn study(self, executions: &[Execution], background: &[Stretch]) -> ProbeFinding {
        let Descriptor { name, meaning, unit, kind, .. } = self.descriptor.clone();
        let mut found = ProbeFinding { name, meaning, unit, kind, ..ProbeFinding::default() };
        let stretches = || background.iter().chain(executions.iter().map(|execution| &execution.stretch));
        if let Some(reason) = stretches().find_map(|stretch| self.went_backwards(&stretch.snapshots)) {
            found.reason = Some(reason);
            return found;
        }
        let seen = |execution: &Execution| Some(self.windows(&execution.stretch, execution.io_interval));
        let per = |per, rate| per_work(executions, per, rate, seen);
        let gross = per(Per::Second, Rate::default()).map(|cost| cost.net);
        if gross.is_none() {
            found.reason = Some("it was not read at both ends of any window".to_owned());
        }
        match kind {
            Kind::Counter => {
                let rate = rate(background.iter().map(|stretch| self.windows(stretch, None)));
                found.per_second = gross;
                found.background_per_second = rate.map(|rate| rate.cycles_per_capacity_second);
                // If no background was measured, every cost is gross, and a caveat says so.
                let rate = rate.or_else(|| background.is_empty().then(Rate::default));
                found.per_io = rate.and_then(|rate| per(Per::Io, rate)).map(|cost| cost.net);
            }
            Kind::Gauge => {
                let levels = || executions.iter().flat_map(|execution| self.levels(execution));
                found.mean = gross;
                found.min = levels().reduce(f64::min);
                found.max = levels().reduce(f64::max);
            }
        }
        found.series = executions.first().map(|execution| self.series(execution)).unwrap_or_default();
        found
    }

    /// The time and value of a reading.
    fn reading(self, snapshot: &Snapshot) -> Option<(Nanos, f64)> {
        let readings = snapshot.probes.as_deref()?;
        Some((readings.at_nanos, (*readings.values.get(self.place)?)?))
    }

    /// The reason why a counter is unusable: it decreased.
    pub fn went_backwards<'s>(self, snapshots: impl IntoIterator<Item = &'s Snapshot>) -> Option<String> {
        if self.descriptor.kind == Kind::Gauge {
            return None;
        }
        let readings: Vec<f64> = snapshots.into_iter().filter_map(|snapshot| Some(self.reading(snapshot)?.1)).collect();
        let (before, after) = readings.iter().zip(readings.iter().skip(1)).find(|(before, after)| after < before)?;
        Some(format!("it decreased from {before} to {after}: it was reset, or a 32-bit counter wrapped"))
    }

    /// The change between two snapshots: a counter's growth, or a gauge's level times the seconds. The capacity of the window is its
    /// length.
    pub fn between(self, before: &Snapshot, after: &Snapshot) -> Option<Window> {
        let ((begin, first), (end, last)) = (self.reading(before)?, self.reading(after)?);
        let seconds = end.since(begin).seconds();
        let counted = match self.descriptor.kind {
            Kind::Counter => last - first,
            Kind::Gauge => (first + last) / 2.0 * seconds,
        };
        Window::of_counter(begin, end, counted, done_between(before, after))
    }

    /// The change in each window.
    pub fn windows(self, stretch: &Stretch, interval: Option<IoInterval>) -> Vec<Window> {
        windows_of_counter(stretch, interval, |before, after| self.between(before, after))
    }

    /// The levels during the time of I/O.
    fn levels(self, execution: &Execution) -> Vec<f64> {
        let readings = execution.stretch.snapshots.iter().filter_map(|snapshot| self.reading(snapshot));
        let within = readings.filter(|(at, _)| IoInterval::covers(execution.io_interval, *at, *at));
        within.map(|(_, value)| value).collect()
    }

    fn series(self, execution: &Execution) -> Vec<(f64, f64)> {
        let Some(start) = execution.stretch.snapshots.first().map(|first| first.at_nanos) else { return Vec::new() };
        // The setup of a command is shown, a ramp is not, because the user asked to exclude it.
        let interval = execution.io_interval.filter(|_| execution.command_cpu_nanos.is_none());
        let found = self.windows(&execution.stretch, interval);
        let point = |window: Window| {
            let middle = (window.begin.since(start).seconds() + window.end.since(start).seconds()) / 2.0;
            (middle, window.cycles / window.seconds())
        };
        merged(&found).into_iter().map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{Readings, Scope};
    use crate::record::{Done, JobRecord};
    use crate::study::series::MOST_POINTS;
    use crate::unit::Bytes;

    const WINDOW: u64 = 100_000_000;

    fn descriptor(kind: Kind) -> Descriptor {
        let text = || "x".to_owned();
        Descriptor { name: text(), meaning: text(), unit: text(), kind, scope: Scope::Machine }
    }

    /// A stretch with these probe values at its snapshots, and 50 I/Os in each window.
    fn stretch(values: &[Option<f64>]) -> Stretch {
        let snapshot = |(number, value): (u64, &Option<f64>)| {
            let at_nanos = Nanos(1_000_000_000 + number * WINDOW);
            Snapshot {
                at_nanos,
                done: Some(Done { ios: 50 * number, bytes: Bytes(0) }),
                probes: Some(Box::new(Readings { at_nanos, values: vec![*value] })),
                ..Snapshot::default()
            }
        };
        Stretch { snapshots: (0..).zip(values).map(snapshot).collect(), tasks: None, starved: None }
    }

    fn growing(first: f64, by: f64) -> Stretch {
        stretch(&(0..21).map(|number| Some(first + by * f64::from(number))).collect::<Vec<_>>())
    }

    fn execution(stretch: Stretch) -> Execution {
        let mut job = JobRecord::default();
        job.read.ios = 1000;
        Execution { jobs: vec![job], stretch, ..Execution::default() }
    }

    fn found(kind: Kind, phase: Stretch, background: &[Stretch]) -> ProbeFinding {
        study(&[descriptor(kind)], &[execution(phase)], background).remove(0)
    }

    /// 300 counts per window of 50 I/Os, of which 100 are background: 3000 per second, (300 − 100) / 50 per I/O.
    #[test]
    fn a_counter_has_a_gross_rate_and_a_net_cost() {
        let found = found(Kind::Counter, growing(7.0, 300.0), &[growing(0.0, 100.0), growing(9.0, 100.0)]);
        let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9, "{found:?}");
        near(found.per_second.unwrap().value, 3000.0);
        near(found.background_per_second.unwrap(), 1000.0);
        near(found.per_io.unwrap().value, 4.0);
        assert_eq!(found.per_io.unwrap().contains(4.0), Some(true));
        assert_eq!((found.mean, found.min, found.max, &found.reason), (None, None, None, &None));
        assert_eq!(found.series.len(), 20);
        near(found.series[0].0, 0.05);
        near(found.series[19].1, 3000.0);
    }

    #[test]
    fn a_gauge_has_a_level_and_no_cost() {
        let values: Vec<Option<f64>> = (0..21).map(|number| Some(if number % 2 == 0 { 10.0 } else { 30.0 })).collect();
        let found = found(Kind::Gauge, stretch(&values), &[growing(0.0, 1.0)]);
        assert!((found.mean.unwrap().value - 20.0).abs() < 1e-9, "{found:?}");
        assert_eq!((found.min, found.max), (Some(10.0), Some(30.0)));
        assert_eq!((found.per_second, found.per_io, found.background_per_second), (None, None, None));
    }

    #[test]
    fn a_counter_that_decreased_is_unknown() {
        let reset = || stretch(&[Some(5.0), Some(4_294_967_290.0), Some(3.0), Some(9.0)]);
        for found in [found(Kind::Counter, reset(), &[]), found(Kind::Counter, growing(0.0, 1.0), &[reset()])] {
            assert_eq!((found.per_second, found.per_io, found.background_per_second), (None, None, None));
            assert!(found.reason.as_ref().unwrap().contains("from 4294967290 to 3"), "{found:?}");
            assert_eq!(found.series, []);
        }
        assert_eq!(found(Kind::Gauge, reset(), &[]).reason, None);
    }

    #[test]
    fn unread_values_are_not_zero() {
        let found = found(Kind::Counter, stretch(&[Some(1.0), None, Some(2.0)]), &[]);
        assert_eq!((found.per_second, found.per_io), (None, None));
        assert!(found.reason.unwrap().contains("not read"));
    }

    /// Without a measured background, nothing is subtracted. If it was measured but the probe was not read then, the
    /// net value is unknown.
    #[test]
    fn a_net_cost_needs_the_measured_background() {
        assert!((found(Kind::Counter, growing(0.0, 300.0), &[]).per_io.unwrap().value - 6.0).abs() < 1e-9);
        let found = found(Kind::Counter, growing(0.0, 300.0), &[stretch(&[None, None])]);
        assert_eq!((found.per_io, found.background_per_second), (None, None));
        assert!(found.per_second.is_some());
    }

    #[test]
    fn a_series_is_no_longer_than_a_chart_can_show() {
        let values: Vec<Option<f64>> = (0..5001).map(|number| Some(f64::from(number))).collect();
        let found = found(Kind::Counter, stretch(&values), &[]);
        assert!((MOST_POINTS / 2..=MOST_POINTS).contains(&found.series.len()), "{}", found.series.len());
        assert!(found.series.iter().all(|(_, rate)| (rate - 10.0).abs() < 1e-9));
    }
}
