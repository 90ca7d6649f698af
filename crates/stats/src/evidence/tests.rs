//! Words by hand, golden values, and properties for arbitrary rounds.

mod log_ratio;

use super::*;
use crate::estimate::CONFIDENCE;
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
fn no_interval_decides_nothing() {
    assert_eq!(verdict(&Estimate::bare(0.7), MARGIN, Good::Higher), Verdict::Inconclusive);
}

#[test]
fn the_words_in_json() {
    use Verdict::*;
    let all = [Better, Worse, BetterMaybeSmall, WorseMaybeSmall, NoDifference, Inconclusive];
    let words = ["better", "worse", "better_maybe_small", "worse_maybe_small", "no_difference", "inconclusive"];
    assert_eq!(serde_json::to_value(all).unwrap(), serde_json::json!(words));
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
