//! Decides when an experiment has measured enough.
//!
//! It stops when it is precise enough, independent of the sign of the result. Stopping as soon as a difference is
//! significant would find one in every fourth pair of identical arms (see `tests/simulated/calibration`).

use super::estimate::{CONFIDENCE, student_t};
use super::log_ratio::LogRatio;

/// Minimum number of rounds to judge precision, because the spread of fewer is unreliable.
pub const FEWEST_ROUNDS: usize = 10;
/// Maximum useful precision of a large change, as a fraction of the change.
const PART_OF_THE_CHANGE: f64 = 0.2;
/// The verdict's margin in wanted half-widths. With three, an interval around 0 lies well within the margin, and one
/// around twice the margin well beyond it.
const HALF_WIDTHS_IN_MARGIN: f64 = 3.0;

/// The half-width at which to stop, as a fraction, for a verdict with this margin.
pub fn wanted_half_width(margin: f64) -> f64 {
    margin / HALF_WIDTHS_IN_MARGIN
}

/// The half-width at which this change is known precisely enough: max(wanted, |θ|/5).
///
/// |θ|/5 exceeds the half-width only if θ is 12 standard errors from 0, so it cannot cause a false difference.
pub fn allowed_half_width(ratio: &LogRatio, wanted_half_width: f64) -> f64 {
    wanted_half_width.max(ratio.theta.abs() * PART_OF_THE_CHANGE)
}

/// Whether to stop: at least [`FEWEST_ROUNDS`] rounds, and t(0.98)·se at most the [`allowed_half_width`].
pub fn precise_enough(ratio: &LogRatio, wanted_half_width: f64) -> bool {
    let allowed = allowed_half_width(ratio, wanted_half_width);
    ratio.units >= FEWEST_ROUNDS && ratio.stopping_half_width().is_some_and(|half| half <= allowed)
}

/// Total length of the experiment for the wanted half-width, from its length so far: errors shrink with the square root
/// of time, so T·(h/w)². `None` if the error is unknown or nothing is wanted.
pub fn seconds_to_decide(elapsed_seconds: f64, ratio: &LogRatio, wanted_half_width: f64) -> Option<f64> {
    let seconds = elapsed_seconds * (ratio.stopping_half_width()? / wanted_half_width).powi(2);
    (wanted_half_width > 0.0 && seconds.is_finite()).then_some(seconds)
}

/// Total length of the experiment for a change to be detected among this many `tests`, if the change stays the same:
/// T·(t(1 − 0.025/tests)/t)², where t corresponds to its two-sided p-value without correction.
pub fn seconds_to_detect(elapsed_seconds: f64, p_value: f64, tests: usize, units: usize) -> Option<f64> {
    let degrees = units.checked_sub(1)? as f64;
    let t = |p: f64| student_t(1.0 - p / 2.0, degrees);
    // As with Bonferroni: Holm requires the same of the smallest p-value, and never more of the others.
    let seconds = elapsed_seconds * (t((1.0 - CONFIDENCE) / tests.max(1) as f64)? / t(p_value)?).powi(2);
    seconds.is_finite().then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(theta: f64, standard_error: f64, units: usize) -> LogRatio {
        LogRatio { theta, standard_error: Some(standard_error), units }
    }

    #[test]
    fn only_precision_stops() {
        assert!(precise_enough(&ratio(0.0, 0.004, 10), 0.01), "2.398 × 0.4 % is below 1 %");
        assert!(!precise_enough(&ratio(0.0, 0.0042, 10), 0.01), "2.398 × 0.42 % is above 1 %");
        assert!(!precise_enough(&ratio(0.0, 0.0001, 9), 0.01), "nine rounds are too few");
        assert!(!precise_enough(&ratio(0.03, 0.005, 10), 0.01), "six standard errors from 0, and not precise");
        assert!(precise_enough(&ratio(0.6, 0.05, 10), 0.01), "to within a fifth of itself");
        assert!(!precise_enough(&ratio(0.6, 0.051, 10), 0.01));
    }

    #[test]
    fn the_sign_does_not_matter() {
        for theta in [0.0, 0.01, 0.1, 0.6] {
            for error in [0.001, 0.004, 0.01, 0.05] {
                let (plus, minus) = (ratio(theta, error, 12), ratio(-theta, error, 12));
                assert_eq!(precise_enough(&plus, 0.01), precise_enough(&minus, 0.01));
            }
        }
    }

    #[test]
    fn time_grows_with_the_square_of_the_precision() {
        let twice = ratio(0.0, 0.02 / ratio(0.0, 1.0, 10).stopping_half_width().unwrap(), 10);
        assert!((seconds_to_decide(15.0, &twice, 0.01).unwrap() - 60.0).abs() < 1e-9);
        assert_eq!(seconds_to_decide(15.0, &twice, 0.0), None);
        assert_eq!(seconds_to_decide(15.0, &LogRatio { theta: 0.0, standard_error: None, units: 1 }, 0.01), None);
    }

    #[test]
    fn with_many_tests_detection_takes_longer() {
        let p_value = ratio(0.02, 0.008, 12).p_value().unwrap();
        assert!((0.02..0.05).contains(&p_value), "{p_value}");
        let seconds = |tests| seconds_to_detect(60.0, p_value, tests, 12).unwrap();
        assert!(seconds(1) < 60.0 && seconds(4) > 60.0 && seconds(8) > seconds(4));
        // t(0.975, 11) = 2.201 of 2.5, scipy 1.17.
        assert!((seconds(1) - 60.0 * (2.200985160082949_f64 / 2.5).powi(2)).abs() < 1e-6);
        assert_eq!(seconds_to_detect(60.0, p_value, 8, 1), None);
        assert_eq!(seconds_to_detect(60.0, p_value, 8, 0), None);
    }

    #[test]
    fn the_default_margin_wants_one_percent() {
        assert_eq!(wanted_half_width(0.03), 0.01);
    }
}
