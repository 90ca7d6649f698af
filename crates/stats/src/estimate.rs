//! A value with its confidence interval, and how far it may be off: its standard error, what that is based on, and how skewed the estimate is.
//!
//! The input is the residuals (influences) of units, whose mean is 0. The result gives intervals and p-values, and can
//! be combined with that of an independent estimate. All intervals of means and ratios of sums come from here,
//! and so does the estimator of costs, a ratio of sums over windows, rounds or executions.
//!
//! Readings of one run follow each other in time, so neighbours resemble each other, and their mean is known worse than
//! their number suggests. With residuals in the order of time, the result has the factor by which the variance of their mean exceeds that of
//! independent residuals.

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
        let cubes: f64 = influences.iter().map(|value| value.powi(3)).sum();
        let serial = serial(influences, neighbours);
        let deviation = (squares(influences) / count).sqrt();
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

/// A larger correlation cannot be told from a trend: at 0.9, an error grows by a factor of 4.4.
const MOST: f64 = 0.9;
/// Standard errors of a correlation that one in twenty exceeds by chance.
const EVIDENT: f64 = 1.645;
/// A [`wander`] that one in twenty exceeds by chance.
const WANDERS: f64 = 0.463;
/// Fewer residuals say nothing about their order.
const FEWEST: usize = 4;
/// The correlation of fewer sums is not known.
const FEWEST_SUMS: usize = 8;

/// How the order of readings comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// Readings of one run, one after the other: neighbours resemble each other unless they are known not to.
    Alike,
    /// Rounds with fresh workers in a random order: neighbours are independent unless the data says otherwise, so only an
    /// evident correlation counts.
    Independent,
}

/// The correlation of neighbours, and the growth of the variance of a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Serial {
    /// Estimate of ρ, corrected for its bias; from 0 on, below 1. Of what lasts for many readings, the ρ of the same growth.
    pub correlation: f64,
    /// (1 + ρ)/(1 − ρ), the variance of a mean relative to that of independent readings (Bartlett, 1935).
    pub growth: f64,
    /// Whether ρ is above 0, or the level wanders, each at the 5 % level.
    pub is_evident: bool,
}

impl Serial {
    /// Neighbours that have nothing to do with each other.
    pub const NONE: Self = Self { correlation: 0.0, growth: 1.0, is_evident: false };

    /// The correlation, if it is evident.
    pub fn evident(self) -> Option<f64> {
        self.is_evident.then_some(self.correlation)
    }
}

/// The correlation of `residuals` in the order of measurement. They sum to 0, because the caller has subtracted their mean.
///
/// What lasts for many of them shows little from one to the next, if each has noise of its own. Sums of 2, 4, 8… neighbours have less of that
/// noise. So where their correlation is evident, or [`wander`] is, the variance of the mean is the largest of those that each of these sums
/// give (blocking; Flyvbjerg and Petersen, 1989), at most that of two independent residuals.
pub fn serial(residuals: &[f64], neighbours: Neighbours) -> Serial {
    let fine = lag_one(residuals, 1, neighbours);
    let wanders = wander(residuals) > WANDERS;
    if !fine.is_evident && !wanders {
        return fine;
    }
    let by_sums = |sums: &[f64]| lag_one(sums, 1, Neighbours::Alike).growth * squares(sums) / squares(residuals);
    let (mut sums, mut growth) = (residuals.to_vec(), by_sums(residuals));
    while sums.len() >= 2 * FEWEST_SUMS {
        sums = sums.chunks_exact(2).map(|pair| pair.iter().sum()).collect();
        growth = growth.max(by_sums(&sums));
    }
    growth = growth.min(residuals.len() as f64 / 2.0).max(fine.growth);
    Serial { correlation: (growth - 1.0) / (growth + 1.0), growth, is_evident: growth > 1.0 }
}

fn squares(residuals: &[f64]) -> f64 {
    residuals.iter().map(|residual| residual.powi(2)).sum()
}

