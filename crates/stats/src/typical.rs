//! The change of a typical round, as opposed to the change of the sums.
//!
//! The input is rounds. The result is the Hodges-Lehmann estimate of their log ratios, which is determined by most
//! rounds, so a few rounds with stalls do not affect it. It is not an estimate of the whole cost, but if it disagrees
//! with the ratio of sums, the shape of the distribution changed, not each I/O.

use super::estimate::{CONFIDENCE, Estimate};
use super::evidence::PairedRound;
use statrs::distribution::{ContinuousCDF, Normal};

/// The signed-rank distribution is computed exactly up to this number of rounds. Beyond, its normal approximation cuts
/// at most one Walsh average less, of the 5,151 that 101 rounds have.
const EXACT_ROUNDS: usize = 100;

/// The change of a typical round as a fraction, with a distribution-free interval of at least 95 %.
///
/// The value is the median of all Walsh averages (d_i + d_j)/2, i ≤ j, of d = ln(candidate ÷ baseline) of a round
/// (Hodges and Lehmann, 1963); the interval cuts as many from either end as the signed-rank statistic allows
/// (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd ed., § 3.2 and 3.3). It only assumes that d is
/// symmetric. Fewer than 6 rounds give no interval. `None` if a round's ratio is not positive, because it has no
/// logarithm.
///
/// A comparison of several hours has 10⁴ rounds and 10⁸ Walsh averages, so they are counted, not stored. Merging rounds
/// into groups would need as little memory, but a stall in each group would then affect the typical value.
pub fn typical(rounds: &[PairedRound]) -> Option<Estimate> {
    let mut logs = rounds.iter().map(log_of_round).collect::<Option<Vec<f64>>>()?;
    logs.sort_by(f64::total_cmp);
    let averages = logs.len() * (logs.len() + 1) / 2;
    let (lower, upper) = (walsh_average(&logs, averages.checked_sub(1)? / 2)?, walsh_average(&logs, averages / 2)?);
    let end = |rank: Option<usize>| Some(walsh_average(&logs, rank?)?.exp_m1());
    let cut = cut(rounds.len());
    Some(Estimate {
        value: ((lower + upper) / 2.0).exp_m1(),
        low: end(cut),
        high: end(cut.and_then(|cut| averages.checked_sub(1 + cut))),
    })
}

/// Whether the typical round and the sums disagree: neither interval contains the other's value.
///
/// Both come from the same rounds and move together, so noise alone rarely causes that. `false` if one of them has no
/// interval.
pub fn shape_changed(ratio_of_sums: &Estimate, typical: &Estimate) -> bool {
    ratio_of_sums.contains(typical.value) == Some(false) && typical.contains(ratio_of_sums.value) == Some(false)
}

fn log_of_round(round: &PairedRound) -> Option<f64> {
    let (ours, theirs) = (round.candidate.ratio(), round.baseline.ratio());
    let log = (ours / theirs).ln();
    let positive = ours > 0.0 && theirs > 0.0;
    (positive && log.is_finite()).then_some(log)
}

/// The exact Walsh average of finite `sorted` values with `rank` smaller ones.
///
/// It is the smallest number that is not exceeded by more than `rank` averages. Numbers are mapped to integers in the
/// same order, so it is found by bisecting the range between the smallest and the largest value 64 times.
fn walsh_average(sorted: &[f64], rank: usize) -> Option<f64> {
    let (mut low, mut high) = (place(*sorted.first()?), place(*sorted.last()?));
    while low < high {
        let middle = low.midpoint(high);
        if averages_up_to(sorted, at_place(middle)) > rank { high = middle } else { low = middle + 1 }
    }
    // The result may be −0, which is returned as 0.
    Some(at_place(high) + 0.0)
}

/// Number of averages of two values (including each with itself) that are at most `bound`, by two indices that move
/// towards each other.
fn averages_up_to(sorted: &[f64], bound: f64) -> usize {
    let (mut count, mut end) = (0, sorted.len());
    for (index, first) in sorted.iter().enumerate() {
        let exceeds = |end: usize| sorted.get(end - 1).is_some_and(|second| (first + second) / 2.0 > bound);
        while end > index && exceeds(end) {
            end -= 1;
        }
        count += end.saturating_sub(index);
    }
    count
}

const SIGN: u64 = 1 << 63;

/// The rank of a number among all others, as `total_cmp` orders them: its bits, inverted for negative numbers.
fn place(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// The number with this rank.
fn at_place(place: u64) -> f64 {
    f64::from_bits(if place & SIGN == 0 { !place } else { place ^ SIGN })
}

/// Number of Walsh averages outside the interval at either end: the largest k with P(W ≤ k) ≤ 0.025, where W is the
/// signed-rank statistic. `None` if even W = 0 is more probable.
fn cut(rounds: usize) -> Option<usize> {
    let tail = (1.0 - CONFIDENCE) / 2.0;
    if rounds > EXACT_ROUNDS {
        let count = rounds as f64;
        let mean = count * (count + 1.0) / 4.0;
        let deviation = (count * (count + 1.0) * (2.0 * count + 1.0) / 24.0).sqrt();
        return Some((mean - 0.5 + deviation * Normal::standard().inverse_cdf(tail)) as usize);
    }
    let mut below = 0.0;
    let within = signed_rank(rounds).into_iter().take_while(|probability| {
        below += probability;
        below <= tail
    });
    within.count().checked_sub(1)
}

/// P(W = k) for each k. Each rank 1…n counts with probability ½: one convolution for each rank.
fn signed_rank(rounds: usize) -> Vec<f64> {
    let mut probabilities = vec![1.0];
    for rank in 1..=rounds {
        let mut longer = vec![0.0; probabilities.len() + rank];
        for (sum, probability) in longer.iter_mut().zip(&probabilities) {
            *sum += probability / 2.0;
        }
        for (sum, probability) in longer.iter_mut().skip(rank).zip(&probabilities) {
            *sum += probability / 2.0;
        }
        probabilities = longer;
    }
    probabilities
}

#[cfg(test)]
mod tests;
