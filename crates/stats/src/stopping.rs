//! Decides when an experiment has measured enough.
//!
//! It stops when it is precise enough, independent of the sign of the result. Stopping as soon as a difference is
//! significant would find one in every fourth pair of identical arms (see `tests/simulated/calibration`).
//!
//! Rounds that look alike may be a few of a load that is sometimes slower: ten alike rounds leave open that every fourth is
//! not. So an experiment does not end with "no difference" before it has enough rounds to have seen such a state.

use super::estimate::CONFIDENCE;
use super::evidence::{Evidence, Good, LogRatio, Verdict, verdict};

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

/// A state that makes some rounds slower by this factor is the example for what a few rounds do not show: the machine's
/// own levels (page cache, CPU frequency, a neighbour) differ by about as much, and larger differences are
/// [regimes](super::regimes()).
pub const SLOW_STATE: f64 = 1.5;

/// Rounds for which a state may last that a report gives as an example.
pub const SPELL: f64 = 5.0;

/// The largest fraction of rounds that a state may have that none of this many independent rounds was in, with 95 % confidence:
/// 1 − 0.05^(1/R). A state that lasts for k rounds at a time is drawn only every k rounds: R/k.
pub fn unseen_fraction(rounds: f64) -> f64 {
    1.0 - (1.0 - CONFIDENCE).powf(1.0 / rounds.max(1.0))
}

/// Rounds after which a state that makes rounds 1.5 times slower, is drawn anew in each, and would move the mean past `margin`, has been seen
/// with 95 % probability: 49 for 3 %.
pub fn rounds_for_no_difference(margin: f64) -> usize {
    let fraction = (margin / (SLOW_STATE - 1.0)).clamp(1e-3, 1.0 - 1e-9);
    ((1.0 - CONFIDENCE).ln() / (1.0 - fraction).ln()).ceil() as usize
}

/// What an experiment is to find out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// The half-width at which to stop, as a fraction.
    pub half_width: f64,
    /// The verdict's margin, as a fraction.
    pub margin: f64,
    /// The confidence of the interval that the verdict is read off.
    pub confidence: f64,
}

/// Whether to stop: at least [`FEWEST_ROUNDS`] rounds, a [half-width](LogRatio::stopping_half_width) of at most the
/// [`allowed_half_width`], and, if the verdict is "no difference", enough [independent](Evidence::independent_units) rounds to have seen a
/// rare state.
pub fn precise_enough(ratio: &LogRatio, goal: Goal) -> bool {
    let allowed = allowed_half_width(ratio, goal.half_width);
    let is_narrow = ratio.stopping_half_width(goal.confidence).is_some_and(|half| half <= allowed);
    // The direction of the metric does not matter for this verdict.
    let is_none = verdict(&ratio.change(goal.confidence), goal.margin, Good::Lower) == Verdict::NoDifference;
    let seen = !is_none || ratio.independent_units() >= rounds_for_no_difference(goal.margin) as f64;
    is_narrow && seen && ratio.units >= FEWEST_ROUNDS
}

/// Total length of the experiment for the wanted half-width, from its length and half-width so far: errors shrink with the
/// square root of time, so T·(h/w)². `None` if nothing is wanted.
pub fn seconds_to_decide(elapsed_seconds: f64, half_width: f64, wanted_half_width: f64) -> Option<f64> {
    let seconds = elapsed_seconds * (half_width / wanted_half_width).powi(2);
    (wanted_half_width > 0.0 && seconds.is_finite()).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Uncertainty, confidence_of_each};

    const GOAL: Goal = Goal { half_width: 0.01, margin: 0.03, confidence: CONFIDENCE };

    #[test]
    fn many_comparisons_need_more_rounds() {
        let one = ratio(0.05, 0.004, 10);
        assert!(precise_enough(&one, GOAL));
        let many = Goal { confidence: confidence_of_each(20), ..GOAL };
        assert!(!precise_enough(&one, many), "t(1 − 0.00125, 9) × 0.4 % is 1.6 %");
    }

    fn ratio(theta: f64, standard_error: f64, units: usize) -> LogRatio {
        let error = Some(Uncertainty::new(standard_error, units as f64 - 1.0));
        LogRatio { theta, error, units, correlation: None }
    }

    #[test]
    fn only_precision_stops() {
        let enough = |ratio: LogRatio| precise_enough(&ratio, GOAL);
        assert!(enough(ratio(0.04, 0.004, 10)), "2.398 × 0.4 % is below 1 %");
        assert!(!enough(ratio(0.04, 0.0042, 10)), "2.398 × 0.42 % is above 1 %");
        assert!(!enough(ratio(0.04, 0.0001, 9)), "nine rounds are too few");
        assert!(!enough(ratio(0.03, 0.005, 10)), "six standard errors from 0, and not precise");
        assert!(enough(ratio(0.6, 0.05, 10)), "to within a fifth of itself");
        assert!(!enough(ratio(0.6, 0.051, 10)));
    }

    #[test]
    fn no_difference_needs_rounds_that_would_have_shown_a_rare_state() {
        assert_eq!([0.01, 0.03, 0.1, 0.6].map(rounds_for_no_difference), [149, 49, 14, 1]);
        assert!(rounds_for_no_difference(0.0) < 10_000, "the budget ends such an experiment");
        let enough = |units| precise_enough(&ratio(0.001, 0.0001, units), GOAL);
        assert!(!enough(48) && enough(49));
        // A correlation of 0.5 makes 147 rounds worth 49.
        let correlated =
            |units| precise_enough(&LogRatio { correlation: Some(0.5), ..ratio(0.001, 0.0001, units) }, GOAL);
        assert!(!correlated(146) && correlated(147));
        // The margin is a fraction, so −10 % is further from 0 than +10 % in logarithms.
        let wide = Goal { half_width: 0.0334, margin: 0.1, ..GOAL };
        let near_the_end = |theta, units| precise_enough(&ratio(theta, 0.0136, units), wide);
        assert!(!near_the_end(-0.065, 13) && near_the_end(-0.065, 14), "[-9.2, -3.4] is within ±10 %");
        assert!(near_the_end(0.09, 10), "[6.1, 12.8] is not");
    }

    /// With 3 / R rounds of a state, R rounds contain it with 95 % probability (the rule of three).
    #[test]
    fn rounds_do_not_exclude_what_they_did_not_see() {
        assert!((unseen_fraction(10.0) - 0.2589).abs() < 1e-4);
        assert!((unseen_fraction(60.0) - 3.0 / 60.0).abs() < 0.002);
        assert!((unseen_fraction(0.0) - 0.95).abs() < 1e-12);
    }

    #[test]
    fn the_sign_does_not_matter() {
        for theta in [0.0, 0.01, 0.1, 0.6] {
            for error in [0.001, 0.004, 0.01, 0.05] {
                let (plus, minus) = (ratio(theta, error, 60), ratio(-theta, error, 60));
                assert_eq!(precise_enough(&plus, GOAL), precise_enough(&minus, GOAL));
            }
        }
    }

    #[test]
    fn time_grows_with_the_square_of_the_precision() {
        assert!((seconds_to_decide(15.0, 0.02, 0.01).unwrap() - 60.0).abs() < 1e-9);
        assert_eq!(seconds_to_decide(15.0, 0.02, 0.0), None);
        assert_eq!(seconds_to_decide(15.0, f64::NAN, 0.01), None);
    }

    #[test]
    fn the_default_margin_wants_one_percent() {
        assert_eq!(wanted_half_width(0.03), 0.01);
    }
}