/// How far the sums of the first 1, 2, 3… residuals go from 0: Σ S²/n² divided by the variance. A level that wanders below the noise drives
/// them (Kwiatkowski, Phillips, Schmidt and Shin, 1992).
fn wander(residuals: &[f64]) -> f64 {
    let mut sum = 0.0;
    let sums: Vec<f64> = residuals
        .iter()
        .map(|residual| {
            sum += residual;
            sum
        })
        .collect();
    squares(&sums) / squares(residuals) / residuals.len() as f64
}

/// The lag-1 correlation of `residuals`, of which the caller has subtracted the mean of each of `means` consecutive parts.
///
/// With n residuals from one mean, the usual lag-1 estimate is too low by about (1 + 3ρ)/n (Marriott and Pope, 1954). The function adds that
/// for each mean. It has a standard error of about 1/√n.
pub(super) fn lag_one(residuals: &[f64], means: usize, neighbours: Neighbours) -> Serial {
    let count = residuals.len() as f64;
    let squares = squares(residuals);
    if residuals.len() < FEWEST || squares <= 0.0 || !squares.is_finite() {
        return Serial::NONE;
    }
    let products: f64 = residuals.iter().zip(residuals.iter().skip(1)).map(|(one, next)| one * next).sum();
    let raw = products / squares;
    let lost = means as f64 / count;
    let correlation = (raw + (1.0 + 3.0 * raw) * lost).clamp(0.0, MOST);
    // Without correlation, the raw estimate is −1/n on average, of one mean.
    let is_evident = raw + lost > EVIDENT / count.sqrt();
    if neighbours == Neighbours::Independent && !is_evident {
        return Serial::NONE;
    }
    Serial { correlation, growth: (1.0 + correlation) / (1.0 - correlation), is_evident }
}

/// Numerator and denominator of one unit (a window, a round, an execution), for example cycles and I/Os.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    pub numerator: f64,
    pub denominator: f64,
}

impl Pair {
    /// The sum of units.
    pub fn sum(units: impl Iterator<Item = Self>) -> Self {
        let add = |sum: Self, unit: Self| Self {
            numerator: sum.numerator + unit.numerator,
            denominator: sum.denominator + unit.denominator,
        };
        units.fold(Self { numerator: 0.0, denominator: 0.0 }, add)
    }

    pub fn ratio(self) -> f64 {
        self.numerator / self.denominator
    }
}

/// A ratio of sums, with the uncertainty from the spread of the units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Σ numerator / Σ denominator.
    pub value: f64,
    /// How far it may be off, in the unit of the value; `None` with fewer than two units.
    pub error: Option<Uncertainty>,
    pub units: usize,
    /// The correlation of neighbouring units, where it is evident. The error is larger for it.
    pub correlation: Option<f64>,
}

impl Ratio {
    /// The value with its 95 % interval.
    pub fn estimate(&self) -> Estimate {
        Estimate::around(self.value, self.error.as_ref(), CONFIDENCE)
    }
}

/// Σn / Σd. The standard error is that of the classical ratio estimator (Cochran, Sampling Techniques, 3rd ed., § 6.4):
/// residuals e = n − r·d, se = sqrt(R/(R−1) · Σe²) / Σd, grown by the correlation of `neighbours` ([`serial()`]), and
/// skewed as the residuals are. Units may have different lengths, as windows do, and are weighted by their work. `None` if
/// Σd is not positive.
pub fn ratio_of_sums(pairs: &[Pair], neighbours: Neighbours) -> Option<Ratio> {
    let (value, influences) = with_influences(pairs)?;
    let lengths: Vec<f64> = pairs.iter().map(|pair| pair.denominator).collect();
    let (error, correlation) = Uncertainty::of_mean(&influences, &lengths, neighbours).unzip();
    Some(Ratio { value, error, units: pairs.len(), correlation: correlation.flatten() })
}

