//! A value with its confidence interval, and how far it may be off: its standard error, what that is based on, and how skewed the estimate is.
//!
//! The input is the residuals (influences) of units, whose mean is 0. The result gives intervals and p-values, and can
//! be combined with that of an independent estimate. All intervals of means and ratios of sums come from here.

use super::serial::{Neighbours, serial};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence of a reported interval, unless several hold together ([`confidence_of_each`]).
pub const CONFIDENCE: f64 = 0.95;

/// Quantile of Student's t distribution; `None` without a degree of freedom.
pub fn student_t(probability: f64, degrees_of_freedom: f64) -> Option<f64> {
    if degrees_of_freedom < 1.0 || !degrees_of_freedom.is_finite() {
        return None;
    }
    Some(StudentsT::new(0.0, 1.0, degrees_of_freedom).ok()?.inverse_cdf(probability))
}

/// A value and its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Lower end of the interval; `None` if there are too few units. Its confidence is 95 % where nothing else is said.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

impl Estimate {
    /// A value without an interval.
    pub fn bare(value: f64) -> Self {
        Self { value, low: None, high: None }
    }

    /// A value that is exact.
    pub fn exact(value: f64) -> Self {
        Self { value, low: Some(value), high: Some(value) }
    }

    /// value ± t(0.975, degrees of freedom) × standard error.
    pub fn with_error(value: f64, standard_error: f64, degrees_of_freedom: f64) -> Self {
        match half_width(standard_error, degrees_of_freedom) {
            Some(half) => Self { value, low: Some(value - half), high: Some(value + half) },
            None => Self::bare(value),
        }
    }

    /// The value with the interval that its uncertainty gives; bare without one.
    pub fn around(value: f64, error: Option<&Uncertainty>, confidence: f64) -> Self {
        match error.and_then(|error| error.reach(confidence)) {
            Some((below, above)) => Self { value, low: Some(value - below), high: Some(value + above) },
            None => Self::bare(value),
        }
    }

    /// The value and both ends by an increasing function.
    pub fn map(self, by: impl Fn(f64) -> f64) -> Self {
        Self { value: by(self.value), low: self.low.map(&by), high: self.high.map(&by) }
    }

    /// `None` without an interval.
    pub fn bounded(self) -> Option<Self> {
        self.ends().map(|_| self)
    }

    /// The ends of the interval.
    pub fn ends(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }

    /// Half the width of the interval.
    pub fn half_width(&self) -> Option<f64> {
        Some((self.high? - self.low?) / 2.0)
    }

    /// Whether the interval contains `truth`; `None` without an interval.
    pub fn contains(&self, truth: f64) -> Option<bool> {
        Some(self.low? <= truth && truth <= self.high?)
    }

    /// The same estimate in a unit that is `factor` times as fine.
    pub fn scaled(&self, factor: f64) -> Self {
        self.map(|end| end * factor)
    }
}

/// t(0.975, degrees of freedom) × standard error; `None` without a degree of freedom.
pub fn half_width(standard_error: f64, degrees_of_freedom: f64) -> Option<f64> {
    Some(student_t(0.5 + CONFIDENCE / 2.0, degrees_of_freedom)? * standard_error)
}

/// The uncertainty of an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Uncertainty {
    /// Standard error, in the unit of the estimate.
    pub standard_error: f64,
    /// Degrees of freedom of the standard error; at least 1.
    pub degrees_of_freedom: f64,
    /// Skewness of the estimate's distribution: that of its units, divided by the square root of their number. Costs have a
    /// long upper tail, because stalls are rare and large.
    pub skewness: f64,
}

impl Uncertainty {
    /// A symmetric one.
    pub fn new(standard_error: f64, degrees_of_freedom: f64) -> Self {
        Self { standard_error, degrees_of_freedom: degrees_of_freedom.max(1.0), skewness: 0.0 }
    }

