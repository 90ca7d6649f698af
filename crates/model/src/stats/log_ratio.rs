//! The estimator of comparisons: the ratio of a rate or cost of the candidate to that of the baseline.
//!
//! The input is rounds with both arms. The result is the logarithm of the ratio, with a standard error from the spread
//! of the rounds. The verdict interprets it.

use super::estimate::{CONFIDENCE, Estimate, student_t};
use super::ratio::Pair;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

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

    /// Both arms together: the common mode, which shows changes of the machine, but hardly those of the candidate.
    pub fn common_mode(self) -> Pair {
        Pair {
            numerator: self.baseline.numerator + self.candidate.numerator,
            denominator: self.baseline.denominator + self.candidate.denominator,
        }
    }
}

/// The logarithm of candidate ÷ baseline, with its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogRatio {
    /// θ = ln(candidate ÷ baseline): 0.01 is about +1 %.
    pub theta: f64,
    /// Standard error of θ; `None` with fewer than two units.
    pub standard_error: Option<f64>,
    /// Independent units that the error is based on: rounds, groups of rounds, boots.
    pub units: usize,
}

/// θ = ln[(Σn_B/Σd_B)/(Σn_A/Σd_A)] over R rounds, A the baseline and B the candidate.
///
/// The standard error is that of the rounds' influences on θ (the delta method for a ratio of sums; Cochran, Sampling
/// Techniques, 3rd ed., § 6.4), which sum to 0: z_r = R·(n_Br/Σn_B − d_Br/Σd_B − n_Ar/Σn_A + d_Ar/Σd_A), se = sd(z)/√R.
/// What both arms of a round share cancels in its z, so drift from round to round does not count as error. `None` if
/// one of the four sums is not positive.
pub fn log_ratio(rounds: &[PairedRound]) -> Option<LogRatio> {
    let influences = influences(rounds)?;
    Some(LogRatio { theta: theta(rounds)?, standard_error: standard_error(&influences), units: rounds.len() })
}

fn theta(rounds: &[PairedRound]) -> Option<f64> {
    let (baseline, candidate) = sums(rounds)?;
    let theta = (candidate.numerator / candidate.denominator / (baseline.numerator / baseline.denominator)).ln();
    theta.is_finite().then_some(theta)
}

/// z_r of each round: θ without round r is about θ − z_r/(R − 1).
pub(super) fn influences(rounds: &[PairedRound]) -> Option<Vec<f64>> {
    let (baseline, candidate) = sums(rounds)?;
    let count = rounds.len() as f64;
    let share = |round: Pair, sum: Pair| round.numerator / sum.numerator - round.denominator / sum.denominator;
    Some(rounds.iter().map(|r| count * (share(r.candidate, candidate) - share(r.baseline, baseline))).collect())
}

/// The sums of both arms; `None` unless all four are positive.
fn sums(rounds: &[PairedRound]) -> Option<(Pair, Pair)> {
    let sum = |arm: fn(&PairedRound) -> Pair| Pair {
        numerator: rounds.iter().map(|round| arm(round).numerator).sum(),
        denominator: rounds.iter().map(|round| arm(round).denominator).sum(),
    };
    let (baseline, candidate) = (sum(|round| round.baseline), sum(|round| round.candidate));
    let positive = |pair: Pair| pair.numerator > 0.0 && pair.denominator > 0.0;
    (positive(baseline) && positive(candidate)).then_some((baseline, candidate))
}

/// sd/√n of independent values; `None` with fewer than two.
pub(super) fn standard_error(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (count - 1.0) / count).sqrt())
}

impl LogRatio {
    /// The mean of independent values of ln(candidate ÷ baseline), one for each unit; `None` without units.
    pub fn of_units(logs: &[f64]) -> Option<Self> {
        let theta = logs.iter().sum::<f64>() / logs.len() as f64;
        theta.is_finite().then(|| Self { theta, standard_error: standard_error(logs), units: logs.len() })
    }

    /// The change as a fraction (0.031 is +3.1 %), with its 95 % interval: exp(θ ± t(0.975)·se) − 1.
    pub fn change(&self) -> Estimate {
        let half = self.times_t(0.5 + CONFIDENCE / 2.0);
        Estimate {
            value: self.theta.exp_m1(),
            low: half.map(|half| (self.theta - half).exp_m1()),
            high: half.map(|half| (self.theta + half).exp_m1()),
        }
    }

    /// Two-sided p-value of Student's t for θ = 0, before any correction for several cells.
    pub fn p_value(&self) -> Option<f64> {
        let error = self.standard_error?;
        let degrees = self.degrees_of_freedom()?;
        if self.theta.abs() <= RESOLUTION {
            return Some(1.0);
        }
        two_sided_p(self.theta / error, degrees)
    }

    /// One-sided p-value of a change beyond `bound`, a fraction: `above` it, or below it. It is below 0.025 if the 95 %
    /// interval lies beyond the bound.
    pub fn p_beyond(&self, bound: f64, above: bool) -> Option<f64> {
        let distance = self.theta - bound.ln_1p();
        let distance = if above { distance } else { -distance };
        if distance.abs() <= RESOLUTION {
            return Some(0.5);
        }
        let half = two_sided_p(distance / self.standard_error?, self.degrees_of_freedom()?)? / 2.0;
        Some(if distance > 0.0 { half } else { 1.0 - half })
    }

    /// Whether the 95 % interval excludes 0, so that the difference is *detected*. `false` without an interval.
    pub fn excludes_zero(&self) -> bool {
        let half = self.times_t(0.5 + CONFIDENCE / 2.0);
        half.is_some_and(|half| self.theta.abs() > half.max(RESOLUTION))
    }

    /// The smallest change, as a fraction, that such an experiment detects with 80 % probability: (t(0.975) +
    /// t(0.8))·se. Smaller changes may exist undetected.
    pub fn mde80(&self) -> Option<f64> {
        Some(self.times_t(0.5 + CONFIDENCE / 2.0)? + self.times_t(0.8)?)
    }

    /// t(0.98)·se, which the stopping rule uses. It is slightly more than half the width of the interval: an experiment
    /// stops when its estimated error is small, and the true error is then slightly larger.
    pub fn stopping_half_width(&self) -> Option<f64> {
        self.times_t(0.98)
    }

    fn degrees_of_freedom(&self) -> Option<f64> {
        (self.units >= 2).then(|| (self.units - 1) as f64)
    }

    fn times_t(&self, probability: f64) -> Option<f64> {
        Some(student_t(probability, self.degrees_of_freedom()?)? * self.standard_error?)
    }
}

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

#[cfg(test)]
mod tests;
