//! Finds the end of a warm-up.
//!
//! The input is a series of common-mode readings of all arms together, so that the difference between arms does not
//! influence what is discarded. The result is the number of readings to discard.

use super::common_shift::two_sample;

/// Readings are averaged in batches of five (White, Cobb and Spratt, 2000), because MSER of single readings follows
/// their noise.
const BATCH: usize = 5;
/// With fewer batches, half of them are too few to distinguish a warm-up from noise.
const FEWEST_BATCHES: usize = 10;
/// The last batches are not considered as a beginning: a few batches may have a small spread by chance.
const LAST_BATCHES: usize = 5;

/// Probability that a steady series appears never steady by chance.
const FALSE_ALARM: f64 = 0.001;

/// When a series becomes steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steady {
    /// From this reading on (0: from the first).
    From(usize),
    /// More than half of it would have to be discarded, and that part differs from the rest: run longer.
    Never,
    /// Fewer than 50 readings.
    TooShort,
}

/// The truncation point by MSER-5 (White, Cobb and Spratt, 2000): the beginning d that minimises Σ_{i ≥ d}(y_i − ȳ_d)²
/// / (k − d)², the squared standard error of the mean of the remaining readings, over k batches of five readings. It
/// weighs the warm-up's bias against the cost of discarding readings. Readings must be finite; their unit does not
/// matter.
///
/// A minimum beyond the half means that there is no steady state. However, the end of a steady series with bursts is
/// often calm by chance, and MSER prefers it (in 44 % of simulated minutes with bursts). So the part before the minimum
/// must also differ from the part after it, by a two-sample t test; otherwise the best beginning within the first half
/// is used, and the part before it is discarded only if it differs in the same way.
pub fn steady(series: &[f64]) -> Steady {
    let batches: Vec<f64> = series.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    if batches.len() < FEWEST_BATCHES {
        return Steady::TooShort;
    }
    let half = batches.len() / 2;
    let squared_errors = squared_errors(&batches);
    let anywhere = first_minimum(squared_errors.get(..batches.len() - LAST_BATCHES).unwrap_or_default());
    let differs = |begin| {
        let (before, after) = batches.split_at_checked(begin)?;
        Some(two_sample(before, after)?.1 < FALSE_ALARM)
    };
    if anywhere > half && differs(anywhere) == Some(true) {
        return Steady::Never;
    }
    // Only discards readings that differ from the rest.
    let begin = first_minimum(squared_errors.get(..=half).unwrap_or_default());
    Steady::From(if differs(begin) == Some(true) { BATCH * begin } else { 0 })
}

/// Σ_{i ≥ d}(y_i − ȳ_d)² / (k − d)² for each d.
fn squared_errors(batches: &[f64]) -> Vec<f64> {
    // Starts at the end, so that mean and squares of each tail follow from those of the previous one (Welford, 1962).
    let (mut mean, mut squares) = (0.0, 0.0);
    let tails = batches.iter().rev().enumerate().map(|(others, batch)| {
        let count = (others + 1) as f64;
        let distance = batch - mean;
        mean += distance / count;
        squares += distance * (batch - mean);
        squares / count.powi(2)
    });
    let mut errors: Vec<f64> = tails.collect();
    errors.reverse();
    errors
}

fn first_minimum(values: &[f64]) -> usize {
    let smaller = |a: &(usize, &f64), b: &(usize, &f64)| a.1.total_cmp(b.1);
    values.iter().enumerate().min_by(smaller).map_or(0, |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A deterministic series that differs from reading to reading.
    fn rough(index: usize) -> f64 {
        ((index * 7919) % 101) as f64 / 101.0 - 0.5
    }

    #[test]
    fn a_warm_up_is_discarded_and_little_else() {
        let series: Vec<f64> = (0..500).map(|i| 100.0 + rough(i) - 30.0 * (-(i as f64) / 25.0).exp()).collect();
        let Steady::From(begin) = steady(&series) else { panic!("it is steady from about 100 on") };
        assert!((75..175).contains(&begin), "{begin}");
    }

    #[test]
    fn a_series_is_steady_from_some_reading_on_or_never_or_too_short() {
        let of = |count: usize, level: fn(usize) -> f64| (0..count).map(level).collect::<Vec<f64>>();
        for (series, expected, why) in [
            (of(200, |i| 100.0 + rough(i)), Steady::From(0), "readings like the rest are kept"),
            (vec![3.0; 50], Steady::From(0), "a constant"),
            (of(100, |i| if i < 20 { 5.0 } else { 1.0 }), Steady::From(20), "after the jump there is no spread"),
            (of(500, |i| 100.0 - i as f64 / 10.0 + rough(i)), Steady::Never, "it becomes slower and slower"),
            (of(500, |i| if i < 350 { 100.0 } else { 200.0 } + rough(i)), Steady::Never, "it changes late"),
            (vec![1.0; 49], Steady::TooShort, "short"),
            (Vec::new(), Steady::TooShort, "empty"),
        ] {
            assert_eq!(steady(&series), expected, "{why}");
        }
    }

    /// A steady load with one burst, and by chance no more.
    #[test]
    fn a_calm_end_is_not_a_steady_state() {
        let burst = |i: usize| if [40, 41, 120, 121, 260, 261].contains(&i) { 50.0 } else { 100.0 };
        let series: Vec<f64> = (0..400).map(|i| burst(i) + rough(i)).collect();
        assert!(matches!(steady(&series), Steady::From(0..=200)), "{:?}", steady(&series));
    }

    proptest! {
        #[test]
        fn unit_and_sign_do_not_matter(
            values in proptest::collection::vec(-100i32..100, 50..300),
            power in -3i32..4,
        ) {
            // Powers of two and whole numbers, so that there are no rounding differences.
            let series: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
            let other: Vec<f64> = values.iter().map(|&value| f64::from(value) * 2f64.powi(power)).collect();
            prop_assert_eq!(steady(&series), steady(&other));
            let mirrored: Vec<f64> = values.iter().map(|&value| f64::from(-value)).collect();
            prop_assert_eq!(steady(&series), steady(&mirrored));
        }
    }
}
