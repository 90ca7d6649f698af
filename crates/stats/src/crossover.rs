//! Finds where along an axis the candidate begins or ceases to win.
//!
//! The input is the points of a sweep over a numeric axis (block size, queue depth, submitters), each with its rounds.
//! The result is the place where the difference changes its sign, or the reason why there is none.
//! Between two sizes the costs of an I/O are straight lines, as those of [`cost_line`](super::curves::cost_line) are.

use super::basics::holm;
use super::estimate::{CONFIDENCE, Estimate, Pair, student_t, with_influences};
use super::evidence::{Evidence, Good, LogRatio, PairedRound, Resolution, arms, log_ratio, log_with_influences};
use serde::{Deserialize, Serialize};

/// A value on the axis, positive, and its rounds. Round r of every point belongs to the same complete block.
pub type SweepPoint = (f64, Vec<PairedRound>);

/// What is known of an arm between two neighbouring values of the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// The axis is a size in bytes, and the cost (or time) of an I/O is straight in it; the metric is this cost or its inverse.
    CostPerIo,
    /// The same, and the metric is this cost divided by the size, or the inverse of that.
    CostPerByte,
    /// Nothing, so a crossing may be anywhere between the values at which differences were detected.
    Anything,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Winner {
    /// The arm that the candidate is compared with.
    Baseline,
    /// The arm that is judged.
    Candidate,
}

/// Where the better arm changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Crossover {
    /// It changes once.
    At {
        /// The value on the axis.
        at: Estimate,
        /// The better arm above it.
        winner_above: Winner,
    },
    /// It does not change: the same arm is better at every point.
    Everywhere { winner: Winner },
    /// One arm is better wherever a difference was detected, but at some points none was, so the other may be better there.
    Unresolved {
        /// The better arm where a difference was detected.
        winner: Winner,
        /// Where none was, on the axis.
        undecided: Vec<f64>,
    },
    /// It changes more than once, so there is no single crossover.
    Several { changes: usize },
    /// No point shows a difference.
    Undecided,
}

/// A point with the results of its rounds.
struct Studied {
    at: f64,
    ratio: LogRatio,
    /// The candidate's cost of an I/O − the baseline's.
    difference: f64,
    /// Of each round on `difference`, as if rounds were independent.
    influences: Vec<f64>,
    /// The variance of θ ÷ what it is if rounds are independent; at least 1.
    growth: f64,
}

/// Where the candidate's change crosses 0.
///
/// Only points with a detected difference (after Holm's correction over the line) determine who wins, so noise around 0 is
/// not a crossover. Between the last of one sign and the first of the other, the difference D of the arms' costs of an I/O
/// is interpolated linearly along the axis. The interval contains every place at which the interpolated D cannot be
/// distinguished from 0, |D(x)| ≤ t(0.975)·se(x), with se(x) from the rounds' interpolated influences. This is Fieller's
/// (1954) construction. It is preferred to the jackknife because it inverts an exact t test, needs no derivative at the
/// crossing, and cannot lose the crossing in a replicate. The interval does not include how far D deviates from a straight
/// line between two neighbouring sizes (a cache that overflows between them). Where [`Between::Anything`] is possible, it
/// reaches from the last point of one sign to the first of the other.
///
/// `None` with fewer than two points, places that are not positive or not distinct, fewer than two rounds, or points
/// with different numbers of rounds.
pub fn crossover(points: &[SweepPoint], steps: Resolution, good: Good, between: Between) -> Option<Crossover> {
    let points = studied(points, steps, good, between)?;
    let p_values: Vec<Option<f64>> = points.iter().map(|point| point.ratio.p_value()).collect();
    let detected = holm(&p_values).into_iter().map(|p| p.is_some_and(|p| p < 1.0 - CONFIDENCE));
    let told: Vec<(usize, Winner)> = points
        .iter()
        .enumerate()
        .zip(detected)
        .filter(|(_, detected)| *detected)
        .map(|((index, point), _)| (index, winner(point.ratio.theta, good)))
        .collect();
    let changes: Vec<(usize, usize, Winner)> = told
        .windows(2)
        .filter_map(|pair| match pair {
            [(last, before), (first, after)] if before != after => Some((*last, *first, *after)),
            _ => None,
        })
        .collect();
    Some(match (changes.as_slice(), told.first()) {
        ([], None) => Crossover::Undecided,
        ([], Some((_, winner))) if told.len() == points.len() => Crossover::Everywhere { winner: *winner },
        ([], Some((_, winner))) => {
            let decided = |place: &usize| told.iter().any(|(told, _)| told == place);
            let undecided = points.iter().enumerate().filter(|(place, _)| !decided(place));
            Crossover::Unresolved { winner: *winner, undecided: undecided.map(|(_, point)| point.at).collect() }
        }
        ([(last, first, winner_above)], _) => {
            Crossover::At { at: crossing(points.get(*last..=*first)?, between)?, winner_above: *winner_above }
        }
        (several, _) => Crossover::Several { changes: several.len() },
    })
}

