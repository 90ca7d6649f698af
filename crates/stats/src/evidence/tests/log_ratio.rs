//! The logarithm of a ratio: golden values, and properties for arbitrary rounds.

use crate::estimate::{CONFIDENCE, Pair};
use crate::evidence::*;
use proptest::prelude::*;

fn round((n_a, d_a, n_b, d_b): (f64, f64, f64, f64)) -> PairedRound {
    PairedRound {
        baseline: Pair { numerator: n_a, denominator: d_a },
        candidate: Pair { numerator: n_b, denominator: d_b },
    }
}

/// Six rounds of cycles and I/Os.
fn golden_rounds() -> Vec<PairedRound> {
    [
        (50_310.0, 1000.0, 51_020.0, 990.0),
        (48_950.0, 985.0, 52_300.0, 1012.0),
        (51_400.0, 1020.0, 50_800.0, 975.0),
        (47_700.0, 930.0, 53_900.0, 1041.0),
        (49_250.0, 995.0, 51_650.0, 1003.0),
        (52_080.0, 1033.0, 49_990.0, 961.0),
    ]
    .map(round)
    .to_vec()
}

fn of(rounds: &[PairedRound]) -> Option<LogRatio> {
    log_ratio(rounds, Resolution::default())
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{found} is not {expected}");
}

/// By the formulas of docs/method, in Python with the matrix of the residuals and t by Simpson's rule.
#[test]
fn golden_log_ratio() {
    let ratio = of(&golden_rounds()).unwrap();
    close(ratio.theta, 0.029545064255999832);
    close(ratio.error.unwrap().standard_error, 0.004438502927884087);
    let change = ratio.change(CONFIDENCE);
    close(change.value, 0.029985849972085754);
    close(change.low.unwrap(), 0.018300627619946386);
    close(change.high.unwrap(), 0.04180516280567565);
    close(ratio.p_value().unwrap(), 0.0011549390714428252);
    close(ratio.mde80(CONFIDENCE).unwrap(), 0.015491312754465341);
    close(ratio.stopping_half_width(CONFIDENCE).unwrap(), 0.012235172150731078);
    assert!(ratio.excludes_zero(CONFIDENCE));
}

#[test]
fn one_round_has_a_value_and_no_error() {
    let ratio = of(&[round((100.0, 10.0, 110.0, 10.0))]).unwrap();
    assert!((ratio.change(CONFIDENCE).value - 0.1).abs() < 1e-12);
    assert_eq!(ratio.change(CONFIDENCE).low, None);
    assert_eq!((ratio.error, ratio.p_value(), ratio.mde80(CONFIDENCE)), (None, None, None));
    assert_eq!(ratio.stopping_half_width(CONFIDENCE), None);
    assert!(!ratio.excludes_zero(CONFIDENCE));
}

#[test]
fn only_the_sums_need_to_be_positive() {
    let one_below = [round((-5.0, 10.0, 40.0, 10.0)), round((100.0, 10.0, 80.0, 10.0))];
    assert!(of(&one_below).is_some());
    let all_below = [round((-5.0, 10.0, 40.0, 10.0)), round((4.0, 10.0, 80.0, 10.0))];
    assert_eq!(of(&all_below), None);
    assert_eq!(of(&[round((1.0, 0.0, 1.0, 1.0)); 3]), None, "no work");
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[round((f64::NAN, 1.0, 1.0, 1.0)); 3]), None);
    assert_eq!(of(&[round((f64::INFINITY, 1.0, 1.0, 1.0)); 3]), None);
}

/// Ten rounds in which nothing varies: the readings cannot tell a difference below their steps.
#[test]
fn what_readings_cannot_resolve_is_in_the_interval() {
    let steps = Resolution { numerator: 1.0, denominator: 1e-9, readings: 2.0 };
    let rounds = |candidate: f64| vec![round((1e6, 1.0, candidate, 1.0)); 10];
    let equal = log_ratio(&rounds(1e6), steps).unwrap().change(CONFIDENCE);
    assert!(equal.low.unwrap() < -1e-7 && equal.high.unwrap() > 1e-7, "{equal:?}");
    let near = log_ratio(&rounds(1e6 + 1e-3), steps).unwrap();
    assert!(!near.excludes_zero(CONFIDENCE) && near.p_value().unwrap() > 0.5, "{near:?}");
    // 20 readings of each sum of 1e7, off by √(1/12) each.
    close(near.error.unwrap().standard_error, 2.0_f64.sqrt() * (20.0_f64 / 12.0).sqrt() / 1e7);
    assert!(log_ratio(&rounds(1.001e6), steps).unwrap().excludes_zero(CONFIDENCE));
}