/// Σn / Σd, and the influence of each unit on it; their sum is 0. `None` if Σd is not positive.
pub(super) fn with_influences(pairs: &[Pair]) -> Option<(f64, Vec<f64>)> {
    let sum = Pair::sum(pairs.iter().copied());
    if sum.denominator.is_nan() || sum.denominator <= 0.0 || !sum.numerator.is_finite() {
        return None;
    }
    let value = sum.ratio();
    let per_unit = pairs.len() as f64 / sum.denominator;
    let influence = |pair: &Pair| (pair.numerator - value * pair.denominator) * per_unit;
    Some((value, pairs.iter().map(influence).collect()))
}

/// Whether a cost `net` of a background is more than the background's error explains, per capacity, round by round; `None` if its sum is
/// unknown.
///
/// A cost of less has no ratio to another: its interval contains 0 (Fieller, 1954). The error of a net cost is at most that of its own spread,
/// which a load that varies has too, and at most √2 times that of the background `alone`, which a drift has too: it is subtracted from what ran
/// beside the same background. So the smaller of the two counts.
pub fn exceeds_background(net: &[Pair], alone: &[Pair]) -> Option<bool> {
    let net = ratio_of_sums(net, Neighbours::Independent)?;
    let reach = |ratio: Ratio| ratio.error?.times_t(0.5 + CONFIDENCE / 2.0);
    let (own, alone) = (reach(net), ratio_of_sums(alone, Neighbours::Independent).and_then(reach));
    // One round has no error, and no interval.
    Some(net.value > own.zip(alone).map_or(0.0, |(own, alone)| own.min(2f64.sqrt() * alone)))
}

/// The one unit that carries a large part of a sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dominant {
    /// Its place among the units.
    pub place: usize,
    /// Its part of the sum, as a fraction.
    pub part: f64,
    /// Whether that sum is the denominator.
    pub of_denominator: bool,
}

/// Smallest part of a sum that one unit must have to be named.
const DOMINANT_PART: f64 = 0.25;
/// Largest part of a sum that units below 0 may take away: net costs near 0 are noise.
const MOST_NOISE: f64 = 0.1;
/// How many times its part of the other sum that must be.
const DOMINANT_EXCESS: f64 = 3.0;

/// The unit with a quarter of a sum or more, and three times as much as the other sum explains; `None` if there is none. A
/// mean that rests on one unit is known only as well as the frequency of such units, which one of them hardly tells.
pub fn dominant(pairs: &[Pair]) -> Option<Dominant> {
    let swapped: Vec<Pair> =
        pairs.iter().map(|pair| Pair { numerator: pair.denominator, denominator: pair.numerator }).collect();
    let found = [(pairs, false), (&swapped, true)].into_iter().filter_map(|(pairs, of_denominator)| {
        let (place, part) = dominant_numerator(pairs)?;
        Some(Dominant { place, part, of_denominator })
    });
    found.max_by(|one, other| one.part.total_cmp(&other.part))
}

fn dominant_numerator(pairs: &[Pair]) -> Option<(usize, f64)> {
    let Pair { numerator: numerators, denominator: denominators } = Pair::sum(pairs.iter().copied());
    if pairs.len() < 2 || numerators <= 0.0 || denominators <= 0.0 {
        return None;
    }
    // A sum of which noise takes away a part is not carried by what remains.
    let taken_away = |of: fn(&Pair) -> f64| -pairs.iter().map(|pair| of(pair).min(0.0)).sum::<f64>();
    let noise = |of: fn(&Pair) -> f64, sum: f64| taken_away(of) > MOST_NOISE * sum;
    if noise(|pair| pair.numerator, numerators) || noise(|pair| pair.denominator, denominators) {
        return None;
    }
    let (place, largest) = pairs.iter().enumerate().max_by(|(_, a), (_, b)| a.numerator.total_cmp(&b.numerator))?;
    let (part, work) = (largest.numerator / numerators, largest.denominator / denominators);
    (part >= DOMINANT_PART && part >= DOMINANT_EXCESS * work).then_some((place, part.min(1.0)))
}

#[cfg(test)]
mod tests;
