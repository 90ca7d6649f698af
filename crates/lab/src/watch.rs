//! Takes snapshots of the machine at the boundaries of windows, while a workload runs or none does.

use crate::meter::{MeterSet, Windows, Work};
use crate::proc_files::real_time_tasks;
use model::meter::Meter;
use model::placement::Whereabouts;
use model::record::{Mode, Snapshot, Stretch};
use model::unit::Nanos;
use std::time::{Duration, Instant};
use sys::schedule::{Class, WATCHING, within_class};

/// Length of the first windows. Shorter ones would contain too few wake-ups at the resolution of the readers
/// (docs/method/windows.md: 20 ms is the minimum for loads that sleep).
const SHORTEST_WINDOW: Duration = Duration::from_millis(100);
/// Windows grow with the run, to a fiftieth of the elapsed time: their number, and the size of the record, grow with
/// the logarithm of the run's length.
const WINDOWS_PER_RUN: u32 = 50;
/// Quiet windows between two windows of a meter that disturbs.
const QUIET_WINDOWS: usize = 3;
/// Windows of samples, one after the other: the more of them, the smaller the functions that are found.
const SAMPLED_WINDOWS: usize = 3;
/// Windows of a meter that disturbs, one after the other, if the cost comes from them.
const FAVOURED_WINDOWS: usize = 5;
/// Length of windows of events. They do not grow, because counts are exact, and because what iotoll does meanwhile must be as often as in
/// the background.
const EVENT_WINDOW: Duration = Duration::from_millis(100);
/// Intervals between readings of the counts in such a window: their spread gives the interval also of a short run.
const INTERVALS: u32 = 4;
/// Time between two readings of the counts.
pub const READING_OF_EVENTS: Duration = Duration::from_millis(EVENT_WINDOW.as_millis() as u64 / INTERVALS as u64);
/// A boundary that comes later than this after the end of its window waited for a CPU.
const LATE: Duration = Duration::from_millis(250);
/// Left out while such a meter starts or stops.
const GAP: Duration = Duration::from_millis(20);

/// The subject of a watch.
pub trait Subject: Work {
    /// Starts it; the first snapshot was taken.
    fn begin(&mut self);
    /// Sleeps until it is over, or `timeout` has passed. Returns whether it is over.
    fn wait(&mut self, timeout: Duration) -> bool;
    /// How long to wait before the first window, so that other processes that start or end at that time do not count.
    fn settle(&self) -> Duration {
        Duration::ZERO
    }
    /// Where its threads ran since the last call, which is at each boundary.
    fn whereabouts(&mut self) -> Option<Box<Whereabouts>> {
        None
    }
    /// Called at the end of a window.
    fn step(&mut self, step: Step);
}

/// Progress of a watch.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Time since the first snapshot.
    pub elapsed: Duration,
    /// The two latest snapshots.
    pub window: (&'a Snapshot, &'a Snapshot),
}

/// Takes snapshots from before the subject starts until it is over.
pub fn watch(meters: &mut MeterSet, subject: &mut dyn Subject) -> Stretch {
    // Real-time priority, so that a boundary does not wait behind the workload. Without the permission a boundary comes
    // later, and its time stamps show it; children run with ordinary priority. Only while watching: laying out files
    // and studying take long and must not keep other processes from a CPU.
    let real_time = within_class(Class::Watching);
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
        let length = rotation.length(started.elapsed());
        let begun = Instant::now();
        let over = match rotation.mode() {
            Mode::Events(_) => count_events(meters, subject, length),
            Mode::Quiet | Mode::Alone(_) | Mode::Gap => subject.wait(length),
        };
        let late = begun.elapsed().saturating_sub(length);
        if late > LATE {
            note_starved(&mut stretch, late);
        }
        rotation.advance(meters.favoured());
        let mode = if over { Mode::Gap } else { rotation.mode() };
        stretch.snapshots.push(snapshot(meters, mode, subject));
        if let [.., before, after] = stretch.snapshots.as_slice() {
            subject.step(Step { elapsed: started.elapsed(), window: (before, after) });
        }
        if over {
            if let Some(starved) = &mut stretch.starved {
                starved.priority = real_time.map(|_| WATCHING.into());
            }
            return stretch;
        }
    }
}

/// Notes the real-time tasks that kept this thread from the CPUs and still want one.
fn note_starved(stretch: &mut Stretch, late: Duration) {
    let starved = stretch.starved.get_or_insert_default();
    starved.waited_nanos += Nanos::from(late);
    for holder in real_time_tasks() {
        if !starved.holders.iter().any(|known| (&known.name, known.cpu) == (&holder.name, holder.cpu)) {
            starved.holders.push(holder);
        }
    }
}

/// Waits, and reads the counts of events meanwhile. Returns whether the subject is over.
fn count_events(meters: &mut MeterSet, subject: &mut dyn Subject, length: Duration) -> bool {
    meters.begin_events(subject);
    for _ in 0..INTERVALS {
        let over = subject.wait(length / INTERVALS);
        meters.note_events(subject);
        if over {
            return true;
        }
    }
    false
}

/// A snapshot, then where threads ran: reading that takes longer than reading the clocks.
fn snapshot(meters: &mut MeterSet, mode: Mode, subject: &mut dyn Subject) -> Snapshot {
    let taken = meters.snapshot(mode, subject);
    Snapshot { whereabouts: subject.whereabouts(), ..taken }
}

