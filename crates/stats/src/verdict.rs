//! The verdict on a change: better, worse, no relevant difference, or not known yet.
//!
//! The input is an interval and the requested margin. Reports always show the interval together with the verdict.

use super::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// The verdict on a change. Scripts rely on the names in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

#[cfg(test)]
mod tests {
    use super::*;
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
}
