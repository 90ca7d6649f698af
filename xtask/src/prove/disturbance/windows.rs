//! Windows of a record by what was on in them, and what a load did in them.

use crate::load::Trip;
use model::record::{Mode, Snapshot};

/// From one snapshot to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Window {
    mode: Mode,
    begin: u64,
    end: u64,
    ios: Option<u64>,
}

/// The windows of one execution.
#[derive(Clone, Debug)]
pub struct Windows {
    windows: Vec<Window>,
}

impl Windows {
    /// In order of time. Where a meter has windows of its own, those before its first are left out: they hold
    /// the load's beginning, and its windows do not.
    pub fn new(snapshots: &[Snapshot]) -> Self {
        let window = |pair: &[Snapshot]| {
            let [before, after] = pair else { return None };
            let ios = before.done.zip(after.done).map(|(before, after)| after.ios.saturating_sub(before.ios));
            Some(Window { mode: before.mode, begin: before.at_nanos.0, end: after.at_nanos.0, ios })
        };
        let windows: Vec<Window> = snapshots.windows(2).filter_map(window).collect();
        let own = |window: &Window| matches!(window.mode, Mode::Soaker | Mode::Sampler);
        let first = windows.iter().position(own).unwrap_or(0);
        Self { windows: windows.get(first..).unwrap_or_default().to_vec() }
    }

    fn of(&self, mode: Mode) -> impl Iterator<Item = &Window> {
        self.windows.iter().filter(move |window| window.mode == mode)
    }

    /// I/Os per second in the windows of a mode; `None` without one, or where I/Os were not counted.
    pub fn ios_per_second(&self, mode: Mode) -> Option<f64> {
        let ios: u64 = self.of(mode).map(|window| window.ios).sum::<Option<u64>>()?;
        let nanos: u64 = self.of(mode).map(|window| window.end - window.begin).sum();
        (nanos > 0).then(|| ios as f64 * 1e9 / nanos as f64)
    }

    /// The round trips that ended in windows of a mode, and the seconds of those windows, from the first round
    /// trip to the last.
    pub fn trips(&self, mode: Mode, trips: &[Trip]) -> (Vec<Trip>, f64) {
        let (Some(first), Some(last)) = (trips.first(), trips.last()) else { return (Vec::new(), 0.0) };
        let mut within = Vec::new();
        let mut nanos = 0;
        for window in self.of(mode) {
            let (begin, end) = (window.begin.max(first.end_nanos), window.end.min(last.end_nanos));
            nanos += end.saturating_sub(begin);
            let from = trips.partition_point(|trip| trip.end_nanos <= begin);
            let until = trips.partition_point(|trip| trip.end_nanos <= end);
            within.extend_from_slice(trips.get(from..until).unwrap_or_default());
        }
        (within, nanos as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::Done;
    use model::unit::{Bytes, Nanos};

    fn snapshot(mode: Mode, millis: u64, ios: u64) -> Snapshot {
        Snapshot {
            mode,
            at_nanos: Nanos(millis * 1_000_000),
            cpus: Vec::new(),
            timer_list: None,
            proc_stat: None,
            thread_nanos: None,
            done: Some(Done { ios, bytes: Bytes(0) }),
        }
    }

    /// Quiet (left out), gap, soaker, gap, quiet.
    fn windows() -> Windows {
        Windows::new(&[
            snapshot(Mode::Quiet, 0, 0),
            snapshot(Mode::Gap, 100, 5),
            snapshot(Mode::Soaker, 120, 10),
            snapshot(Mode::Gap, 220, 60),
            snapshot(Mode::Quiet, 240, 70),
            snapshot(Mode::Gap, 340, 170),
        ])
    }

    #[test]
    fn rates_are_those_of_a_meter_s_own_windows() {
        assert_eq!(windows().ios_per_second(Mode::Soaker), Some(500.0));
        assert_eq!(windows().ios_per_second(Mode::Quiet), Some(1000.0));
        assert_eq!(windows().ios_per_second(Mode::Sampler), None);
    }

    #[test]
    fn round_trips_fall_into_windows() {
        let trips: Vec<Trip> =
            (15..=33).map(|tenth| Trip { end_nanos: tenth * 10_000_000, nanos: 10_000_000 }).collect();
        let (soaked, seconds) = windows().trips(Mode::Soaker, &trips);
        // From the first, at 150 ms, which itself began before, to the end of the window at 220 ms.
        assert_eq!((soaked.len(), seconds), (7, 0.07));
        let (quiet, seconds) = windows().trips(Mode::Quiet, &trips);
        assert_eq!((quiet.len(), seconds), (9, 0.09));
        assert_eq!(windows().trips(Mode::Quiet, &[]), (Vec::new(), 0.0));
    }
}