    /// Of the mean of units with these `influences`, whose sum is 0, and these lengths, in any unit ([`Lengths`]). The correlation of neighbours
    /// makes the error larger and its degrees of freedom fewer, and is returned where it is evident. `None` with fewer than two, or where one is most of the length.
    pub fn of_mean(influences: &[f64], lengths: &[f64], neighbours: Neighbours) -> Option<(Self, Option<f64>)> {
        let count = influences.len() as f64;
        let lengths = Lengths::of(lengths)?;
        let squares: f64 = influences.iter().map(|value| value.powi(2)).sum();
        let cubes: f64 = influences.iter().map(|value| value.powi(3)).sum();
        let serial = serial(influences, neighbours);
        let deviation = (squares / count).sqrt();
        let degrees = lengths.degrees_of_freedom;
        let skewness = evident(cubes / count / deviation.powi(3), count) / count.sqrt();
        let standard_error = (lengths.variance_of_mean(influences) * serial.growth).sqrt();
        // The correlation is itself an estimate, so it does not take all degrees of freedom.
        let degrees_of_freedom = (degrees / serial.growth).max(FEWEST_DEGREES.min(degrees));
        standard_error.is_finite().then_some((Self { standard_error, degrees_of_freedom, skewness }, serial.evident()))
    }

    /// The uncertainty of `factor` times the estimate.
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            standard_error: self.standard_error * factor.abs(),
            skewness: self.skewness * if factor < 0.0 { -1.0 } else { 1.0 },
            ..self
        }
    }

    /// Of the sum of two independent estimates: variances and third moments add, and the degrees of freedom follow
    /// (Satterthwaite, 1946).
    pub fn plus(self, other: Self) -> Self {
        let (one, two) = (self.standard_error, other.standard_error);
        let error = one.hypot(two);
        if error <= 0.0 {
            let degrees_of_freedom = self.degrees_of_freedom.min(other.degrees_of_freedom);
            return Self { standard_error: error, degrees_of_freedom, skewness: 0.0 };
        }
        let fourth = one.powi(4) / self.degrees_of_freedom + two.powi(4) / other.degrees_of_freedom;
        let third = self.skewness * one.powi(3) + other.skewness * two.powi(3);
        Self {
            standard_error: error,
            degrees_of_freedom: (error.powi(4) / fourth).max(1.0),
            skewness: third / error.powi(3),
        }
    }

    /// The same with a standard error of at least `least`: what the readings cannot resolve.
    pub fn at_least(self, least: f64) -> Self {
        if self.standard_error >= least {
            return self;
        }
        Self { standard_error: least, skewness: 0.0, ..self }
    }

    /// How far the truth may be below and above the estimate, with this confidence.
    ///
    /// Student's t, transformed so that the skewness of the estimate cancels (Hall, 1992, "On the removal of skewness
    /// by transformation", J. R. Statist. Soc. B 54): with T = (estimate − truth)/se and a = skewness/3, the variable
    /// ((1 + aT)³ − 1)/3a + a/2 is nearly symmetric. Without skewness it is T. Neither side is more than 3.5 times as far
    /// as t, because the transformation has no bound where it was never meant to be used.
    pub fn reach(&self, confidence: f64) -> Option<(f64, f64)> {
        let t = student_t(0.5 + confidence / 2.0, self.degrees_of_freedom)?;
        Some((self.standard_error * self.skewed(t), -self.standard_error * self.skewed(-t)))
    }

    /// Half of the width of the interval with this confidence.
    pub fn half_width(&self, confidence: f64) -> Option<f64> {
        let (below, above) = self.reach(confidence)?;
        Some((below + above) / 2.0)
    }

    /// t(`probability`) standard errors.
    pub fn times_t(&self, probability: f64) -> Option<f64> {
        Some(student_t(probability, self.degrees_of_freedom)? * self.standard_error)
    }

    /// Two-sided p-value of a truth that is `distance` below the estimate: an interval of confidence 1 − p ends there.
    pub fn p_value(&self, distance: f64) -> Option<f64> {
        let a = self.skewness / 3.0;
        let t = distance / self.standard_error;
        let symmetric = if t.is_infinite() || a.abs() < TINY {
            t
        } else {
            let transformed = ((1.0 + a * t).powi(3) - 1.0) / (3.0 * a) + a / 2.0;
            transformed.abs().max(t.abs() / MOST_WIDENED).copysign(t)
        };
        two_sided_p(symmetric, self.degrees_of_freedom)
    }

    /// The T whose symmetric counterpart is `symmetric`.
    fn skewed(&self, symmetric: f64) -> f64 {
        let a = self.skewness / 3.0;
        if a.abs() < TINY {
            return symmetric;
        }
        let skewed = ((1.0 + 3.0 * a * (symmetric - a / 2.0)).cbrt() - 1.0) / a;
        skewed.abs().min(MOST_WIDENED * symmetric.abs()).copysign(symmetric)
    }
}

