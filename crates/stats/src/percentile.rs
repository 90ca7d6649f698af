//! The change of latency percentiles.
//!
//! The input is both arms' histograms of each round. The result is the change of the pooled percentile with its interval,
//! or the reason why there is none. I/Os of a round share its stalls, its layout and its neighbours, so they are not
//! independent, and their number does not determine the error. Rounds are independent, so the error comes from how the
//! number of I/Os below the percentile differs between rounds.
//!
//! The percentile itself is that of all I/Os together. A mean of the percentiles of rounds converges to another value: a
//! round of 1,000 I/Os often has more than ten slow ones when all of them have 0.8 %.

use super::estimate::{Estimate, Lengths, Neighbours, serial, student_t};
use super::evidence::Evidence;
use crate::histogram::{BUCKET_ERROR, Histogram};
use statrs::distribution::{Continuous, ContinuousCDF, Normal};
use thiserror::Error;

mod pooled;

use pooled::Pooled;

/// With fewer rounds, t is so large and normality so doubtful that the interval is useless.
const FEWEST_ROUNDS: usize = 6;
/// Number of I/Os beyond a percentile that each arm needs. With as many in the tail, their number is known to a fourth.
const SAMPLES_BEYOND: f64 = 60.0;

/// Latencies of both arms in one round.
#[derive(Clone, Copy, Debug)]
pub struct LatencyRound<'a> {
    /// The arm that the candidate is compared with.
    pub baseline: &'a Histogram,
    /// The arm that is judged.
    pub candidate: &'a Histogram,
}

/// The change of one percentile.
#[derive(Clone, Debug)]
pub struct PercentileShift {
    /// The percentile, in percent: 99.9.
    pub percent: f64,
    /// The baseline's percentile over all rounds, in the histograms' ticks.
    pub baseline_ticks: f64,
    /// The candidate's; `candidate_ticks / baseline_ticks` is exp(θ).
    pub candidate_ticks: f64,
    /// θ = ln(candidate ÷ baseline).
    pub theta: f64,
    pub units: usize,
    /// The correlation of consecutive rounds, if it is evident; the interval contains it.
    pub correlation: Option<f64>,
    ranks: Ranks,
}

/// Why a percentile cannot be compared, and what it needs.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum NotEnough {
    /// Too few rounds.
    #[error("p{percent} needs {FEWEST_ROUNDS} rounds or more; there were {rounds}")]
    Rounds {
        /// The percentile, in percent.
        percent: f64,
        rounds: usize,
    },
    /// Too few I/Os lie beyond the percentile.
    #[error("p{percent} needs {needed} I/Os of each arm; there were {ios}")]
    Ios {
        /// The percentile, in percent.
        percent: f64,
        /// I/Os of the arm with fewer I/Os.
        ios: u64,
        /// I/Os that an arm needs.
        needed: u64,
    },
    /// One round has most of the I/Os of an arm.
    #[error("one round has most of the I/Os, so nothing tells how far p{percent} may be off; run longer")]
    Uneven {
        /// The percentile, in percent.
        percent: f64,
    },
    /// No values lie beyond the 0th and the 100th percentile, so an extreme has no interval.
    #[error("p{percent} is an extreme, which has no interval")]
    Extreme {
        /// The percentile, in percent.
        percent: f64,
    },
}

