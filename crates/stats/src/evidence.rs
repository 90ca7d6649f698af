//! What a comparison found about one metric, the difference of two costs, and the verdict on them.

use super::estimate::{Estimate, Neighbours, Uncertainty};
use super::ratio::{PairedRound, arms, lengths, with_influences};
use serde::{Deserialize, Serialize};

/// What tells the change of a metric: a ratio of sums, one value for each round, or a percentile of latency.
pub trait Evidence {
    /// The change as a fraction, with its interval of this confidence.
    fn change(&self, confidence: f64) -> Estimate;
    /// Two-sided p-value of no change: the interval of confidence 1 − p ends at 0.
    fn p_value(&self) -> Option<f64>;
    /// The smallest change, as a fraction, that an interval of this confidence excludes 0 for with 80 % probability. Smaller changes may
    /// exist undetected.
    fn mde80(&self, confidence: f64) -> Option<f64>;
    /// Half of the width of the interval of this confidence, in logarithms.
    fn half_width(&self, confidence: f64) -> Option<f64>;
    /// Number of units: rounds; and the correlation of consecutive ones, if it is evident.
    fn units(&self) -> (usize, Option<f64>);

    /// Whether the interval of this confidence excludes 0, so that the difference is *detected*. `false` without an interval.
    fn excludes_zero(&self, confidence: f64) -> bool {
        self.change(confidence).contains(0.0) == Some(false)
    }

    /// How many independent units these are worth: with an evident correlation ρ, (1 − ρ)/(1 + ρ) of them.
    fn independent_units(&self) -> f64 {
        let (units, correlation) = self.units();
        let correlation = correlation.unwrap_or(0.0);
        units as f64 * (1.0 - correlation) / (1.0 + correlation)
    }
}

/// The verdict on a change. Scripts rely on the names in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval is beyond the margin, on the good side.
    Better,
    /// The whole interval is beyond the margin, on the bad side.
    Worse,
    /// A difference was detected on the good side; it may be smaller than the margin.
    BetterMaybeSmall,
    /// A difference was detected on the bad side; it may be smaller than the margin.
    WorseMaybeSmall,
    /// The whole interval is within the margin. There may be a difference, but it does not matter.
    NoDifference,
    /// The interval contains both 0 and changes beyond the margin.
    #[default]
    Inconclusive,
}

/// Which direction of a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Good {
    /// Higher is better: IOPS, bytes per second.
    Higher,
    /// Lower is better: costs, latencies, context switches.
    Lower,
}

/// The verdict on `change`, a fraction with its interval. The first of these that applies:
///
/// 1. the interval beyond ±`margin`: `Better` or `Worse`;
/// 2. the interval within ±`margin`: `NoDifference`;
/// 3. the interval excludes 0: `BetterMaybeSmall` or `WorseMaybeSmall`;
/// 4. `Inconclusive`, also without an interval.
///
/// Several verdicts are right together if their intervals hold together ([`super::confidence_of_each`]).
pub fn verdict(change: &Estimate, margin: f64, good: Good) -> Verdict {
    let (Some(low), Some(high)) = (change.low, change.high) else { return Verdict::Inconclusive };
    let is_better = (change.value > 0.0) == (good == Good::Higher);
    if low > margin || high < -margin {
        return if is_better { Verdict::Better } else { Verdict::Worse };
    }
    if low >= -margin && high <= margin {
        return Verdict::NoDifference;
    }
    match (low > 0.0 || high < 0.0, is_better) {
        (true, true) => Verdict::BetterMaybeSmall,
        (true, false) => Verdict::WorseMaybeSmall,
        (false, _) => Verdict::Inconclusive,
    }
}

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
    let [baselines, candidates] = arms(rounds);
    let ((one, of_one), (other, of_other)) = (with_influences(&baselines)?, with_influences(&candidates)?);
    let influences: Vec<f64> = of_other.iter().zip(&of_one).map(|(theirs, ours)| theirs - ours).collect();
    let value = other - one;
    Some(Difference {
        value,
        error: Uncertainty::of_mean(&influences, &lengths(rounds), Neighbours::Independent).map(|(error, _)| error),
        units: rounds.len(),
        is_resolved: value.abs() > RESOLUTION * (one.abs() + other.abs()),
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
    use crate::ratio::Pair;
    use proptest::prelude::*;

    const MARGIN: f64 = 0.03;

    fn change(low: f64, high: f64) -> Estimate {
        Estimate { value: (low + high) / 2.0, low: Some(low), high: Some(high) }
    }

    fn of(low: f64, high: f64, good: Good) -> Verdict {
        verdict(&change(low, high), MARGIN, good)
    }

    #[test]
    fn each_word_for_a_metric_of_which_more_is_better() {
        for (low, high, expected) in [
            (0.031, 0.05, Verdict::Better),
            (-0.05, -0.031, Verdict::Worse),
            (0.001, 0.029, Verdict::NoDifference),
            (-0.02, 0.02, Verdict::NoDifference),
            (0.001, 0.031, Verdict::BetterMaybeSmall),
            (-0.031, -0.001, Verdict::WorseMaybeSmall),
            (-0.001, 0.031, Verdict::Inconclusive),
            (-0.2, 0.2, Verdict::Inconclusive),
        ] {
            assert_eq!(of(low, high, Good::Higher), expected, "[{low}, {high}]");
        }
    }

    #[test]
    fn a_cost_is_better_when_it_is_lower() {
        assert_eq!(of(0.04, 0.05, Good::Lower), Verdict::Worse);
        assert_eq!(of(-0.05, -0.04, Good::Lower), Verdict::Better);
        assert_eq!(of(-0.05, -0.01, Good::Lower), Verdict::BetterMaybeSmall);
    }

    #[test]
    fn no_interval_decides_nothing() {
        assert_eq!(verdict(&Estimate::bare(0.7), MARGIN, Good::Higher), Verdict::Inconclusive);
    }

    #[test]
    fn the_words_in_json() {
        let words = [
            (Verdict::Better, "\"better\""),
            (Verdict::Worse, "\"worse\""),
            (Verdict::BetterMaybeSmall, "\"better_maybe_small\""),
            (Verdict::WorseMaybeSmall, "\"worse_maybe_small\""),
            (Verdict::NoDifference, "\"no_difference\""),
            (Verdict::Inconclusive, "\"inconclusive\""),
        ];
        for (verdict, word) in words {
            assert_eq!(serde_json::to_string(&verdict).unwrap(), word);
        }
    }

    proptest! {
        #[test]
        fn turning_the_metric_round_turns_the_verdict_round(low in -0.2f64..0.2, width in 0.0f64..0.2) {
            let (up, down) = (of(low, low + width, Good::Higher), of(-low - width, -low, Good::Lower));
            prop_assert_eq!(up, down);
        }
    }

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
