//! Watching: snapshots of the machine at the boundaries of windows, while something runs or nothing does.

use crate::meter::{Panel, Work};
use model::record::{Mode, Snapshot, Stretch};
use model::unit::Nanos;
use std::time::{Duration, Instant};

/// The first windows. Shorter ones would hold too few wake-ups of the readers' own grain (METHOD.md:
/// 20 ms is the least for loads that sleep).
const SHORTEST_WINDOW: Duration = Duration::from_millis(100);
/// Windows grow with the run, to a fiftieth of what has passed: a run of any length has a hundred or
/// two, and the record does not grow with it.
const WINDOWS_PER_RUN: u32 = 50;
/// Quiet windows between two windows of a meter that disturbs.
const QUIET_WINDOWS: usize = 3;
/// Left out while such a meter starts or stops.
const GAP: Duration = Duration::from_millis(20);
/// How long the load is looked at before it is said not to sleep.
const JUDGED_AFTER: Duration = Duration::from_millis(900);
/// A load whose threads are on a CPU this part of the time does not sleep.
const AWAKE: f64 = 0.97;

/// What is being watched.
pub trait Subject: Work {
    /// The first snapshot was taken: begin.
    fn begin(&mut self);
    /// Sleeps until it is over, or `timeout` has passed; whether it is over.
    fn wait(&mut self, timeout: Duration) -> bool;
    /// When the soaker joins.
    fn soaker(&self) -> Soaker;
    /// How long to wait before the first window: what starts or ends just then is not what is watched.
    fn settle(&self) -> Duration {
        Duration::ZERO
    }
    /// A window ended.
    fn step(&mut self, step: Step);
}

/// When the soaker joins a watch that did not ask for it by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Soaker {
    /// At once: the background, so that there is something to subtract.
    AtOnce,
    /// When this many threads were seen not to sleep.
    WhenAwake(usize),
    /// Never.
    Never,
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
pub fn watch(panel: &mut Panel, subject: &mut dyn Subject) -> Stretch {
    let mut rotation = Rotation::new(panel.own_windows());
    let mut may_join = panel.soaker_may_join();
    if may_join && subject.soaker() == Soaker::AtOnce {
        rotation.join(Mode::Soaker);
    }
    let mut stretch = Stretch::default();
    let started = Instant::now();
    if !subject.settle().is_zero() {
        stretch.snapshots.push(panel.snapshot(Mode::Gap, subject));
        std::thread::sleep(subject.settle());
    }
    stretch.snapshots.push(panel.snapshot(rotation.mode(), subject));
    subject.begin();
    loop {
        let over = subject.wait(rotation.length(started.elapsed()));
        rotation.advance();
        let mode = if over { Mode::Gap } else { rotation.mode() };
        stretch.snapshots.push(panel.snapshot(mode, subject));
        if let [.., before, after] = stretch.snapshots.as_slice() {
            subject.step(Step { elapsed: started.elapsed(), window: (before, after) });
        }
        if over {
            return stretch;
        }
        if let (true, Soaker::WhenAwake(threads)) = (may_join, subject.soaker())
            && started.elapsed() > JUDGED_AFTER
        {
            may_join = false;
            if stays_awake(&stretch, threads) {
                rotation.join(Mode::Soaker);
            }
        }
    }
}

/// Whether the workload's threads were on a CPU all the time so far.
fn stays_awake(stretch: &Stretch, threads: usize) -> bool {
    let (Some(first), Some(last)) = (stretch.snapshots.first(), stretch.snapshots.last()) else { return false };
    let (Some(begin), Some(end)) = (first.thread_nanos, last.thread_nanos) else { return false };
    let wall = last.at_nanos.since(first.at_nanos);
    wall > Nanos(0) && end.since(begin).as_f64() >= AWAKE * threads as f64 * wall.as_f64()
}

/// Which mode the next window has, and how long it is.
struct Rotation {
    cycle: Vec<Mode>,
    place: usize,
}

impl Rotation {
    fn new(own: Vec<Mode>) -> Self {
        let mut rotation = Self { cycle: vec![Mode::Quiet; QUIET_WINDOWS], place: 0 };
        own.into_iter().for_each(|mode| rotation.join(mode));
        rotation
    }

    fn join(&mut self, mode: Mode) {
        if !self.cycle.contains(&mode) {
            self.cycle.extend([Mode::Gap, mode, Mode::Gap]);
        }
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

    #[test]
    fn a_meter_that_disturbs_has_windows_of_its_own_with_gaps_around() {
        let mut rotation = Rotation::new(vec![Mode::Soaker]);
        let mut modes = Vec::new();
        for _ in 0..7 {
            modes.push(rotation.mode());
            rotation.advance();
        }
        let quiet = Mode::Quiet;
        assert_eq!(modes, [quiet, quiet, quiet, Mode::Gap, Mode::Soaker, Mode::Gap, quiet]);
    }

    #[test]
    fn windows_grow_with_the_run() {
        let rotation = Rotation::new(Vec::new());
        assert_eq!(rotation.length(Duration::from_secs(1)), SHORTEST_WINDOW);
        assert_eq!(rotation.length(Duration::from_secs(600)), Duration::from_secs(12));
    }
}
