//! Watching: snapshots of the machine at the boundaries of windows, while something runs or nothing does.

use crate::meter::{MeterSet, Windows, Work};
use model::placement::Whereabouts;
use model::record::{Mode, Snapshot, Stretch};
use std::time::{Duration, Instant};

/// The first windows. Shorter ones would hold too few wake-ups of the readers' own grain (METHOD.md:
/// 20 ms is the least for loads that sleep).
const SHORTEST_WINDOW: Duration = Duration::from_millis(100);
/// Windows grow with the run, to a fiftieth of what has passed: their number, and the record's size, grow with
/// the logarithm of the run's length.
const WINDOWS_PER_RUN: u32 = 50;
/// Quiet windows between two windows of a meter that disturbs.
const QUIET_WINDOWS: usize = 3;
/// Left out while such a meter starts or stops.
const GAP: Duration = Duration::from_millis(20);

/// What is being watched.
pub trait Subject: Work {
    /// The first snapshot was taken: begin.
    fn begin(&mut self);
    /// Sleeps until it is over, or `timeout` has passed; whether it is over.
    fn wait(&mut self, timeout: Duration) -> bool;
    /// How long to wait before the first window: what starts or ends just then is not what is watched.
    fn settle(&self) -> Duration {
        Duration::ZERO
    }
    /// Where its threads ran since the last time it was asked, which is at each boundary.
    fn whereabouts(&mut self) -> Option<Box<Whereabouts>> {
        None
    }
    /// A window ended.
    fn step(&mut self, step: Step);
}

/// How far a watch has come.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Time since the first snapshot.
    pub elapsed: Duration,
    /// The two latest snapshots.
    pub window: (&'a Snapshot, &'a Snapshot),
}

/// Takes snapshots from before the subject begins until it is over.
pub fn watch(meters: &mut MeterSet, subject: &mut dyn Subject) -> Stretch {
    use sys::schedule::{Class, set_class};
    // A boundary must not wait behind the workload. Where this is not allowed, it comes later and its time
    // stamps say so; what is started meanwhile is ordinary. Only while watching: laying out files and
    // studying are long work, which must not keep others from a CPU.
    let real_time = set_class(Class::RealTime).is_ok();
    let stretch = watch_at_once(meters, subject);
    if real_time {
        // Going down is always allowed.
        let _ = set_class(Class::Ordinary);
    }
    stretch
}

fn watch_at_once(meters: &mut MeterSet, subject: &mut dyn Subject) -> Stretch {
    let mut rotation = Rotation::new(meters.windows());
    let mut stretch = Stretch::default();
    let started = Instant::now();
    if !subject.settle().is_zero() {
        stretch.snapshots.push(meters.snapshot(Mode::Gap, subject));
        std::thread::sleep(subject.settle());
    }
    stretch.snapshots.push(snapshot(meters, rotation.mode(), subject));
    subject.begin();
    loop {
        let over = subject.wait(rotation.length(started.elapsed()));
        rotation.advance();
        let mode = if over { Mode::Gap } else { rotation.mode() };
        stretch.snapshots.push(snapshot(meters, mode, subject));
        if let [.., before, after] = stretch.snapshots.as_slice() {
            subject.step(Step { elapsed: started.elapsed(), window: (before, after) });
        }
        if over {
            return stretch;
        }
    }
}

/// A snapshot, and where threads ran until it was taken: after its clocks, because that takes longer than they do.
fn snapshot(meters: &mut MeterSet, mode: Mode, subject: &mut dyn Subject) -> Snapshot {
    let taken = meters.snapshot(mode, subject);
    Snapshot { whereabouts: subject.whereabouts(), ..taken }
}

/// Which mode the next window has, and how long it is.
struct Rotation {
    cycle: Vec<Mode>,
    place: usize,
}

impl Rotation {
    /// Quiet windows, and between them one of each mode that disturbs. One such mode alone, which nothing
    /// quiet is to be compared with, runs all the time.
    fn new(windows: Windows) -> Self {
        let mut cycle = vec![Mode::Quiet; if windows.quiet { QUIET_WINDOWS } else { 0 }];
        match windows.disturbing.as_slice() {
            [only] if cycle.is_empty() => cycle.push(*only),
            several => cycle.extend(several.iter().flat_map(|mode| [Mode::Gap, *mode, Mode::Gap])),
        }
        Self { cycle, place: 0 }
    }

    fn mode(&self) -> Mode {
        self.cycle.get(self.place).copied().unwrap_or(Mode::Quiet)
    }

    fn length(&self, elapsed: Duration) -> Duration {
        if self.mode() == Mode::Gap { GAP } else { SHORTEST_WINDOW.max(elapsed / WINDOWS_PER_RUN) }
    }

    fn advance(&mut self) {
        self.place = (self.place + 1) % self.cycle.len().max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::meter::Meter;

    #[test]
    fn a_meter_that_disturbs_has_windows_of_its_own_with_gaps_around() {
        let mut rotation = Rotation::new(Windows { quiet: true, disturbing: vec![Mode::Alone(Meter::Soaker)] });
        let mut modes = Vec::new();
        for _ in 0..7 {
            modes.push(rotation.mode());
            rotation.advance();
        }
        let quiet = Mode::Quiet;
        assert_eq!(modes, [quiet, quiet, quiet, Mode::Gap, Mode::Alone(Meter::Soaker), Mode::Gap, quiet]);
    }

    #[test]
    fn a_meter_that_disturbs_and_is_alone_runs_all_the_time() {
        let mut rotation = Rotation::new(Windows { quiet: false, disturbing: vec![Mode::Alone(Meter::Sampler)] });
        rotation.advance();
        assert_eq!(rotation.mode(), Mode::Alone(Meter::Sampler));
        assert!(rotation.length(Duration::ZERO) > GAP);
    }

    #[test]
    fn windows_grow_with_the_run() {
        let rotation = Rotation::new(Windows { quiet: true, disturbing: Vec::new() });
        assert_eq!(rotation.length(Duration::from_secs(1)), SHORTEST_WINDOW);
        assert_eq!(rotation.length(Duration::from_secs(600)), Duration::from_secs(12));
    }
}
