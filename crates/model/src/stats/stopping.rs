//! When an experiment has measured enough.
//!
//! It stops on precision, which does not look at the sign of what it found. Stopping as soon as a difference is
//! significant finds one in every fourth pair of identical arms (`tests/calibration` shows it).

use super::log_ratio::LogRatio;

/// Precision is not judged from fewer rounds: their spread says too little of itself.
pub const FEWEST_ROUNDS: usize = 10;
/// A large change need not be known better than to this part of itself.
const PART_OF_THE_CHANGE: f64 = 0.2;
/// The verdict's margin in wanted half widths. With three, an interval around 0 lies well within the margin, and one
/// around twice the margin well beyond it.
const HALF_WIDTHS_IN_MARGIN: f64 = 3.0;

/// The half width to stop at, as a fraction, for a verdict with this margin.
pub fn wanted_half_width(margin: f64) -> f64 {
    margin / HALF_WIDTHS_IN_MARGIN
}

/// Whether to stop: at least [`FEWEST_ROUNDS`], and t(0.98)·se ≤ max(wanted, |θ|/5).
///
/// |θ|/5 exceeds the half width only where θ is 12 standard errors from 0, so it cannot make a difference out of none.
pub fn precise_enough(ratio: &LogRatio, wanted_half_width: f64) -> bool {
    let allowed = wanted_half_width.max(ratio.theta.abs() * PART_OF_THE_CHANGE);
    ratio.units >= FEWEST_ROUNDS && ratio.stopping_half_width().is_some_and(|half| half <= allowed)
}

/// How long the whole experiment would have to be for the wanted half width, from its length so far: errors shrink with
/// the square root of time, so T·(h/w)². `None` where nothing is known of the error or nothing is wanted.
pub fn seconds_to_decide(elapsed_seconds: f64, ratio: &LogRatio, wanted_half_width: f64) -> Option<f64> {
    let seconds = elapsed_seconds * (ratio.stopping_half_width()? / wanted_half_width).powi(2);
    (wanted_half_width > 0.0 && seconds.is_finite()).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(theta: f64, standard_error: f64, units: usize) -> LogRatio {
        LogRatio { theta, standard_error: Some(standard_error), units }
    }

    #[test]
    fn precision_stops_and_significance_does_not() {
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
    fn the_default_margin_wants_one_percent() {
        assert_eq!(wanted_half_width(0.03), 0.01);
    }
}