fn winner(theta: f64, good: Good) -> Winner {
    if (theta > 0.0) == (good == Good::Higher) { Winner::Candidate } else { Winner::Baseline }
}

/// In the order of the axis.
fn studied(points: &[SweepPoint], steps: Resolution, good: Good, between: Between) -> Option<Vec<Studied>> {
    let rounds = points.first()?.1.len();
    if points.len() < 2 || rounds < 2 || points.iter().any(|(at, others)| others.len() != rounds || *at <= 0.0) {
        return None;
    }
    let study = |(at, rounds): &SweepPoint| {
        let ratio = log_ratio(rounds, steps)?;
        let (_, independent) = log_with_influences(rounds)?;
        let growth = ratio.error?.standard_error.powi(2) / covariance(&independent, &independent);
        let size = if between == Between::CostPerByte { *at } else { 1.0 };
        let cost = |Pair { numerator, denominator }| match good {
            Good::Lower => Pair { numerator: numerator * size, denominator },
            Good::Higher => Pair { numerator: denominator * size, denominator: numerator },
        };
        let costs = arms(rounds).map(|arm| with_influences(&arm.into_iter().map(cost).collect::<Vec<_>>()));
        let [Some(baseline), Some(candidate)] = costs else { return None };
        Some(Studied {
            at: *at,
            ratio,
            difference: candidate.0 - baseline.0,
            influences: candidate.1.iter().zip(baseline.1).map(|(candidate, baseline)| candidate - baseline).collect(),
            growth: if growth.is_finite() { growth.max(1.0) } else { 1.0 },
        })
    };
    let mut points = points.iter().map(study).collect::<Option<Vec<Studied>>>()?;
    points.sort_by(|a, b| a.at.total_cmp(&b.at));
    let distinct = points.windows(2).all(|pair| matches!(pair, [a, b] if a.at < b.at));
    distinct.then_some(points)
}

/// The crossing between the first and the last of `points`, whose signs are known and differ.
fn crossing(points: &[Studied], between: Between) -> Option<Estimate> {
    let (first, last) = (points.first()?, points.last()?);
    // An evident correlation of rounds at either end makes errors larger and their degrees of freedom fewer.
    let degrees = first.ratio.error?.degrees_of_freedom.min(last.ratio.error?.degrees_of_freedom);
    let t = student_t(0.5 + CONFIDENCE / 2.0, degrees)? * first.growth.max(last.growth).sqrt();
    let (mut zeros, mut bounds) = (Vec::new(), Vec::new());
    for pair in points.windows(2) {
        let [left, right] = pair else { continue };
        let at = |part: f64| left.at + part * (right.at - left.at);
        let zero = left.difference / (left.difference - right.difference);
        zeros.extend(Some(zero).filter(|part| (0.0..=1.0).contains(part)).map(at));
        bounds.extend(indistinct(left, right, t).into_iter().map(at));
    }
    if between == Between::Anything {
        bounds = vec![first.at, last.at];
    }
    // D may cross 0 several times where it cannot be distinguished from 0; the middle one of an odd number is used.
    let value = *zeros.get(zeros.len() / 2)?;
    let low = bounds.iter().copied().fold(value, f64::min);
    let high = bounds.iter().copied().fold(value, f64::max);
    Some(Estimate { value, low: Some(low), high: Some(high) })
}

/// Of two means over the same rounds, from the rounds' influences, as if rounds were independent.
fn covariance(a: &[f64], b: &[f64]) -> f64 {
    let rounds = a.len() as f64;
    a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / (rounds * (rounds - 1.0))
}

/// The fractions of the way from `left` to `right` at which D² = t²·se²: the ends of the ranges in which D may be 0.
fn indistinct(left: &Studied, right: &Studied, t: f64) -> Vec<f64> {
    // At fraction λ: D = D_l + λ·(D_r − D_l), and likewise for the influences. Both squares are quadratic in λ.
    let (start, rise) = (left.difference, right.difference - left.difference);
    let of = |a: &Studied, b: &Studied| covariance(&a.influences, &b.influences);
    let (own, joint, other) = (of(left, left), of(left, right), of(right, right));
    let (variance_rise, variance_both) = (other - 2.0 * joint + own, joint - own);
    let a = rise.powi(2) - t.powi(2) * variance_rise;
    let half_b = start * rise - t.powi(2) * variance_both;
    let c = start.powi(2) - t.powi(2) * own;
    let root = (half_b.powi(2) - a * c).sqrt();
    // Uses both forms of the solution, so that neither subtracts two nearly equal numbers. A NaN is in no range.
    let q = -(half_b + root.copysign(half_b));
    let within = [q / a, c / q].into_iter().filter(|part| (0.0..=1.0).contains(part));
    // An end at which D cannot be told from 0 is in the range, too.
    let ends = [(0.0, left, own), (1.0, right, other)]
        .into_iter()
        .filter(|(_, point, variance)| point.difference.powi(2) <= t.powi(2) * variance);
    within.chain(ends.map(|(part, ..)| part)).collect()
}

#[cfg(test)]
mod tests;
