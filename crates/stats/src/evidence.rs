//! What a comparison found about one metric, and the verdict on it.
//!
//! The estimator of comparisons is the ratio of a rate or cost of the candidate to that of the baseline. Its input is rounds with both arms, its
//! result the logarithm of the ratio, or the difference of two costs, with a standard error from the spread of the rounds.

use super::estimate::{Estimate, Neighbours, Pair, Uncertainty, with_influences};
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

/// A smaller θ, or difference as a part of both ratios, is a rounding error of their sums: 60 rounds of f64 sums have an error of about 1e-14.
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
mod tests;
