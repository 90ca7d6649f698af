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
pub fn typical(rounds: &[PairedRound]) -> Option<Estimate> {
    let logs: Option<Vec<f64>> = rounds.iter().map(log_of_round).collect();
    let walsh = walsh_averages(&logs?);
    let (lower, upper) = (walsh.get(walsh.len().checked_sub(1)? / 2)?, walsh.get(walsh.len() / 2)?);
    let cut = cut(rounds.len());
    Some(Estimate {
        value: ((lower + upper) / 2.0).exp_m1(),
        low: cut.and_then(|cut| Some(walsh.get(cut)?.exp_m1())),
        high: cut.and_then(|cut| Some(walsh.get(walsh.len().checked_sub(1 + cut)?)?.exp_m1())),
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

/// In ascending order.
fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let mut averages = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (index, first) in values.iter().enumerate() {
        averages.extend(values.iter().skip(index).map(|second| (first + second) / 2.0));
    }
    averages.sort_by(f64::total_cmp);
    averages
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