/// The change of percentile `percent` (for example 99.9): ln(candidate ÷ baseline) of the percentiles of all rounds
/// together.
///
/// Its interval comes from the ranks (Woodruff, 1952, "Confidence intervals for medians and other position measures"): the
/// true percentile of an arm is the measured percentile of another rank, and how far that rank may be off follows from the
/// spread of the rounds. Both arms' ranks vary together as they did from round to round. So the interval is as asymmetric
/// as the distribution: where 0.8 % of the I/Os are slow, the 99th percentile may be far above its value, and hardly below.
///
/// It is never narrower than ±0.78 %: each of the two percentiles is known to half a bucket of its histogram, and both halves
/// together are a whole one ([`BUCKET_ERROR`]).
pub fn percentile<'a>(rounds: &[LatencyRound<'a>], percent: f64) -> Result<PercentileShift, NotEnough> {
    let tail = percent.min(100.0 - percent) / 100.0;
    if tail.is_nan() || tail <= 0.0 {
        return Err(NotEnough::Extreme { percent });
    }
    if rounds.len() < FEWEST_ROUNDS {
        return Err(NotEnough::Rounds { percent, rounds: rounds.len() });
    }
    let [(baseline, their_lengths), (candidate, our_lengths)] = [false, true].map(|ours| {
        let arm = |round: &LatencyRound<'a>| if ours { round.candidate } else { round.baseline };
        let rounds: Vec<&Histogram> = rounds.iter().map(arm).collect();
        let lengths = Lengths::of(&rounds.iter().map(|round| round.total() as f64).collect::<Vec<_>>());
        (Pooled::of(rounds, percent), lengths)
    });
    let ios = baseline.ios.min(candidate.ios);
    // Rounding errors of 60/(1 − 0.99) must not require one I/O more than 6,000.
    let needed = (SAMPLES_BEYOND / tail * (1.0 - 1e-9)).ceil() as u64;
    if ios < needed {
        return Err(NotEnough::Ios { percent, ios, needed });
    }
    let lengths = their_lengths.zip(our_lengths);
    lengths.and_then(|lengths| shift(baseline, candidate, lengths, percent)).ok_or(NotEnough::Uneven { percent })
}

fn shift(
    baseline: Pooled,
    candidate: Pooled,
    (their_lengths, our_lengths): (Lengths, Lengths),
    percent: f64,
) -> Option<PercentileShift> {
    let (baseline_ticks, candidate_ticks) = (baseline.ticks()?, candidate.ticks()?);
    let (ours, theirs) = (candidate.influences.clone()?, baseline.influences.clone()?);
    let own = our_lengths.variance_of_mean(&ours).sqrt();
    let other = their_lengths.variance_of_mean(&theirs).sqrt();
    // The influence of each round on θ, to first order: neighbours count in its direction.
    let (slope, other_slope) = (candidate.slope(own), baseline.slope(other));
    let along: Vec<f64> = ours.iter().zip(&theirs).map(|(one, two)| slope * one - other_slope * two).collect();
    let serial = serial(&along, Neighbours::Independent);
    let grown = |error: f64| error * serial.growth.sqrt();
    let products = |one: &[f64], two: &[f64]| one.iter().zip(two).map(|(one, two)| one * two).sum::<f64>();
    let together = products(&ours, &theirs) / (products(&ours, &ours) * products(&theirs, &theirs)).sqrt();
    let degrees = our_lengths.degrees_of_freedom.min(their_lengths.degrees_of_freedom);
    Some(PercentileShift {
        percent,
        baseline_ticks,
        candidate_ticks,
        theta: (candidate_ticks / baseline_ticks).ln(),
        units: ours.len(),
        correlation: serial.evident(),
        ranks: Ranks {
            baseline: (baseline, grown(other)),
            candidate: (candidate, grown(own)),
            // Without spread there is nothing that varies together.
            correlation: if together.is_nan() { 0.0 } else { together.clamp(-MOST_CORRELATED, MOST_CORRELATED) },
            // At least three, as for means.
            degrees_of_freedom: (degrees / serial.growth).max(degrees.min(3.0)),
        },
    })
}

/// Ranks that vary together more than this count as if they did a little less, so that one is not a function of the other.
const MOST_CORRELATED: f64 = 0.9999;

impl Evidence for PercentileShift {
    fn change(&self, confidence: f64) -> Estimate {
        let ends = self.ranks.interval(confidence);
        Estimate {
            value: self.theta.exp_m1(),
            low: ends.map(|(low, _)| low.min(self.theta - BUCKET_ERROR).exp_m1()),
            high: ends.map(|(_, high)| high.max(self.theta + BUCKET_ERROR).exp_m1()),
        }
    }

    fn p_value(&self) -> Option<f64> {
        if self.theta.abs() <= BUCKET_ERROR { Some(1.0) } else { self.ranks.p_value(self.theta > 0.0) }
    }

    fn mde80(&self, confidence: f64) -> Option<f64> {
        let t = |probability: f64| student_t(probability, self.ranks.degrees_of_freedom);
        Some(self.half_width(confidence)? * (1.0 + t(0.8)? / t(0.5 + confidence / 2.0)?))
    }

