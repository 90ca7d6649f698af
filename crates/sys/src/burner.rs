//! Busy work of a given length.
//!
//! In: a length in ticks. Out: a [`Burner`] whose burns take that long on average, and their measured length.
//!
//! A wait of N ticks takes longer than N: the clock is read before and after it, the last reading is up to one reading
//! late, and the loop exit is a mispredicted branch. Together that was 18 ns of the 78 that a wait of 60 took (Zen 3,
//! where a reading takes 11 ns and the clock advances in steps of 10). So a thread measures its burns before the
//! measurement starts, and waits for less.

use crate::clock::ticks;

/// Approximate length of one batch in ticks: some 20 µs, in which an interrupt is rare.
const BATCH_TICKS: u64 = 50_000;
/// Minimum number of burns per batch; few suffice for long burns.
const FEWEST_BURNS: u64 = 4;
/// Batches per measurement. The median excludes batches in which something else ran.
const BATCHES: usize = 41;
/// The waits vary by this fraction of the requested length, but by at least one and at most a few clock readings.
/// Readings and clock steps are in phase, so waits that varied by less lasted a whole number of readings, whatever
/// their nominal length.
const SPREAD_SHARE: u64 = 3;
const MOST_READINGS: u64 = 4;
/// Number of corrections: the first is large, the others remove half of the rest. A whole one goes to and fro where the length jumps: by
/// 14 ticks between waits of 110 and 120 (a clock that advances in steps of 26).
const CORRECTIONS: usize = 5;
/// A calibration fails about once in a hundred times when other tasks use the CPU; it is repeated up to this many
/// times.
const TRIES: usize = 3;
/// Relative error above which a calibration has failed.
const NEAR: f64 = 0.04;
/// The excess does not depend on the length, so longer burns are not measured but corrected like this one: 8 µs at 2.5
/// GHz. A calibration then takes some 5 ms.
const LONGEST_MEASURED: u64 = 20_000;

/// Keeps the CPU busy. It does not use the pause instruction: a hypervisor may take the CPU away at it, and its
/// duration is similar to the burns themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burner {
    asked: u64,
    /// Minimum wait in ticks.
    wait: u64,
    /// Variation of the wait, a different part each time: a wait ends at a clock reading, so without variation no
    /// correction could be finer than the time between two readings.
    spread: u64,
}

/// A burner and the measured length of its burns.
#[derive(Clone, Copy, Debug)]
pub struct Calibrated {
    /// The burner.
    pub burner: Burner,
    /// Mean length of a burn in ticks. If it is well above the requested length, that is shorter than the shortest
    /// possible burn.
    pub burnt_ticks: f64,
}

impl Burner {
    /// A burner that waits for the requested length: its burns take up to two clock readings more.
    pub const fn uncalibrated(asked: u64) -> Self {
        Self { asked, wait: asked, spread: 0 }
    }

    /// A burner whose burns take the requested length on average, in the calling thread on its current CPU. Takes some
    /// milliseconds.
    pub fn calibrated(asked: u64) -> Calibrated {
        let off = |calibrated: &Calibrated| (calibrated.burnt_ticks - asked as f64).abs();
        let mut best = Self::calibrated_once(asked);
        for _ in 0..TRIES {
            // A wait of zero cannot be shortened.
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
        let (mut takes, mut share) = (burner.measure(), 1.0);
        for _ in 0..CORRECTIONS {
            burner.wait = (burner.wait as f64 + (measured as f64 - takes) * share).round().max(0.0) as u64;
            (takes, share) = (burner.measure(), 0.5);
        }
        let rest = asked - measured;
        let burner = Self { asked, wait: burner.wait.saturating_add(rest), ..burner };
        Calibrated { burner, burnt_ticks: takes + rest as f64 }
    }

    /// The requested length in ticks.
    pub fn asked_ticks(self) -> u64 {
        self.asked
    }

    /// Burns once.
    #[inline(always)]
    pub fn burn(self) {
        /// 2^64 ÷ the golden ratio: multiples of it spread evenly over all values.
        const EVENLY: u64 = 0x9E37_79B9_7F4A_7C15;
        let begin = ticks();
        let more = ((begin.wrapping_mul(EVENLY) >> 32).wrapping_mul(self.spread)) >> 32;
        let wait = self.wait.wrapping_add(more);
        while ticks().wrapping_sub(begin) < wait {}
    }

    /// Mean length of consecutive burns.
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

/// Time between two consecutive clock readings.
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
    fn burns_take_the_requested_time() {
        // The best of several attempts, because other tasks may run on this machine.
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
    fn burns_shorter_than_two_readings_report_their_true_length() {
        let calibrated = Burner::calibrated(1);
        assert!(calibrated.burnt_ticks > 1.0, "{calibrated:?}");
        assert_eq!((calibrated.burner.asked_ticks(), calibrated.burner.wait), (1, 0));
    }

    #[test]
    fn long_burns_are_calibrated_like_shorter_ones() {
        let begin = std::time::Instant::now();
        let calibrated = Burner::calibrated(3_000_000_000_000);
        assert!(begin.elapsed().as_secs() < 60);
        let off = calibrated.burnt_ticks - 3e12;
        assert!(off.abs() < 1e6 && calibrated.burner.wait < 3_000_000_000_000, "{calibrated:?}");
    }
}
