//! Busy work of a stated length.
//!
//! A length in ticks goes in; a [`Burner`] comes out, whose burns take that long on average, and what they were measured to take.
//!
//! A wait of so many ticks takes longer than that: the clock is read before and after it, the last reading comes up to one reading
//! too late, and leaving the loop is a branch that was guessed wrong. Together that was 18 ns of the 78 that a wait of 60 took
//! (Zen 3, where a reading takes 11 ns and the clock moves in steps of 10). So a thread measures what its burns take, before it is
//! measured itself, and waits for less.

use crate::clock::ticks;

/// Burns of one batch take about so many ticks: some 20 µs, in which an interrupt is rare.
const BATCH_TICKS: u64 = 50_000;
/// The fewest burns of a batch; a long burn is told by few.
const FEWEST_BURNS: u64 = 4;
/// Batches of a measurement. The median leaves out those in which something else ran.
const BATCHES: usize = 41;
/// Waits differ by such a part of what is asked for, by one reading of the clock at least and by a few at most: readings and the
/// clock's steps march alike, and what differed by less was as long as a number of readings whatever it waited for.
const SPREAD_SHARE: u64 = 3;
const MOST_READINGS: u64 = 4;
/// Waits are corrected so many times: once by far, then by what is left.
const CORRECTIONS: usize = 3;
/// One calibration of some hundred goes wrong where others use the CPU; then it is done again, so many times at most.
const TRIES: usize = 3;
/// Off by more than this part of what was asked for, it went wrong.
const NEAR: f64 = 0.04;
/// What is too much does not depend on the length, so a longer burn is not measured, but corrected as this one is: 8 µs at 2.5 GHz.
/// Then all takes some 5 ms.
const LONGEST_MEASURED: u64 = 20_000;

/// Keeps the CPU busy, without the pause instruction of a polite spin: a hypervisor may take the CPU away at it, and it is as long
/// as what is to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burner {
    asked: u64,
    /// What is waited for, at least.
    wait: u64,
    /// And up to so much more, each time another part of it: a wait ends at a reading of the clock, so without this no correction
    /// could be finer than the time between two.
    spread: u64,
}

/// A burner and what its burns take.
#[derive(Clone, Copy, Debug)]
pub struct Calibrated {
    /// It.
    pub burner: Burner,
    /// Mean length of a burn, in ticks. Where it is well above what was asked for, that is less than the least possible burn.
    pub burnt_ticks: f64,
}

impl Burner {
    /// One that waits for what is asked for: it burns two readings of the clock more, or less than that.
    pub const fn uncalibrated(asked: u64) -> Self {
        Self { asked, wait: asked, spread: 0 }
    }

    /// One whose burns take what is asked for on average, in the calling thread and where it runs now. Takes some milliseconds.
    pub fn calibrated(asked: u64) -> Calibrated {
        let off = |calibrated: &Calibrated| (calibrated.burnt_ticks - asked as f64).abs();
        let mut best = Self::calibrated_once(asked);
        for _ in 0..TRIES {
            // A wait for nothing cannot be shortened.
            let least = best.burner.wait == 0 && best.burnt_ticks > asked as f64;
            if least || off(&best) <= asked as f64 * NEAR {
                break;
            }
            let again = Self::calibrated_once(asked);
            if off(&again) < off(&best) {
                best = again;
            }
        }
        best
    }

    fn calibrated_once(asked: u64) -> Calibrated {
        let measured = asked.min(LONGEST_MEASURED);
        let reading = reading_ticks();
        let spread = (measured / SPREAD_SHARE).clamp(reading, MOST_READINGS.saturating_mul(reading));
        let mut burner = Self { asked: measured, wait: measured, spread };
        let mut takes = burner.measure();
        for _ in 0..CORRECTIONS {
            burner.wait = (burner.wait as f64 + measured as f64 - takes).round().max(0.0) as u64;
            takes = burner.measure();
        }
        let rest = asked - measured;
        let burner = Self { asked, wait: burner.wait.saturating_add(rest), ..burner };
        Calibrated { burner, burnt_ticks: takes + rest as f64 }
    }

    /// What was asked for, in ticks.
    pub fn asked_ticks(self) -> u64 {
        self.asked
    }

    /// Burns once.
    #[inline(always)]
    pub fn burn(self) {
        /// 2^64 ÷ the golden ratio: what it is multiplied with is spread evenly over all values.
        const EVENLY: u64 = 0x9E37_79B9_7F4A_7C15;
        let begin = ticks();
        let more = ((begin.wrapping_mul(EVENLY) >> 32).wrapping_mul(self.spread)) >> 32;
        let wait = self.wait.wrapping_add(more);
        while ticks().wrapping_sub(begin) < wait {}
    }

    /// Mean length of a burn, burn after burn.
    fn measure(self) -> f64 {
        let burns = (BATCH_TICKS / self.asked.max(1)).clamp(FEWEST_BURNS, BATCH_TICKS / 100);
        let mut batches = [0; BATCHES];
        for batch in &mut batches {
            let begin = ticks();
            (0..burns).for_each(|_| std::hint::black_box(self).burn());
            *batch = ticks().wrapping_sub(begin);
        }
        median(&mut batches) as f64 / burns as f64
    }
}

/// How far apart readings of the clock are that follow each other.
fn reading_ticks() -> u64 {
    const READINGS: u64 = 64;
    let mut batches = [0; BATCHES];
    for batch in &mut batches {
        let begin = ticks();
        let mut end = begin;
        (0..READINGS).for_each(|_| end = ticks());
        *batch = end.wrapping_sub(begin);
    }
    median(&mut batches) / READINGS
}

fn median(values: &mut [u64; BATCHES]) -> u64 {
    values.sort_unstable();
    values.get(BATCHES / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_burnt_is_what_was_asked_for() {
        // Which can be had on a machine that does nothing else; so the best of some tries.
        for asked in [200, 1_000, 5_000] {
            let off = (0..20).map(|_| {
                let calibrated = Burner::calibrated(asked);
                let again = calibrated.burner.measure();
                ((again - asked as f64).abs() / asked as f64, (calibrated.burnt_ticks - again).abs() / asked as f64)
            });
            let best = off.fold(f64::INFINITY, |best, (off, apart)| best.min(off.max(apart)));
            assert!(best < 0.04, "asked for {asked}, off by {best}");
        }
    }

    #[test]
    fn less_than_two_readings_cannot_be_burnt_and_is_not_claimed() {
        let calibrated = Burner::calibrated(1);
        assert!(calibrated.burnt_ticks > 1.0, "{calibrated:?}");
        assert_eq!((calibrated.burner.asked_ticks(), calibrated.burner.wait), (1, 0));
    }

    #[test]
    fn long_burns_are_calibrated_as_shorter_ones_are() {
        let begin = std::time::Instant::now();
        let calibrated = Burner::calibrated(3_000_000_000_000);
        assert!(begin.elapsed().as_secs() < 60);
        let off = calibrated.burnt_ticks - 3e12;
        assert!(off.abs() < 1e6 && calibrated.burner.wait < 3_000_000_000_000, "{calibrated:?}");
    }
}
