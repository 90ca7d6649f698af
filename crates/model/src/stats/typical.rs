//! The change of a typical round, beside the change of the sums.
//!
//! Rounds enter; the Hodges-Lehmann estimate of their log ratios leaves. It looks at where most rounds lie, so a few
//! rounds with stalls do not move it. That makes it no estimate of the whole cost, and makes it worth showing: where
//! it disagrees with the ratio of sums, it is the shape that changed and not each I/O.

use super::estimate::{CONFIDENCE, Estimate};
use super::log_ratio::PairedRound;
use super::ratio::Pair;
use statrs::distribution::{ContinuousCDF, Normal};

/// The signed-rank distribution is worked out exactly up to this many rounds. Beyond, its normal approximation cuts at
/// most one Walsh average less, of the 5,151 that 101 rounds have.
const EXACT_ROUNDS: usize = 100;

/// The change of a typical round as a fraction, with a distribution-free interval of at least 95 %.
///
/// The value is the median of all Walsh averages (d_i + d_j)/2, i ≤ j, of d = ln(candidate ÷ baseline) of a round
/// (Hodges and Lehmann, 1963); the interval cuts as many from either end as the signed-rank statistic allows
/// (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd ed., § 3.2 and 3.3). It supposes only that d
/// is symmetric. Fewer than 6 rounds give no interval. `None` when a round's ratio is not positive: it has no
/// logarithm.
///
/// A comparison of hours has 10⁴ rounds and 10⁸ Walsh averages, so they are counted and never kept. Joining rounds to
/// groups would need as little memory, but then a stall in each group would move what is typical.
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

/// Whether the typical round and the sums tell different stories: neither interval holds the other's value.
///
/// Both are made from the same rounds and move together, so noise alone hardly ever does that. `false` where one of
/// them has no interval.
pub fn shape_changed(ratio_of_sums: &Estimate, typical: &Estimate) -> bool {
    ratio_of_sums.contains(typical.value) == Some(false) && typical.contains(ratio_of_sums.value) == Some(false)
}

fn log_of_round(round: &PairedRound) -> Option<f64> {
    let ratio = |pair: Pair| pair.numerator / pair.denominator;
    let log = (ratio(round.candidate) / ratio(round.baseline)).ln();
    let positive = ratio(round.candidate) > 0.0 && ratio(round.baseline) > 0.0;
    (positive && log.is_finite()).then_some(log)
}

/// The Walsh average of finite `sorted` values that has `rank` smaller ones, exactly.
///
/// It is the smallest number that more than `rank` averages do not exceed. Numbers in their order are counted through by
/// whole numbers, so it is found by halving the range between the smallest and the largest value 64 times.
fn walsh_average(sorted: &[f64], rank: usize) -> Option<f64> {
    let (mut low, mut high) = (place(*sorted.first()?), place(*sorted.last()?));
    while low < high {
        let middle = low.midpoint(high);
        if averages_up_to(sorted, at_place(middle)) > rank { high = middle } else { low = middle + 1 }
    }
    // −0, which also exceeds nothing that 0 does not, is written as 0.
    Some(at_place(high) + 0.0)
}

/// How many averages of two values, each also with itself, are at most `bound`: two ends that move towards each other.
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

/// Where a number stands among all others, as `total_cmp` orders them: its bits, those of negative ones turned round.
fn place(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// The number that stands there.
fn at_place(place: u64) -> f64 {
    f64::from_bits(if place & SIGN == 0 { !place } else { place ^ SIGN })
}

/// How many Walsh averages lie outside of the interval at either end: the largest k with P(W ≤ k) ≤ 0.025, where W
/// is the signed-rank statistic. `None` when even W = 0 is more probable.
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

/// P(W = k) for each k. Each rank 1…n counts or not, with probability ½: one convolution a rank.
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
