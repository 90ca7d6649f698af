//! The difference of two ratios of sums that were measured side by side: cycles per I/O of the candidate minus those of the baseline.
//!
//! A part of a cost may be 0 in one arm, or below 0 net of the background, so it has no ratio and no logarithm. Its difference has the unit of
//! the cost, and the differences of all parts sum to that of the whole.

use super::estimate::Estimate;
use super::log_ratio::{PairedRound, lengths};
use super::ratio::Pair;
use super::serial::Neighbours;
use super::uncertainty::Uncertainty;

/// A difference that is a smaller part of the two ratios is a rounding error of their sums.
const RESOLUTION: f64 = 1e-12;

/// Candidate minus baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    pub value: f64,
    /// How far it may be off; `None` with fewer than two rounds.
    pub error: Option<Uncertainty>,
    /// Rounds.
    pub units: usize,
    /// Whether it is more than a rounding error.
    is_resolved: bool,
}

/// Σn_B/Σd_B − Σn_A/Σd_A over R rounds, A the baseline and B the candidate.
///
/// The standard error is that of the rounds' influences on the difference (Cochran, Sampling Techniques, 3rd ed., § 6.4), which sum to 0:
/// z_r = R·((n_Br − r_B·d_Br)/Σd_B − (n_Ar − r_A·d_Ar)/Σd_A). What both arms of a round share cancels in its z. `None` if a sum of denominators
/// is not positive.
pub fn difference(rounds: &[PairedRound]) -> Option<Difference> {
    let ratio = |arm: fn(&PairedRound) -> Pair| {
        let numerators: f64 = rounds.iter().map(|round| arm(round).numerator).sum();
        let denominators: f64 = rounds.iter().map(|round| arm(round).denominator).sum();
        let value = numerators / denominators;
        (denominators > 0.0 && value.is_finite()).then_some((value, denominators))
    };
    let (baseline, candidate) = (ratio(|round| round.baseline)?, ratio(|round| round.candidate)?);
    let residual =
        |pair: Pair, (value, denominators): (f64, f64)| (pair.numerator - value * pair.denominator) / denominators;
    let count = rounds.len() as f64;
    let influence =
        |round: &PairedRound| count * (residual(round.candidate, candidate) - residual(round.baseline, baseline));
    let influences: Vec<f64> = rounds.iter().map(influence).collect();
    let value = candidate.0 - baseline.0;
    Some(Difference {
        value,
        error: Uncertainty::of_mean(&influences, &lengths(rounds), Neighbours::Independent).map(|(error, _)| error),
        units: rounds.len(),
        is_resolved: value.abs() > RESOLUTION * (baseline.0.abs() + candidate.0.abs()),
    })
}

impl Difference {
    /// The difference with its interval of this confidence.
    pub fn estimate(&self, confidence: f64) -> Estimate {
        Estimate::around(self.value, self.error.as_ref(), confidence)
    }

    /// Whether the interval of this confidence excludes 0, so that it is *detected*.
    pub fn excludes_zero(&self, confidence: f64) -> bool {
        self.is_resolved && self.estimate(confidence).contains(0.0) == Some(false)
    }

    /// Whether another, independent measurement of the same difference differs by more than both errors explain; `None` if one has none.
    pub fn contradicts(&self, other: &Self, confidence: f64) -> Option<bool> {
        let error = self.error?.plus(other.error?.scaled(-1.0));
        Some(!Estimate::around(self.value - other.value, Some(&error), confidence).contains(0.0)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::CONFIDENCE;
    use proptest::prelude::*;

    fn rounds(values: &[[f64; 4]]) -> Vec<PairedRound> {
        let pair = |numerator, denominator| Pair { numerator, denominator };
        let round = |&[n, d, m, e]: &[f64; 4]| PairedRound { baseline: pair(n, d), candidate: pair(m, e) };
        values.iter().map(round).collect()
    }

    /// Worked by hand: 6 − 4 = 2, influences 0.5, 0, −0.5, se = sqrt(0.5/2/3).
    #[test]
    fn golden() {
        let found = difference(&rounds(&[[4.0, 1.0, 6.5, 1.0], [4.0, 1.0, 6.0, 1.0], [4.0, 1.0, 5.5, 1.0]])).unwrap();
        assert_eq!((found.value, found.units), (2.0, 3));
        assert!((found.error.unwrap().standard_error - (0.5f64 / 2.0 / 3.0).sqrt()).abs() < 1e-12);
        assert!(found.excludes_zero(CONFIDENCE));
    }

    #[test]
    fn what_both_arms_share_is_no_error() {
        let found = difference(&rounds(&[[10.0, 1.0, 13.0, 1.0], [90.0, 1.0, 93.0, 1.0], [40.0, 1.0, 43.0, 1.0]]));
        assert!(found.unwrap().error.unwrap().standard_error < 1e-9);
    }

    #[test]
    fn a_part_may_be_absent_in_an_arm() {
        let found = difference(&rounds(&[[0.0, 1.0, 3.0, 1.0], [0.0, 1.0, 4.0, 1.0], [0.0, 2.0, 5.0, 2.0]])).unwrap();
        assert_eq!(found.value, 3.0);
        assert_eq!(difference(&rounds(&[[0.0, 0.0, 3.0, 1.0]])), None);
        assert!(difference(&rounds(&[[1.0, 1.0, 3.0, 1.0]])).unwrap().error.is_none());
    }

    #[test]
    fn rounding_is_no_difference() {
        let same = [[0.1 + 0.2, 3.0, 0.3, 3.0]; 4];
        assert!(!difference(&rounds(&same)).unwrap().excludes_zero(CONFIDENCE));
    }

    #[test]
    fn two_measurements_contradict_each_other_beyond_their_errors() {
        let of = |level: f64| difference(&rounds(&[[1.0, 1.0, level + 0.1, 1.0], [1.0, 1.0, level - 0.1, 1.0]]));
        let of = |level| {
            let error = Uncertainty::new(1.0, 20.0);
            Difference { error: Some(error), ..of(level).unwrap() }
        };
        // 2.02 × √2 is 2.86.
        assert_eq!(of(5.0).contradicts(&of(7.8), CONFIDENCE), Some(false));
        assert_eq!(of(5.0).contradicts(&of(7.9), CONFIDENCE), Some(true));
        let bare = Difference { error: None, ..of(5.0) };
        assert_eq!(of(5.0).contradicts(&bare, CONFIDENCE), None);
    }

    proptest! {
        #[test]
        fn exchanged_arms_give_the_opposite(
            values in proptest::collection::vec([0.0f64..1e6, 2e5f64..5e5, 0.0f64..1e6, 2e5f64..5e5], 2..20),
        ) {
            let rounds = rounds(&values);
            let back: Vec<PairedRound> = rounds.iter().map(|round| round.swapped()).collect();
            let (one, other) = (difference(&rounds).unwrap(), difference(&back).unwrap());
            prop_assert_eq!(one.value, -other.value);
            let (one, other) = (one.error.unwrap().standard_error, other.error.unwrap().standard_error);
            prop_assert!((one - other).abs() <= 1e-9 * one.max(1e-9));
        }
    }
}
