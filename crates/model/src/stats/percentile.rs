//! The change of latency percentiles.
//!
//! The input is both arms' histograms of each round. The result is the log ratio of a percentile, or the reason why
//! there is none. I/Os of a round share its stalls, its layout and its neighbours, so they are not independent, and
//! their number does not determine the error. Groups of rounds are independent, so the error comes from the spread of
//! groups.

use super::estimate::{CONFIDENCE, student_t};
use super::log_ratio::LogRatio;
use crate::histogram::{BUCKET_ERROR, Histogram};
use thiserror::Error;

/// With fewer groups, t is so large and normality so doubtful that the interval is useless.
const FEWEST_GROUPS: usize = 6;
/// Number of I/Os beyond a percentile that each group and arm needs, so 10/(1 − p) in total, as for the percentiles of
/// `run`.
const SAMPLES_BEYOND: f64 = 10.0;

/// Latencies of both arms in one round.
#[derive(Clone, Copy, Debug)]
pub struct LatencyRound<'a> {
    /// The arm that the candidate is compared with.
    pub baseline: &'a Histogram,
    /// The arm that is judged.
    pub candidate: &'a Histogram,
}

/// The change of one percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PercentileShift {
    /// The percentile, in percent: 99.9.
    pub percent: f64,
    /// The baseline's percentile in a typical group of rounds (geometric mean over groups), in the histograms' ticks.
    pub baseline_ticks: f64,
    /// The candidate's; `candidate_ticks / baseline_ticks` is exp(θ).
    pub candidate_ticks: f64,
    /// θ = ln(candidate ÷ baseline); its units are groups.
    pub ratio: LogRatio,
}

/// Why a percentile cannot be compared, and what it needs.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum NotEnough {
    /// Too few rounds for the groups.
    #[error("p{percent} needs {FEWEST_GROUPS} rounds or more; there were {rounds}")]
    Rounds {
        /// The percentile, in percent.
        percent: f64,
        /// Number of rounds.
        rounds: usize,
    },
    /// Too few I/Os lie beyond the percentile.
    #[error(
        "p{percent} needs {needed} I/Os of each arm, {needed_in_group} in each of {FEWEST_GROUPS} groups of rounds; \
         there were {ios}, {ios_in_group} in the group with the fewest"
    )]
    Ios {
        /// The percentile, in percent.
        percent: f64,
        /// I/Os of the arm with fewer I/Os.
        ios: u64,
        /// I/Os that an arm needs if they are spread evenly over the rounds.
        needed: u64,
        /// I/Os of the group and arm with the fewest.
        ios_in_group: u64,
        /// I/Os that a group needs.
        needed_in_group: u64,
    },
    /// No values lie beyond the 0th and the 100th percentile, so an extreme has no interval.
    #[error("p{percent} is an extreme, which has no interval")]
    Extreme {
        /// The percentile, in percent.
        percent: f64,
    },
}

/// The change of percentile `percent` (for example 99.9): ln(candidate ÷ baseline) of each of G groups of consecutive
/// rounds, their mean, and t with G − 1 degrees of freedom.
///
/// G is the largest number, up to the number of rounds, with enough I/Os of both arms in each group: each additional
/// group adds a degree of freedom, and "enough" keeps the bias of a group's percentile small and equal in both arms.
///
/// The interval is never narrower than ±0.78 %: each percentile is known to half a bucket of its histogram
/// ([`BUCKET_ERROR`]), and groups that all fall into one bucket have no spread.
pub fn percentile(rounds: &[LatencyRound], percent: f64) -> Result<PercentileShift, NotEnough> {
    let tail = percent.min(100.0 - percent) / 100.0;
    if tail.is_nan() || tail <= 0.0 {
        return Err(NotEnough::Extreme { percent });
    }
    if rounds.len() < FEWEST_GROUPS {
        return Err(NotEnough::Rounds { percent, rounds: rounds.len() });
    }
    // Rounding errors of 10/(1 − 0.99) must not require one I/O more than 1,000.
    let needed_in_group = (SAMPLES_BEYOND / tail * (1.0 - 1e-9)).ceil() as u64;
    let enough = |groups: &usize| fewest_ios(rounds, *groups) >= needed_in_group;
    let Some(groups) = (FEWEST_GROUPS..=rounds.len()).rev().find(enough) else {
        return Err(NotEnough::Ios {
            percent,
            ios: fewer_ios(rounds),
            needed: needed_in_group.saturating_mul(FEWEST_GROUPS as u64),
            ios_in_group: fewest_ios(rounds, FEWEST_GROUPS),
            needed_in_group,
        });
    };
    shift(rounds, groups, percent).ok_or(NotEnough::Rounds { percent, rounds: rounds.len() })
}

/// The shift function: the change at several percentiles, each with its own groups.
///
/// It shows *where* a distribution moved (Doksum, 1974). Every row has its own 95 % interval, so one in twenty may be
/// wrong.
pub fn shift_function(rounds: &[LatencyRound], percents: &[f64]) -> Vec<Result<PercentileShift, NotEnough>> {
    percents.iter().map(|&percent| percentile(rounds, percent)).collect()
}

/// Splits the rounds into `groups` consecutive runs whose lengths differ by at most one.
fn grouped<'a, 'b>(rounds: &'b [LatencyRound<'a>], groups: usize) -> impl Iterator<Item = &'b [LatencyRound<'a>]> {
    let bound = move |group: usize| group * rounds.len() / groups;
    (0..groups).map(move |group| rounds.get(bound(group)..bound(group + 1)).unwrap_or_default())
}

/// I/Os of the arm with fewer I/Os.
fn fewer_ios(rounds: &[LatencyRound]) -> u64 {
    let total = |arm: fn(&LatencyRound) -> u64| rounds.iter().map(arm).fold(0, u64::saturating_add);
    total(|round| round.baseline.total()).min(total(|round| round.candidate.total()))
}

/// I/Os of the group and arm with the fewest.
fn fewest_ios(rounds: &[LatencyRound], groups: usize) -> u64 {
    grouped(rounds, groups).map(fewer_ios).min().unwrap_or(0)
}

fn shift(rounds: &[LatencyRound], groups: usize, percent: f64) -> Option<PercentileShift> {
    let logs = |arm: for<'x> fn(&LatencyRound<'x>) -> &'x Histogram| -> Option<Vec<f64>> {
        grouped(rounds, groups).map(|group| log_quantile(group.iter().map(arm), percent / 100.0)).collect()
    };
    let (baseline, candidate) = (logs(|round| round.baseline)?, logs(|round| round.candidate)?);
    let differences: Vec<f64> =
        candidate.iter().zip(&baseline).map(|(candidate, baseline)| candidate - baseline).collect();
    let ratio = LogRatio::of_units(&differences)?;
    let least = BUCKET_ERROR / student_t(0.5 + CONFIDENCE / 2.0, (groups - 1) as f64)?;
    let geometric_mean = |logs: &[f64]| (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    Some(PercentileShift {
        percent,
        baseline_ticks: geometric_mean(&baseline),
        candidate_ticks: geometric_mean(&candidate),
        ratio: LogRatio { standard_error: ratio.standard_error.map(|error| error.max(least)), ..ratio },
    })
}

/// ln of a quantile of all histograms together. At least one tick, so that the logarithm exists.
fn log_quantile<'a>(histograms: impl Iterator<Item = &'a Histogram>, fraction: f64) -> Option<f64> {
    let mut merged = Histogram::new();
    histograms.for_each(|histogram| merged.merge(histogram));
    Some((merged.quantile(fraction)?.max(1) as f64).ln())
}

#[cfg(test)]
mod tests;