#[test]
fn rounding_is_not_a_difference() {
    // Thirds are not exact, so θ is a few 1e-17, and its error is no larger.
    let third = 1.0 / 3.0;
    let ratio = of(&[round((third, 0.1, 10.0 * third, 1.0)); 11]).unwrap();
    assert!(!ratio.excludes_zero(CONFIDENCE));
    assert_eq!(ratio.p_value(), Some(1.0));
    let exact = of(&[round((10.0, 1.0, 11.0, 1.0)); 4]).unwrap();
    assert!(exact.excludes_zero(CONFIDENCE), "a difference without any noise");
    assert!(exact.p_value().unwrap() < 1e-9);
}

fn rounds() -> impl Strategy<Value = Vec<PairedRound>> {
    // No round is most of them.
    let arm = || (0.5f64..2.0, 0.8f64..2.0);
    let one = (arm(), arm()).prop_map(|((n_a, d_a), (n_b, d_b))| round((n_a, d_a, n_b, d_b)));
    proptest::collection::vec(one, 2..40)
}

fn scaled(rounds: &[PairedRound], numerators: (f64, f64), denominators: (f64, f64)) -> Vec<PairedRound> {
    let scale = |pair: Pair, n: f64, d: f64| Pair { numerator: pair.numerator * n, denominator: pair.denominator * d };
    let both = |round: &PairedRound| PairedRound {
        baseline: scale(round.baseline, numerators.0, denominators.0),
        candidate: scale(round.candidate, numerators.1, denominators.1),
    };
    rounds.iter().map(both).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9
}

proptest! {
    #[test]
    fn exchanging_the_arms_negates_theta(rounds in rounds()) {
        let there = of(&rounds).unwrap();
        let swapped: Vec<PairedRound> = rounds.iter().map(|round| round.swapped()).collect();
        let back = of(&swapped).unwrap();
        prop_assert!(near(there.theta, -back.theta));
        prop_assert!(near(there.error.unwrap().standard_error, back.error.unwrap().standard_error));
        prop_assert!(near(there.p_value().unwrap(), back.p_value().unwrap()));
        let (there, back) = (there.change(CONFIDENCE), back.change(CONFIDENCE));
        // Not tested as a product: if an interval is infinitely wide, one end is 0, and the inverse of the other is not
        // a number.
        prop_assert!(near(1.0 + there.low.unwrap(), 1.0 / (1.0 + back.high.unwrap())));
    }

    #[test]
    fn units_of_cost_and_work_do_not_matter(rounds in rounds(), n in 0.001f64..1000.0, d in 0.001f64..1000.0) {
        let (plain, other) = (of(&rounds).unwrap(), of(&scaled(&rounds, (n, n), (d, d))).unwrap());
        prop_assert!(near(plain.theta, other.theta));
        prop_assert!(near(plain.error.unwrap().standard_error, other.error.unwrap().standard_error));
    }

    #[test]
    fn a_more_expensive_candidate_shifts_theta_and_leaves_its_error(rounds in rounds(), factor in 0.1f64..10.0) {
        let plain = of(&rounds).unwrap();
        let expensive = of(&scaled(&rounds, (1.0, factor), (1.0, 1.0))).unwrap();
        prop_assert!(near(expensive.theta - plain.theta, factor.ln()));
        prop_assert!(near(plain.error.unwrap().standard_error, expensive.error.unwrap().standard_error));
    }

    #[test]
    fn turning_the_order_of_rounds_round_does_not_matter(rounds in rounds()) {
        let mut turned = rounds.clone();
        turned.reverse();
        let (plain, turned) = (of(&rounds).unwrap(), of(&turned).unwrap());
        prop_assert!(near(plain.theta, turned.theta));
        // A correlation of many is also that of sums from the first round on.
        let same = near(plain.error.unwrap().standard_error, turned.error.unwrap().standard_error);
        prop_assert!(same || rounds.len() >= 16);
    }

    #[test]
    fn influences_sum_to_nothing(rounds in rounds()) {
        prop_assert!(near(log_with_influences(&rounds).unwrap().1.iter().sum(), 0.0));
    }

    #[test]
    fn detected_is_a_p_value_below_five_percent(rounds in rounds()) {
        let ratio = of(&rounds).unwrap();
        let p = ratio.p_value().unwrap();
        prop_assume!((p - 0.05).abs() > 1e-9);
        prop_assert_eq!(ratio.excludes_zero(CONFIDENCE), p < 0.05);
        prop_assert_eq!(ratio.excludes_zero(CONFIDENCE), ratio.change(CONFIDENCE).contains(0.0) == Some(false));
    }
}