    fn half_width(&self, confidence: f64) -> Option<f64> {
        let change = self.change(confidence);
        Some((change.high?.ln_1p() - change.low?.ln_1p()) / 2.0)
    }

    fn units(&self) -> (usize, Option<f64>) {
        (self.units, self.correlation)
    }
}

/// Both arms' distributions, and how far the ranks of their percentiles may be off, in log odds.
#[derive(Clone, Debug)]
struct Ranks {
    baseline: (Pooled, f64),
    candidate: (Pooled, f64),
    /// Of the two ranks, over rounds.
    correlation: f64,
    degrees_of_freedom: f64,
}

impl Ranks {
    /// The range of θ that leaves out equal probabilities on either side.
    fn interval(&self, confidence: f64) -> Option<(f64, f64)> {
        let spread = Spread::new(self, confidence)?;
        let outside = (1.0 - confidence) / 2.0;
        Some((spread.quantile(outside), spread.quantile(1.0 - outside)))
    }

    /// By bisection over confidences: the larger, the wider is the interval.
    fn p_value(&self, is_above: bool) -> Option<f64> {
        let excludes = |confidence: f64| {
            let below = Spread::new(self, confidence)?.below(0.0);
            let beyond = if is_above { below } else { 1.0 - below };
            Some(beyond < (1.0 - confidence) / 2.0)
        };
        let (mut outer, mut inner) = (1e-12_f64, 1.0_f64);
        for _ in 0..40 {
            let middle = (outer * inner).sqrt();
            if excludes(1.0 - middle)? { inner = middle } else { outer = middle }
        }
        Some(inner)
    }
}

/// The distribution of θ if both ranks are normal with standard errors that are widened from the normal to Student's
/// quantile at one confidence.
struct Spread<'a> {
    ranks: &'a Ranks,
    /// For each of many values of the baseline's rank: its weight, itself in standard errors, and the percentile there.
    nodes: Vec<(f64, f64, f64)>,
    /// Standard error of the candidate's rank.
    error: f64,
}

/// Values of the baseline's rank, from −6 to 6 standard errors.
const NODES: i32 = 241;
const FURTHEST: f64 = 6.0;

impl<'a> Spread<'a> {
    fn new(ranks: &'a Ranks, confidence: f64) -> Option<Self> {
        let tail = 0.5 + confidence / 2.0;
        let widened = student_t(tail, ranks.degrees_of_freedom)? / Normal::standard().inverse_cdf(tail);
        let (baseline, error) = &ranks.baseline;
        let step = 2.0 * FURTHEST / f64::from(NODES - 1);
        let node = |number: i32| {
            let errors = f64::from(number) * step - FURTHEST;
            (Normal::standard().pdf(errors) * step, errors, baseline.at(errors * error * widened))
        };
        Some(Self { ranks, nodes: (0..NODES).map(node).collect(), error: ranks.candidate.1 * widened })
    }

    /// Probability that θ is at most `theta`.
    fn below(&self, theta: f64) -> f64 {
        let candidate = &self.ranks.candidate.0;
        let own = (1.0 - self.ranks.correlation.powi(2)).sqrt();
        let part = |&(weight, errors, percentile): &(f64, f64, f64)| {
            let rank = candidate.odds_below(percentile + theta);
            // Without spread, the candidate's percentile is where its rank is 0.
            let reached = if self.error > 0.0 { rank / self.error } else { 1e9 * rank };
            weight * Normal::standard().cdf((reached - self.ranks.correlation * errors) / own)
        };
        self.nodes.iter().map(part).sum()
    }

    /// θ with this probability of a smaller one.
    fn quantile(&self, probability: f64) -> f64 {
        let (baseline, candidate) = (self.ranks.baseline.0.range(), self.ranks.candidate.0.range());
        let (mut low, mut high) = (candidate.0 - baseline.1, candidate.1 - baseline.0);
        for _ in 0..48 {
            let middle = low.midpoint(high);
            if self.below(middle) < probability { low = middle } else { high = middle }
        }
        high
    }
}

#[cfg(test)]
mod tests;