/// The part of the skewness of `count` units that chance does not explain: normal ones have one of ±√(6/n).
fn evident(skewness: f64, count: f64) -> f64 {
    let square = skewness.powi(2);
    if !square.is_finite() || square <= 6.0 / count {
        return 0.0;
    }
    skewness * (1.0 - 6.0 / count / square).sqrt()
}

/// Degrees of freedom that a correlation leaves: with three, t(0.975) is 3.2.
const FEWEST_DEGREES: f64 = 3.0;

/// The most that the transformation changes a quantile by.
const MOST_WIDENED: f64 = 3.5;

/// Below, the transformation loses its digits, and there is no skewness to speak of.
const TINY: f64 = 1e-6;

/// P(|T| ≥ |t|) of Student's t; an infinite t (a difference without any spread) has probability 0.
pub(super) fn two_sided_p(t: f64, degrees_of_freedom: f64) -> Option<f64> {
    if t.is_nan() {
        return None;
    }
    if t.is_infinite() {
        return Some(0.0);
    }
    // Uses the lower tail, because 1 − cdf of the upper tail loses all digits where it matters.
    Some((2.0 * StudentsT::new(0.0, 1.0, degrees_of_freedom).ok()?.cdf(-t.abs())).min(1.0))
}

/// A confidence such that `tests` intervals together hold with the confidence of one (Bonferroni).
pub fn confidence_of_each(tests: usize) -> f64 {
    1.0 - (1.0 - CONFIDENCE) / tests.max(1) as f64
}

/// With a longer unit, the others hardly tell how far it may be off.
const LONGEST_PART: f64 = 0.75;

/// The lengths of units, as parts of their sum.
pub(super) struct Lengths {
    /// Of each unit: the variance of its residual, as a part of that of its deviation from the truth.
    seen: Vec<f64>,
    /// Degrees of freedom of the variance of their mean; number − 1 if all have the same length.
    pub degrees_of_freedom: f64,
}

impl Lengths {
    /// `None` with fewer than two units, or where one has most of the length.
    ///
    /// Units deviate from the truth by the same standard deviation, whatever their length. With h the parts and S = Σh², the residual of unit r
    /// has the variance 1 − 2h_r + S, and the sum of the corrected squares the degrees of freedom (Σh²)²/tr M², where M is the matrix of the
    /// covariances of the corrected residuals (Satterthwaite, 1946; Bell and McCaffrey, 2002).
    pub fn of(lengths: &[f64]) -> Option<Self> {
        let all: f64 = lengths.iter().sum();
        let parts: Vec<f64> = lengths.iter().map(|length| length / all).collect();
        let longest = parts.iter().copied().fold(f64::NAN, f64::max);
        if parts.len() < 2 || longest.is_nan() || longest > LONGEST_PART {
            return None;
        }
        let squares: f64 = parts.iter().map(|part| part * part).sum();
        let seen: Vec<f64> = parts.iter().map(|part| 1.0 - 2.0 * part + squares).collect();
        let sum = |power: i32| parts.iter().zip(&seen).map(|(part, seen)| part.powi(2 + power) / seen).sum::<f64>();
        let (q0, q1, q2) = (sum(0), sum(1), sum(2));
        let own = |(part, seen): (&f64, &f64)| (part * part / seen).powi(2) * (1.0 + 2.0 * squares - 4.0 * part);
        let trace = (squares * q0).powi(2) + 2.0 * q0 * q2 - 4.0 * squares * q0 * q1
            + 2.0 * q1 * q1
            + parts.iter().zip(&seen).map(own).sum::<f64>();
        Some(Self { seen, degrees_of_freedom: (squares * squares / trace).max(1.0) })
    }

    /// The variance of the mean of independent units with these influences, whose sum is 0.
    pub fn variance_of_mean(&self, influences: &[f64]) -> f64 {
        let squares: f64 = influences.iter().zip(&self.seen).map(|(influence, seen)| influence.powi(2) / seen).sum();
        squares / (influences.len() as f64).powi(2)
    }
}

#[cfg(test)]
mod tests {
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
    }
}
