//! Values of tables and by hand, and properties for any units.

use super::*;
use proptest::prelude::*;

/// scipy.stats.t.ppf(p, df), scipy 1.17.
#[test]
fn student_t_agrees_with_scipy() {
    for (probability, degrees, expected) in [
        (0.975, 1.0, 12.706204736174694),
        (0.975, 4.0, 2.7764451051977934),
        (0.975, 9.0, 2.262157162798205),
        (0.975, 19.0, 2.0930240544083087),
        (0.98, 9.0, 2.3984409848565056),
        (0.8, 29.0, 0.8541919858818557),
    ] {
        let found = student_t(probability, degrees).unwrap();
        assert!((found - expected).abs() < 1e-9, "t({probability}, {degrees}) = {found}, not {expected}");
    }
}

#[test]
fn one_unit_gives_no_interval() {
    assert_eq!(Estimate::with_error(1.0, 0.1, 0.0), Estimate::bare(1.0));
}

fn of(values: &[f64]) -> Uncertainty {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let influences: Vec<f64> = values.iter().map(|value| value - mean).collect();
    Uncertainty::of_mean(&influences, &vec![1.0; values.len()], Neighbours::Independent).unwrap().0
}

#[test]
fn symmetric_units_have_students_interval() {
    let found = of(&[1.0, 3.0, 2.0, 1.0, 3.0, 2.0]);
    let (below, above) = found.reach(0.95).unwrap();
    let half = student_t(0.975, 5.0).unwrap() * (4.0_f64 / 5.0 / 6.0).sqrt();
    assert!((below - half).abs() < 1e-9 && (above - half).abs() < 1e-9, "{below} {above} {half}");
}

/// One stall in twenty windows: the truth is more likely far above than far below.
#[test]
fn a_long_upper_tail_reaches_far_up() {
    let values: Vec<f64> = (0..20).map(|place| if place == 7 { 20.0 } else { 1.0 }).collect();
    let found = of(&values);
    let (below, above) = found.reach(0.95).unwrap();
    let half = found.times_t(0.975).unwrap();
    assert!(above > 2.5 * half && below < 0.7 * half, "{below} {above} of ±{half}");
    let (mirrored_below, mirrored_above) = found.scaled(-1.0).reach(0.95).unwrap();
    assert!((mirrored_below - above).abs() < 1e-9 && (mirrored_above - below).abs() < 1e-9);
}

#[test]
fn a_sum_has_the_errors_of_both() {
    let one = Uncertainty { standard_error: 3.0, degrees_of_freedom: 5.0, skewness: 0.4 };
    let sum = one.plus(Uncertainty::new(4.0, 9.0));
    assert_eq!(sum.standard_error, 5.0);
    assert!((sum.degrees_of_freedom - 625.0 / (81.0 / 5.0 + 256.0 / 9.0)).abs() < 1e-12);
    assert!((sum.skewness - 0.4 * 27.0 / 125.0).abs() < 1e-12);
    assert_eq!(Uncertainty::new(0.0, 4.0).plus(Uncertainty::new(0.0, 7.0)).degrees_of_freedom, 4.0);
}

#[test]
fn a_resolution_is_a_floor() {
    assert_eq!(Uncertainty::new(0.0, 9.0).at_least(0.5).standard_error, 0.5);
    assert_eq!(Uncertainty::new(0.7, 9.0).at_least(0.5).standard_error, 0.7);
}

#[test]
fn correlated_neighbours_reach_further() {
    let alike: Vec<f64> = (0..60).map(|place| if place < 30 { 1.0 } else { -1.0 }).collect();
    let unlike: Vec<f64> = (0..60).map(|place| if place % 2 == 0 { 1.0 } else { -1.0 }).collect();
    assert!(of(&alike).standard_error > 4.0 * of(&unlike).standard_error);
}

#[test]
fn several_intervals_together_are_each_wider() {
    assert_eq!(confidence_of_each(1), 0.95);
    assert_eq!(confidence_of_each(0), 0.95);
    assert!((confidence_of_each(5) - 0.99).abs() < 1e-12);
}

#[test]
fn equal_lengths_have_the_usual_variance_of_a_mean() {
    let influences = [3.0, -1.0, -1.0, -2.0, 1.0];
    let lengths = Lengths::of(&[7.0; 5]).unwrap();
    assert!((lengths.degrees_of_freedom - 4.0).abs() < 1e-9, "{}", lengths.degrees_of_freedom);
    assert!((lengths.variance_of_mean(&influences) - 16.0 / 4.0 / 5.0).abs() < 1e-12);
}

