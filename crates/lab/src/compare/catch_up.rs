//! Whether a command catches up what it missed while it was frozen: then its slices show that, not what an I/O costs. Pure.
//!
//! A closed loop waits for its I/Os and misses nothing, so what it does in a turn does not depend on how long it was frozen before. A
//! program that follows a clock does more in a turn, the longer it was frozen. Turns come in random order, so the time before
//! them differs. Speed alone tells nothing: on a busy machine, the scheduler favours every program that has just woken, and a
//! neighbour may have slowed the rehearsal.

use super::work_counter::counted;
use crate::canary;
use model::comparison::record::CommandReading;
use std::time::Duration;

/// A command that catches up does this many times as much per second just after it was thawed as in its slices.
const BURST: f64 = 2.0;
/// And it does at least this part of the work that it missed.
const MADE_UP: f64 = 0.5;
/// Fewer turns or counts say nothing.
const FEWEST_TURNS: usize = 8;
const FEWEST_COUNTS: u64 = 200;
/// These say enough: later turns are not looked at.
const ENOUGH_TURNS: usize = 40;

/// One turn of a command.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// How long it was frozen before.
    missed: f64,
    /// How long it ran.
    seconds: f64,
    counts: f64,
}

/// The turns of a command.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    turns: Vec<Turn>,
    /// Counts and seconds just after it was thawed, in the discarded time.
    early: (u64, f64),
    /// In its slices.
    late: (u64, f64),
}

impl Turns {
    /// Adds a turn: the time before it, and the readings when the command was thawed, at the begin of the slice, and at its end.
    pub fn add(&mut self, missed: Duration, [woke, first, last]: [CommandReading; 3]) {
        let since = |from: CommandReading, to: CommandReading| {
            Some((counted(from, to)?, to.at_nanos.since(from.at_nanos).seconds()))
        };
        let Some((early, late)) = since(woke, first).zip(since(first, last)) else { return };
        if self.turns.len() >= ENOUGH_TURNS {
            return;
        }
        self.early = (self.early.0 + early.0, self.early.1 + early.1);
        self.late = (self.late.0 + late.0, self.late.1 + late.1);
        self.turns.push(Turn {
            missed: missed.as_secs_f64(),
            seconds: early.1 + late.1,
            counts: (early.0 + late.0) as f64,
        });
    }

    /// How many times as fast it is just after it was thawed, if it catches up.
    pub fn catch_up(&self) -> Option<f64> {
        let ((early, early_seconds), (late, late_seconds)) = (self.early, self.late);
        let times = (early as f64 / early_seconds) / (late as f64 / late_seconds);
        let enough = self.turns.len() >= FEWEST_TURNS && early + late >= FEWEST_COUNTS;
        (enough && times > BURST && self.makes_up()).then_some(times)
    }

    /// Whether counts grow with the time before the turn, by at least a part of what the command does in that time. The growth is
    /// the median over pairs of turns (Theil–Sen), because the first turn of a round may follow a much longer time than all others.
    fn makes_up(&self) -> bool {
        let of = |value: fn(&Turn) -> f64| median(self.turns.iter().map(value));
        let (missed, seconds, counts) = (of(|turn| turn.missed), of(|turn| turn.seconds), of(|turn| turn.counts));
        let pairs = self.turns.iter().enumerate().flat_map(|(place, one)| {
            self.turns.iter().skip(place + 1).map(move |other| (other.missed - one.missed, other.counts - one.counts))
        });
        // Turns after times that hardly differ tell nothing.
        let apart = pairs.filter(|(missed, _)| missed.abs() >= seconds / 2.0);
        let growth = median(apart.map(|(missed, counts)| counts / missed));
        // counts = rate × (seconds + part × missed), and growth = part × rate.
        let rate = (counts - growth * missed) / seconds;
        growth > 0.0 && growth >= MADE_UP * rate
    }
}

/// The median; 0 of nothing.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    if values.is_empty() { 0.0 } else { canary::median(&mut values) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::unit::Nanos;

    const MISSED: [u64; 12] = [900, 110, 60, 0, 220, 110, 165, 55, 110, 0, 165, 110];

    /// The turns of a command, of 5 ms and 50 ms each. `work` tells how much it does in a time that it is awake after a time that it
    /// was frozen, both in ms.
    fn turns(mut work: impl FnMut(u64, u64) -> u64) -> Turns {
        let (mut turns, mut at, mut count) = (Turns::default(), 0, 0);
        let mut reading = |millis: u64, missed: u64| {
            (at, count) = (at + millis, count + work(millis, missed));
            CommandReading { at_nanos: Nanos::from_millis(at), count: Some(count), ..CommandReading::default() }
        };
        for missed in MISSED {
            turns.add(Duration::from_millis(missed), [reading(0, 0), reading(5, missed), reading(50, 0)]);
        }
        turns
    }

    /// A program that owes 10 counts per ms, and does at most this many.
    fn open_loop(most: u64) -> Turns {
        let mut owed = 0;
        turns(|millis, missed| {
            owed += 10 * (millis + missed);
            let done = owed.min(most * millis);
            owed -= done;
            done
        })
    }

    #[test]
    fn a_program_that_does_what_it_missed_catches_up() {
        for most in [200, 1000, 100_000] {
            let times = open_loop(most).catch_up();
            assert!(times.is_some_and(|times| times > BURST), "{most}: {times:?}");
        }
    }

    #[test]
    fn a_closed_loop_does_not() {
        assert_eq!(turns(|millis, _| 10 * millis).catch_up(), None);
        // The scheduler favours whoever has just woken, after whatever time.
        let favoured = turns(|millis, _| if millis == 5 { 300 } else { 200 });
        assert!(favoured.early.0 as f64 / favoured.early.1 > BURST * favoured.late.0 as f64 / favoured.late.1);
        assert_eq!(favoured.catch_up(), None);
        // And what neighbours leave to it varies.
        let mut turn = 0;
        let neighbours = turns(|millis, _| {
            turn += 1;
            if millis == 5 { 300 } else { [50, 500, 200, 350, 100][turn % 5] }
        });
        assert_eq!(neighbours.catch_up(), None);
    }

    #[test]
    fn few_turns_or_counts_say_nothing() {
        let mut few = open_loop(1000);
        few.turns.truncate(FEWEST_TURNS - 1);
        assert_eq!(few.catch_up(), None);
        // A handful of counts may fall anywhere.
        assert_eq!(turns(|_, missed| missed / 55).catch_up(), None);
    }
}
