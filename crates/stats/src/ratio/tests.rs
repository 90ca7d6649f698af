//! Golden values, and properties for arbitrary units and rounds.

use super::*;
use crate::estimate::two_sided_p;
use proptest::prelude::*;

fn pairs(values: &[(f64, f64)]) -> Vec<Pair> {
    values.iter().map(|&(numerator, denominator)| Pair { numerator, denominator }).collect()
}

fn error(pairs: &[Pair], neighbours: Neighbours) -> Uncertainty {
    ratio_of_sums(pairs, neighbours).unwrap().error.unwrap()
}

/// Worked by hand: r = 60/30 = 2, residuals 1, 0, −1, se = sqrt(3/2 · 2)/30.
#[test]
fn golden_ratio_of_sums() {
    let ratio = ratio_of_sums(&pairs(&[(21.0, 10.0), (20.0, 10.0), (19.0, 10.0)]), Neighbours::Alike).unwrap();
    assert_eq!(ratio.value, 2.0);
    assert!((ratio.error.unwrap().standard_error - 3f64.sqrt() / 30.0).abs() < 1e-15);
    let interval = ratio.estimate();
    assert!((interval.half_width().unwrap() - 4.302652729749464 * 3f64.sqrt() / 30.0).abs() < 1e-9);
}

#[test]
fn correlated_neighbours_widen_the_error() {
    let alike = pairs(&[(11.0, 1.0); 4].into_iter().chain([(9.0, 1.0); 4]).collect::<Vec<_>>());
    let unlike = pairs(&[(11.0, 1.0), (9.0, 1.0)].into_iter().cycle().take(8).collect::<Vec<_>>());
    let (alike, unlike) = (error(&alike, Neighbours::Alike), error(&unlike, Neighbours::Alike));
    assert!(alike.standard_error > unlike.standard_error);
    assert!(alike.degrees_of_freedom < unlike.degrees_of_freedom);
    assert_eq!(unlike.degrees_of_freedom, 7.0, "never narrower");
}

#[test]
fn only_an_evident_correlation_is_told() {
    let of = |values: Vec<(f64, f64)>| ratio_of_sums(&pairs(&values), Neighbours::Alike).unwrap().correlation;
    let half = |cycles: f64| [(cycles, 1.0); 10];
    assert!(of([half(11.0), half(9.0)].concat()).unwrap() > 0.8);
    assert_eq!(of([(11.0, 1.0), (9.0, 1.0)].repeat(10)), None);
    assert_eq!(of(vec![(11.0, 1.0)]), None);
}

#[test]
fn without_work_there_is_no_ratio() {
    assert_eq!(ratio_of_sums(&[], Neighbours::Alike), None);
    assert_eq!(ratio_of_sums(&pairs(&[(5.0, 0.0)]), Neighbours::Alike), None);
}

#[test]
fn a_window_that_carries_the_mean_is_named() {
    let mut values = vec![(1.0, 1.0); 20];
    assert_eq!(dominant(&pairs(&values)), None);
    values[7].0 = 20.0;
    let found = dominant(&pairs(&values)).unwrap();
    assert_eq!(found.place, 7);
    assert!((found.part - 20.0 / 39.0).abs() < 1e-12);
    assert!(!found.of_denominator);
    values[7].1 = 20.0;
    assert_eq!(dominant(&pairs(&values)), None, "its work explains it");
    values[7].0 = 1.0;
    assert!(dominant(&pairs(&values)).unwrap().of_denominator, "a stalled round has the same I/Os and more seconds");
    assert_eq!(dominant(&pairs(&[(3.0, 1.0), (1.0, 1.0)])), None, "one of two has at least a half");
    assert_eq!(dominant(&pairs(&[(-3.0, 1.0); 5])), None);
    assert_eq!(dominant(&pairs(&[(5.0, 1.0), (-4.0, 1.0), (1.0, 1.0), (-1.0, 1.0)])), None, "noise around 0");
}

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

/// scipy.stats.t.sf(t, df)·2, scipy 1.17.1, also where 1 − cdf loses all digits.
#[test]
fn p_values_agree_with_scipy() {
    for (t, degrees, expected) in [
        (0.001, 11.0, 0.999220020627701),
        (0.5, 1.0, 0.7048327646991335),
        (2.0, 5.0, 0.10193947882985835),
        (2.5, 9.0, 0.033861827682985735),
        (6.0, 9.0, 0.00020249932206764079),
        (10.0, 29.0, 6.599862576433525e-11),
        (30.0, 59.0, 2.0159597914156017e-37),
    ] {
        let found = two_sided_p(t, degrees).unwrap();
        assert!((found / expected - 1.0).abs() < 1e-9, "t {t}, {degrees} degrees: {found} is not {expected}");
    }
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
    fn scaling_the_work_scales_the_cost_and_its_error(
        values in proptest::collection::vec((1.0f64..1e6, 2e5f64..5e5), 2..30),
        factor in 0.001f64..1000.0,
    ) {
        let plain = ratio_of_sums(&pairs(&values), Neighbours::Alike).unwrap();
        let scaled: Vec<_> = values.iter().map(|&(n, d)| (n * factor, d)).collect();
        let scaled = ratio_of_sums(&pairs(&scaled), Neighbours::Alike).unwrap();
        prop_assert!((scaled.value / plain.value / factor - 1.0).abs() < 1e-9);
        let (a, b) = (scaled.error.unwrap().standard_error, plain.error.unwrap().standard_error * factor);
        prop_assert!((a - b).abs() <= 1e-9 * scaled.value);
    }

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
