//! The estimator of costs: a ratio of sums, with an interval from the residuals of its units. And the estimator of comparisons: the ratio of a
//! rate or cost of the candidate to that of the baseline.
//!
//! The input of the second is rounds with both arms. The result is the logarithm of the ratio, with a standard error from the spread
//! of the rounds. The verdict interprets it.

use super::estimate::{CONFIDENCE, Estimate, Neighbours, Uncertainty};
use super::evidence::Evidence;
use serde::{Deserialize, Serialize};

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
/// residuals e = n − r·d, se = sqrt(R/(R−1) · Σe²) / Σd, grown by the correlation of `neighbours` ([`super::serial()`]), and
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

/// A smaller |θ| is a rounding error of its sums, not a difference: 60 rounds of f64 sums have an error of about 1e-14.
const RESOLUTION: f64 = 1e-12;

/// Both arms of one round, measured side by side: a numerator (cycles, I/Os) and a denominator (I/Os, seconds) each.
///
/// The numerator of a single round may be 0 or negative, for example net cycles after subtracting the background.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedRound {
    /// The arm that the candidate is compared with.
    pub baseline: Pair,
    /// The arm that is judged.
    pub candidate: Pair,
}

impl PairedRound {
    /// The round with its arms exchanged.
    pub fn swapped(self) -> Self {
        Self { baseline: self.candidate, candidate: self.baseline }
    }
}

/// The logarithm of candidate ÷ baseline, with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogRatio {
    /// θ = ln(candidate ÷ baseline): 0.01 is about +1 %.
    pub theta: f64,
    /// How far θ may be off; `None` with fewer than two units.
    pub error: Option<Uncertainty>,
    /// Independent units that the error is based on: rounds, or groups of rounds.
    pub units: usize,
    /// The correlation of consecutive rounds, if it is evident; the error contains it.
    pub correlation: Option<f64>,
}

/// The smallest steps of the readings of an arm: what a single reading may be off without showing it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Resolution {
    /// Of the numerator, in its unit: 1 for a count.
    pub numerator: f64,
    pub denominator: f64,
    /// Readings of each in a round: two for each slice.
    pub readings: f64,
}

/// θ = ln[(Σn_B/Σd_B)/(Σn_A/Σd_A)] over R rounds, A the baseline and B the candidate.
///
/// The standard error is that of the rounds' influences on θ (the delta method for a ratio of sums; Cochran, Sampling
/// Techniques, 3rd ed., § 6.4), which sum to 0: z_r = R·(n_Br/Σn_B − d_Br/Σd_B − n_Ar/Σn_A + d_Ar/Σd_A), se = sd(z)/√R.
/// What both arms of a round share cancels in its z, so drift from round to round does not count as error. The error
/// grows if consecutive rounds are evidently correlated, and is at least what the `steps` of the readings leave open.
/// `None` if one of the four sums is not positive.
pub fn log_ratio(rounds: &[PairedRound], steps: Resolution) -> Option<LogRatio> {
    let (theta, influences) = log_with_influences(rounds)?;
    let least = unresolved(rounds, steps);
    let found = Uncertainty::of_mean(&influences, &lengths(rounds), Neighbours::Independent);
    Some(LogRatio {
        theta,
        error: found.map(|(error, _)| error.at_least(least)),
        units: rounds.len(),
        correlation: found.and_then(|(_, correlation)| correlation),
    })
}

/// The standard error of θ that the steps of the readings cause: each reading is off by up to half a step, with a variance
/// of a twelfth of its square.
fn unresolved(rounds: &[PairedRound], steps: Resolution) -> f64 {
    let readings = steps.readings * rounds.len() as f64;
    let parts = arms(rounds)
        .map(|arm| Pair::sum(arm.into_iter()))
        .map(|sum| (steps.numerator / sum.numerator).powi(2) + (steps.denominator / sum.denominator).powi(2));
    (readings / 12.0 * parts.iter().sum::<f64>()).sqrt()
}

/// The rounds of the baseline, and those of the candidate.
pub fn arms(rounds: &[PairedRound]) -> [Vec<Pair>; 2] {
    let (baselines, candidates) = rounds.iter().map(|round| (round.baseline, round.candidate)).unzip();
    [baselines, candidates]
}

/// θ, and z_r of each round: θ without round r is about θ − z_r/(R − 1). `None` unless all four sums are positive.
pub(super) fn log_with_influences(rounds: &[PairedRound]) -> Option<(f64, Vec<f64>)> {
    let [baselines, candidates] = arms(rounds);
    let (one, of_one) = with_influences(&baselines).filter(|(value, _)| *value > 0.0)?;
    let (other, of_other) = with_influences(&candidates).filter(|(value, _)| *value > 0.0)?;
    let theta = (other / one).ln();
    let influences = of_other.iter().zip(&of_one).map(|(theirs, ours)| theirs / other - ours / one).collect();
    theta.is_finite().then_some((theta, influences))
}

/// How long each round is: the mean of its parts of both arms' work.
pub(super) fn lengths(rounds: &[PairedRound]) -> Vec<f64> {
    let [baseline, candidate] = arms(rounds).map(|arm| Pair::sum(arm.into_iter()).denominator);
    rounds.iter().map(|r| r.baseline.denominator / baseline + r.candidate.denominator / candidate).collect()
}

impl LogRatio {
    /// The mean of independent values of ln(candidate ÷ baseline), one for each unit; `None` without units.
    pub fn of_units(logs: &[f64]) -> Option<Self> {
        let theta = logs.iter().sum::<f64>() / logs.len() as f64;
        let influences: Vec<f64> = logs.iter().map(|log| log - theta).collect();
        let found = Uncertainty::of_mean(&influences, &vec![1.0; logs.len()], Neighbours::Independent);
        theta.is_finite().then(|| Self {
            theta,
            error: found.map(|(error, _)| error),
            units: logs.len(),
            correlation: found.and_then(|(_, correlation)| correlation),
        })
    }

    /// Half of the width of the interval of this confidence, which the stopping rule uses; at least t(0.98)·se, slightly more
    /// than half the width of a 95 % interval: an experiment stops when its estimated error is small, and the true error is
    /// then slightly larger.
    pub fn stopping_half_width(&self, confidence: f64) -> Option<f64> {
        Some(self.half_width(confidence)?.max(self.error?.times_t(0.98)?))
    }
}

impl Evidence for LogRatio {
    /// exp(θ − …) − 1 to exp(θ + …) − 1.
    fn change(&self, confidence: f64) -> Estimate {
        Estimate::around(self.theta, self.error.as_ref(), confidence).map(f64::exp_m1)
    }

    fn p_value(&self) -> Option<f64> {
        let error = self.error?;
        if self.theta.abs() <= RESOLUTION { Some(1.0) } else { error.p_value(self.theta) }
    }

    /// Half of the width and t(0.8)·se.
    fn mde80(&self, confidence: f64) -> Option<f64> {
        Some(self.half_width(confidence)? + self.error?.times_t(0.8)?)
    }

    fn half_width(&self, confidence: f64) -> Option<f64> {
        self.error?.half_width(confidence)
    }

    fn units(&self) -> (usize, Option<f64>) {
        (self.units, self.correlation)
    }

    fn excludes_zero(&self, confidence: f64) -> bool {
        self.theta.abs() > RESOLUTION && self.change(confidence).contains(0.0) == Some(false)
    }
}

#[cfg(test)]
mod tests;
