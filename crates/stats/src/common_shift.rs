//! Finds a step of the environment: the machine became slower or faster for both arms at once.
//!
//! The input is the common mode of each round. A step causes a caveat, but does not affect the paired verdict, in which
//! it cancels.

use super::estimate::{Pair, two_sided_p};

/// Smaller steps are not reported.
const LEAST_STEP: f64 = 0.1;
/// Probability of a false step, over all possible places.
const FALSE_ALARM: f64 = 0.001;
/// Minimum number of rounds on either side of a step. Fewer are often all outliers by chance: with three instead of
/// five, twice as many of the simulated minutes with bursts of load had a step (1.5 %).
const FEWEST_ROUNDS: usize = 5;

/// A step of the common mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CommonShift {
    /// Number of rounds before it.
    pub after_round: usize,
    /// Relative change of the common mode.
    pub change: f64,
    /// p-value, after Bonferroni's correction for the possible places of the step.
    pub p_value: f64,
}

/// The step in ln(Σn/Σd) of rounds, each the sum over all arms, which shows changes of the machine: the split with
/// the smallest p-value of a pooled two-sample t test, if that p-value times the number of splits is below 0.001 and
/// the step is at least 10 %.
///
/// The test assumes independent rounds. Slow drift is not independent, so it may be reported as a step, which it is for
/// a comparison with another day. `None` also with fewer than 10 rounds, or if a round has no positive ratio.
pub fn common_shift(rounds: &[Pair]) -> Option<CommonShift> {
    let logs: Vec<f64> = rounds.iter().map(|round| round.ratio().ln()).collect();
    if logs.iter().any(|log| !log.is_finite()) {
        return None;
    }
    let splits = (logs.len() + 1).checked_sub(2 * FEWEST_ROUNDS).filter(|splits| *splits > 0)?;
    let places = FEWEST_ROUNDS..FEWEST_ROUNDS + splits;
    let steps = places.filter_map(|after_round| {
        let (before, after) = logs.split_at_checked(after_round)?;
        let (difference, p) = two_sample(before, after)?;
        Some(CommonShift { after_round, change: difference.exp_m1(), p_value: (p * splits as f64).min(1.0) })
    });
    // Among equal p-values (0 without noise), the largest step is used.
    let order = |a: &CommonShift, b: &CommonShift| {
        a.p_value.total_cmp(&b.p_value).then(b.change.ln_1p().abs().total_cmp(&a.change.ln_1p().abs()))
    };
    steps.min_by(order).filter(|step| step.p_value < FALSE_ALARM && step.change.ln_1p().abs() >= LEAST_STEP.ln_1p())
}

/// Difference of means (after − before) and p-value of Student's two-sample t test with a pooled variance; `None` if
/// neither side varies and they are equal.
pub(super) fn two_sample(before: &[f64], after: &[f64]) -> Option<(f64, f64)> {
    let moments = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>())
    };
    let ((mean_before, squares_before), (mean_after, squares_after)) = (moments(before), moments(after));
    let (count_before, count_after) = (before.len() as f64, after.len() as f64);
    let degrees = count_before + count_after - 2.0;
    let variance = (squares_before + squares_after) / degrees;
    let error = (variance * (1.0 / count_before + 1.0 / count_after)).sqrt();
    let difference = mean_after - mean_before;
    if difference == 0.0 {
        return None;
    }
    Some((difference, two_sided_p(difference / error, degrees)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(values: &[f64]) -> Vec<Pair> {
        values.iter().map(|&value| Pair { numerator: value * 7.0, denominator: 7.0 }).collect()
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let values: Vec<f64> = (0..20).map(|i| if i < 8 { 100.0 } else { 115.0 } + f64::from(i % 3)).collect();
        let found = common_shift(&rounds(&values)).unwrap();
        assert_eq!(found.after_round, 8);
        assert!((found.change - 0.15).abs() < 0.01, "{found:?}");
        let down: Vec<f64> = values.iter().map(|value| 1.0 / value).collect();
        let found = common_shift(&rounds(&down)).unwrap();
        assert_eq!(found.after_round, 8);
        assert!(found.change < -0.1, "{found:?}");
    }

    #[test]
    fn a_step_without_noise_is_found_too() {
        let found = common_shift(&rounds(&[1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0])).unwrap();
        assert_eq!((found.after_round, found.p_value), (5, 0.0));
        assert!((found.change - 1.0).abs() < 1e-12);
    }

    #[test]
    fn small_or_short_changes_are_none() {
        let small: Vec<f64> = (0..20).map(|i| if i < 8 { 100.0 } else { 109.0 } + f64::from(i % 3)).collect();
        assert_eq!(common_shift(&rounds(&small)), None, "below 10 %");
        let short: Vec<f64> = (0..20).map(|i| if i < 18 { 100.0 } else { 115.0 } + f64::from(i % 3)).collect();
        assert_eq!(common_shift(&rounds(&short)), None, "two odd rounds");
        assert_eq!(common_shift(&rounds(&[1.0; 20])), None);
        let nine = [1.0, 1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 9.0, 9.0];
        assert_eq!(common_shift(&rounds(&nine)), None, "nine rounds cannot be split");
        let nothing = [1.0, 1.0, 1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 0.0, 9.0];
        assert_eq!(common_shift(&rounds(&nothing)), None, "nothing has no logarithm");
    }

    /// scipy.stats.ttest_ind(after, before), scipy 1.17.1.
    #[test]
    fn the_test_agrees_with_scipy() {
        let (difference, p) = two_sample(&[1.0, 1.2, 0.9, 1.1], &[1.3, 1.5, 1.4]).unwrap();
        assert!((difference - 0.35).abs() < 1e-12);
        assert!((p - 0.01172481100395467).abs() < 1e-9, "{p}");
    }
}