/// By the matrix itself: the covariances of h·(ε − Σhε)/√seen.
#[test]
fn degrees_of_freedom_are_those_of_the_corrected_residuals() {
    let parts: [f64; 4] = [0.5, 0.25, 0.15, 0.1];
    let squares: f64 = parts.iter().map(|part| part * part).sum();
    let seen = |r: usize| 1.0 - 2.0 * parts[r] + squares;
    let covariance = |r: usize, s: usize| {
        let same = if r == s { 1.0 } else { 0.0 };
        parts[r] * parts[s] * (same - parts[r] - parts[s] + squares) / (seen(r) * seen(s)).sqrt()
    };
    let all = |of: &dyn Fn(usize, usize) -> f64| -> f64 { (0..16).map(|place| of(place / 4, place % 4)).sum() };
    let trace: f64 = (0..4).map(|r| covariance(r, r)).sum();
    let expected = trace * trace / all(&|r, s| covariance(r, s).powi(2));
    let found = Lengths::of(&parts.map(|part| 3.0 * part)).unwrap().degrees_of_freedom;
    assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
}

#[test]
fn one_unit_that_is_most_of_the_length_leaves_nothing_to_tell_its_error() {
    assert!(Lengths::of(&[20.0, 1.0, 1.0, 1.0]).is_none());
    assert!(Lengths::of(&[2.0, 1.0]).is_some());
    assert!(Lengths::of(&[1.0]).is_none() && Lengths::of(&[]).is_none() && Lengths::of(&[0.0; 3]).is_none());
}

/// Residuals 1, 1, −1, −1, 1, 1, −1, −1: 7 products sum to 1, of 8 squares: ρ̂ = 1/8, plus (1 + 3/8)/8.
#[test]
fn worked_by_hand() {
    let residuals = [1.0, 1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0];
    let found = serial(&residuals, Neighbours::Alike);
    assert!((found.correlation - (0.125 + 1.375 / 8.0)).abs() < 1e-12, "{found:?}");
    assert!((found.growth - (1.0 + found.correlation) / (1.0 - found.correlation)).abs() < 1e-12);
    assert_eq!(serial(&residuals, Neighbours::Independent), Serial::NONE, "1/8 + 1/8 is below 1.645/√8");
}

#[test]
fn neighbours_that_alternate_never_narrow_an_error() {
    let residuals = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0];
    let found = serial(&residuals, Neighbours::Alike);
    assert_eq!((found.correlation, found.growth), (0.0, 1.0));
}

#[test]
fn a_trend_is_evident_and_its_growth_is_limited() {
    let residuals: Vec<f64> = (0..60).map(|place| f64::from(place) - 29.5).collect();
    let found = serial(&residuals, Neighbours::Independent);
    assert!(found.is_evident && found.growth == 30.0, "{found:?}");
}

/// A level that changes after every 20 of 80, below noise that alternates: the neighbours themselves are not alike.
#[test]
fn a_level_that_wanders_below_noise_is_evident() {
    let residuals: Vec<f64> =
        (0..80).map(|place| [1.0, 2.0, -1.0, -2.0][place / 20] + [4.0, -4.0][place % 2]).collect();
    assert_eq!(lag_one(&residuals, 1, Neighbours::Independent), Serial::NONE);
    let found = serial(&residuals, Neighbours::Independent);
    // The variance of a mean of four levels, against that of 80 residuals of ±4 and a level.
    assert!(found.is_evident && found.growth > 2.5, "{found:?}");
}

#[test]
fn few_or_equal_residuals_say_nothing() {
    assert_eq!(serial(&[1.0, 0.0, -1.0], Neighbours::Alike), Serial::NONE);
    assert_eq!(serial(&[0.0; 20], Neighbours::Alike), Serial::NONE);
}

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

proptest! {
    /// A p-value and an interval are the same statement.
    #[test]
    fn an_interval_ends_where_the_p_value_says(
        skewness in -2.0f64..2.0,
        degrees in 1.0f64..100.0,
        confidence in 0.5f64..0.999,
    ) {
        let found = Uncertainty { standard_error: 2.0, degrees_of_freedom: degrees, skewness };
        let (below, above) = found.reach(confidence).unwrap();
        prop_assert!((found.p_value(below).unwrap() - (1.0 - confidence)).abs() < 1e-6);
        prop_assert!((found.p_value(-above).unwrap() - (1.0 - confidence)).abs() < 1e-6);
        prop_assert!(below + above > 0.0);
    }

    #[test]
    fn unequal_lengths_are_worth_fewer_units(lengths in proptest::collection::vec(0.1f64..10.0, 2..40)) {
        prop_assume!(Lengths::of(&lengths).is_some());
        let found = Lengths::of(&lengths).unwrap().degrees_of_freedom;
        prop_assert!(found >= 1.0 && found <= lengths.len() as f64 - 1.0 + 1e-9, "{}", found);
    }

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
}