/// Mode and length of the next window.
struct Rotation {
    windows: Windows,
    cycle: Vec<Mode>,
    place: usize,
}

impl Rotation {
    /// Quiet windows, and between them those of each mode that disturbs, with gaps around them. A single such mode without quiet windows to
    /// compare with runs all the time. The first turn has one quiet window, so that short measurements have all modes too.
    fn new(windows: Windows) -> Self {
        let cycle = cycle(&windows, None);
        let quiet = cycle.iter().take_while(|mode| **mode == Mode::Quiet).count();
        Self { place: if quiet < cycle.len() { quiet.saturating_sub(1) } else { 0 }, cycle, windows }
    }

    fn mode(&self) -> Mode {
        self.cycle.get(self.place).copied().unwrap_or(Mode::Quiet)
    }

    fn length(&self, elapsed: Duration) -> Duration {
        match self.mode() {
            Mode::Gap => GAP,
            Mode::Events(_) => EVENT_WINDOW,
            Mode::Quiet | Mode::Alone(_) => SHORTEST_WINDOW.max(elapsed / WINDOWS_PER_RUN),
        }
    }

    /// The next window. From the next turn on, a favoured mode has most windows.
    fn advance(&mut self, favoured: Option<Mode>) {
        self.place = (self.place + 1) % self.cycle.len().max(1);
        if self.place == 0 {
            self.cycle = cycle(&self.windows, favoured);
        }
    }
}

/// One turn through all modes.
fn cycle(windows: &Windows, favoured: Option<Mode>) -> Vec<Mode> {
    let quiet = match favoured {
        _ if !windows.quiet => 0,
        Some(_) => 1,
        None => QUIET_WINDOWS,
    };
    let mut cycle = vec![Mode::Quiet; quiet];
    match windows.disturbing.as_slice() {
        [only] if cycle.is_empty() => cycle.push(*only),
        several => {
            for mode in several {
                let count = match *mode {
                    mode if favoured == Some(mode) => FAVOURED_WINDOWS,
                    Mode::Alone(Meter::Sampler) => SAMPLED_WINDOWS,
                    _ => 1,
                };
                cycle.push(Mode::Gap);
                cycle.extend(std::iter::repeat_n(*mode, count));
            }
            cycle.extend(several.first().map(|_| Mode::Gap));
        }
    }
    cycle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_that_disturbs_has_windows_of_its_own_with_gaps_around() {
        let mut rotation = Rotation::new(Windows { quiet: true, disturbing: vec![Mode::Alone(Meter::Soaker)] });
        let mut modes = Vec::new();
        for _ in 0..9 {
            modes.push(rotation.mode());
            rotation.advance(None);
        }
        let (quiet, gap, soaker) = (Mode::Quiet, Mode::Gap, Mode::Alone(Meter::Soaker));
        assert_eq!(modes, [quiet, gap, soaker, gap, quiet, quiet, quiet, gap, soaker]);
    }

    #[test]
    fn a_favoured_meter_has_most_windows_from_the_next_turn_on() {
        let mode = Mode::Alone(Meter::Accounts);
        let mut rotation = Rotation::new(Windows { quiet: true, disturbing: vec![mode] });
        let modes: Vec<Mode> = (0..12)
            .map(|_| {
                let mode = rotation.mode();
                rotation.advance(Some(Mode::Alone(Meter::Accounts)));
                mode
            })
            .collect();
        let (quiet, gap) = (Mode::Quiet, Mode::Gap);
        assert_eq!(modes, [quiet, gap, mode, gap, quiet, gap, mode, mode, mode, mode, mode, gap]);
    }

    #[test]
    fn a_meter_that_disturbs_and_is_alone_runs_all_the_time() {
        let mut rotation = Rotation::new(Windows { quiet: false, disturbing: vec![Mode::Alone(Meter::Sampler)] });
        rotation.advance(None);
        assert_eq!(rotation.mode(), Mode::Alone(Meter::Sampler));
        assert!(rotation.length(Duration::ZERO) > GAP);
    }

    #[test]
    fn each_set_of_events_has_windows_of_its_own() {
        let (accounts, first, second) = (Mode::Alone(Meter::Accounts), Mode::Events(0), Mode::Events(1));
        let windows = Windows { quiet: true, disturbing: vec![accounts, first, second] };
        let (quiet, gap) = (Mode::Quiet, Mode::Gap);
        assert_eq!(cycle(&windows, None), [quiet, quiet, quiet, gap, accounts, gap, first, gap, second, gap]);
        let rotation = Rotation { place: 6, ..Rotation::new(windows) };
        assert_eq!((rotation.mode(), rotation.length(Duration::from_secs(600))), (first, EVENT_WINDOW));
    }

    #[test]
    fn late_boundaries_are_added_up() {
        let mut stretch = Stretch::default();
        (0..2).for_each(|_| note_starved(&mut stretch, Duration::from_millis(300)));
        let starved = stretch.starved.unwrap();
        assert_eq!((starved.waited_nanos, starved.priority), (Nanos::from_millis(600), None));
    }

    #[test]
    fn windows_grow_with_the_run() {
        let rotation = Rotation::new(Windows { quiet: true, disturbing: Vec::new() });
        assert_eq!(rotation.length(Duration::from_secs(1)), SHORTEST_WINDOW);
        assert_eq!(rotation.length(Duration::from_secs(600)), Duration::from_secs(12));
    }
}
