//! Statistics over rounds. The round is the unit of every interval.

use model::stats::Estimate;

/// Mean over rounds with its t interval.
pub fn mean(values: &[f64]) -> Estimate {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Estimate::with_error(mean, (squares / (count - 1.0) / count).sqrt(), count - 1.0)
}

/// Standard deviation.
pub fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len().saturating_sub(1).max(1) as f64)
        .sqrt()
}

/// Median; the mean of the two middle values if their number is even; NaN without values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN);
    let lower = sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN);
    (lower + upper) / 2.0
}

/// Candidate ÷ baseline per round: the mean of the logarithms with its t interval, as a ratio.
pub fn ratio(candidate: &[f64], baseline: &[f64]) -> Estimate {
    let logarithms: Vec<f64> = candidate.iter().zip(baseline).map(|(one, other)| (one / other).ln()).collect();
    let logarithm = mean(&logarithms);
    Estimate { value: logarithm.value.exp(), low: logarithm.low.map(f64::exp), high: logarithm.high.map(f64::exp) }
}

/// The percentile `percent`; sorts the values.
pub fn percentile(values: &mut [f64], percent: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let place = (percent / 100.0 * values.len() as f64).ceil() as usize;
    values.get(place.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by hand: sd = 1, se = 1/√3, t(0.975, 2) = 4.302652729749464 (scipy.stats.t.ppf).
    #[test]
    fn a_mean_has_the_interval_of_its_rounds() {
        let found = mean(&[1.0, 2.0, 3.0]);
        assert_eq!(found.value, 2.0);
        assert!((found.half_width().unwrap() - 4.302652729749464 / 3f64.sqrt()).abs() < 1e-9);
        assert_eq!(mean(&[5.0]), Estimate::bare(5.0));
    }

    #[test]
    fn one_outlier_does_not_move_the_median() {
        assert_eq!(median(&[3.0, 1.0, 100.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 100.0]), 3.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_ratio_and_its_inverse_agree() {
        let (one, other) = ([10.0, 12.0, 9.0], [5.0, 4.0, 6.0]);
        let (there, back) = (ratio(&one, &other), ratio(&other, &one));
        assert!((there.value * back.value - 1.0).abs() < 1e-12);
        assert!((there.low.unwrap() * back.high.unwrap() - 1.0).abs() < 1e-12);
    }

    /// A drift of the machine that affects both cancels out.
    #[test]
    fn drift_common_to_both_is_not_in_the_interval() {
        let found = ratio(&[14.0, 28.0, 7.0], &[10.0, 20.0, 5.0]);
        assert!((found.value - 1.4).abs() < 1e-12 && found.half_width().unwrap() < 1e-9);
    }

    #[test]
    fn percentiles_are_observed_values() {
        let mut values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut values, 50.0), Some(50.0));
        assert_eq!(percentile(&mut values, 99.0), Some(99.0));
        assert_eq!(percentile(&mut [], 50.0), None);
    }
}
