//! Small statistics that others build on: quantiles, ranks, proportions, families of tests, random numbers.

use crate::Estimate;
use statrs::distribution::{ContinuousCDF, Normal};

/// The quantile `fraction` (0 to 1) of `values`, which are reordered: the value at the nearest rank. `None` if there
/// are none. Values that are not numbers count as the largest.
pub fn quantile(values: &mut [f64], fraction: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let rank = (fraction.clamp(0.0, 1.0) * last as f64).round() as usize;
    let (_, value, _) = values.select_nth_unstable_by(rank.min(last), f64::total_cmp);
    Some(*value)
}

/// SplitMix64 (Steele, Lea and Flood, 2014): the same numbers for the same seed everywhere.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// From 0 to 1.
    pub fn part(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The 0.975 quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// The part `hits` of `trials`, with Wilson's score interval (E. B. Wilson, Probable inference, the law of succession, and statistical
/// inference, Journal of the American Statistical Association 22, 1927): it stays within 0 and 1, and holds for few hits.
pub fn wilson(hits: u64, trials: u64) -> Estimate {
    if trials == 0 {
        return Estimate::bare(0.0);
    }
    let n = trials as f64;
    let part = hits.min(trials) as f64 / n;
    let scale = 1.0 + Z * Z / n;
    let centre = (part + Z * Z / (2.0 * n)) / scale;
    let half = Z / scale * (part * (1.0 - part) / n + Z * Z / (4.0 * n * n)).sqrt();
    Estimate { value: part, low: Some((centre - half).max(0.0)), high: Some((centre + half).min(1.0)) }
}

/// p-values adjusted after Holm (1979): the i-th smallest of m times (m − i + 1), never smaller than that of a smaller
/// p-value, at most 1. A cell is detected when its adjusted p-value is below 0.05. `None` means not tested; it stays
/// `None` and does not count.
pub fn holm(p_values: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut ordered: Vec<(usize, f64)> =
        p_values.iter().enumerate().filter_map(|(index, p)| Some((index, (*p)?))).collect();
    ordered.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let mut adjusted = vec![None; p_values.len()];
    let mut least: f64 = 0.0;
    for (rank, (index, p)) in ordered.iter().enumerate() {
        least = least.max(p * (ordered.len() - rank) as f64).min(1.0);
        if let Some(slot) = adjusted.get_mut(*index) {
            *slot = Some(least);
        }
    }
    adjusted
}

/// Two-sided p-value of the rank-sum test (Wilcoxon, 1945; Mann and Whitney, 1947) by its normal approximation. Unlike
/// a t test, it ignores a few outliers. `None` with fewer than 10 values on either side.
pub fn rank_sum_p(one: &[f64], other: &[f64]) -> Option<f64> {
    const FEWEST: usize = 10;
    if one.len() < FEWEST || other.len() < FEWEST {
        return None;
    }
    let mut all: Vec<(f64, bool)> = one.iter().map(|value| (*value, true)).collect();
    all.extend(other.iter().map(|value| (*value, false)));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let rank_sum: f64 = (1..).zip(&all).filter(|(_, (_, first))| *first).map(|(rank, _)| f64::from(rank)).sum();
    let (n, m) = (one.len() as f64, other.len() as f64);
    let z = (rank_sum - n * (n + m + 1.0) / 2.0) / (n * m * (n + m + 1.0) / 12.0).sqrt();
    z.is_finite().then(|| 2.0 * Normal::standard().cdf(-z.abs()))
}

/// Estimates of N parameters, each ± t(0.975, R − 1) · se with the delete-one jackknife's
/// se² = (R − 1)/R · Σ(p_r − p̄)² (Efron and Stein, 1981), where p_r is the parameter without round r.
///
/// `fit` receives the round to leave out; `None` leaves out none. The result is `None` if the whole cannot be fitted,
/// and has no intervals if the fit fails without one of the rounds, or if there is only one.
pub fn jackknife<const N: usize>(
    rounds: usize,
    fit: impl Fn(Option<usize>) -> Option<[f64; N]>,
) -> Option<[Estimate; N]> {
    let whole = fit(None)?;
    let without: Option<Vec<[f64; N]>> = (0..rounds).map(|round| fit(Some(round))).collect();
    let Some(without) = without.filter(|_| rounds >= 2) else { return Some(whole.map(Estimate::bare)) };
    let count = rounds as f64;
    let mean = sums(without.iter().copied()).map(|sum| sum / count);
    let squares = sums(without.iter().map(|values| zip(*values, mean, |value, mean| (value - mean).powi(2))));
    Some(zip(whole, squares, |value, squares| {
        Estimate::with_error(value, ((count - 1.0) / count * squares).sqrt(), count - 1.0)
    }))
}

fn sums<const N: usize>(rows: impl Iterator<Item = [f64; N]>) -> [f64; N] {
    rows.fold([0.0; N], |sums, row| zip(sums, row, |sum, value| sum + value))
}

fn zip<const N: usize, T>(a: [f64; N], b: [f64; N], with: impl Fn(f64, f64) -> T) -> [T; N] {
    let mut b = b.into_iter();
    a.map(|a| with(a, b.next().unwrap_or(f64::NAN)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::student_t;
    use proptest::prelude::*;

    #[test]
    fn ranks_are_exact() {
        let mut values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!([0.0, 0.5, 0.95, 1.0].map(|part| quantile(&mut values, part)), [0.0, 50.0, 95.0, 100.0].map(Some));
        assert_eq!(quantile(&mut [], 0.5), None);
    }

    #[test]
    fn known_intervals() {
        // Newcombe, Two-sided confidence intervals for the single proportion (1998), table I, method 3.
        for (hits, trials, low, high) in
            [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]
        {
            let found = wilson(hits, trials);
            let ends = [found.low.unwrap() - low, found.high.unwrap() - high];
            assert!(ends.iter().all(|difference: &f64| difference.abs() < 6e-5), "{hits} of {trials}: {found:?}");
        }
        assert_eq!(wilson(0, 0), Estimate::bare(0.0));
        assert_eq!(wilson(9, 3).value, 1.0);
    }

    #[test]
    fn it_contains_the_truth_as_often_as_it_says() {
        let mut random = Random(48);
        for truth in [0.02, 0.3] {
            let covered = (0..2000).filter(|_| {
                let hits = (0..400).filter(|_| random.part() < truth).count();
                let found = wilson(hits as u64, 400);
                found.low.unwrap() <= truth && truth <= found.high.unwrap()
            });
            let covered = covered.count();
            assert!((1850..=1960).contains(&covered), "{truth}: {covered} of 2000");
        }
    }

    #[test]
    fn worked_by_hand() {
        let found = holm(&[Some(0.01), None, Some(0.04), Some(0.03), Some(0.005)]);
        let expected = [Some(0.03), None, Some(0.06), Some(0.06), Some(0.02)];
        for (found, expected) in found.iter().zip(expected) {
            match (found, expected) {
                (Some(found), Some(expected)) => assert!((found - expected).abs() < 1e-15, "{found} {expected}"),
                (found, expected) => assert_eq!(*found, expected),
            }
        }
        assert_eq!(holm(&[None, Some(0.03)]), [None, Some(0.03)], "one cell needs no correction");
        assert_eq!(holm(&[]), []);
    }

    proptest! {
        #[test]
        fn between_the_p_value_and_bonferronis_in_any_order(p_values in proptest::collection::vec(0.0f64..=1.0, 1..20)) {
            let given: Vec<Option<f64>> = p_values.iter().copied().map(Some).collect();
            let adjusted = holm(&given);
            for (p, adjusted) in p_values.iter().zip(&adjusted) {
                let adjusted = adjusted.unwrap();
                prop_assert!(*p <= adjusted && adjusted <= (p * p_values.len() as f64).min(1.0));
            }
            let turned: Vec<Option<f64>> = given.into_iter().rev().collect();
            prop_assert_eq!(adjusted, holm(&turned).into_iter().rev().collect::<Vec<_>>());
        }
    }

    /// By hand, of 1, 3, 5 … 19 and 4, 6, 8 … 22: ranks 91 and 119, so z = −14/√175.
    #[test]
    fn the_p_value_follows_from_the_ranks() {
        let series = |begin: u32| (0..10).map(|i| f64::from(begin + 2 * i)).collect::<Vec<_>>();
        let p = rank_sum_p(&series(1), &series(4)).unwrap();
        assert!((p - 0.289_918).abs() < 1e-5, "{p}");
        assert_eq!(rank_sum_p(&series(1)[..9], &series(4)), None);
        assert!(rank_sum_p(&series(1), &series(100)).unwrap() < 2e-4);
    }

    /// The jackknife of a mean is exactly the mean with its usual error (Efron and Stein, 1981).
    #[test]
    fn for_a_mean_it_is_the_usual_interval() {
        let values: [f64; 5] = [1.0, 2.0, 4.0, 8.0, 16.0];
        let mean = |out: Option<usize>| {
            let kept: Vec<f64> = values.iter().enumerate().filter(|(i, _)| Some(*i) != out).map(|(_, v)| *v).collect();
            Some([kept.iter().sum::<f64>() / kept.len() as f64])
        };
        let [found] = jackknife(values.len(), mean).unwrap();
        let variance = values.iter().map(|value| (value - 6.2).powi(2)).sum::<f64>() / 4.0;
        let half = student_t(0.975, 4.0).unwrap() * (variance / 5.0).sqrt();
        assert_eq!(found.value, 6.2);
        assert!((found.half_width().unwrap() - half).abs() < 1e-12);
    }

    #[test]
    fn no_interval_without_every_replicate() {
        assert_eq!(jackknife(1, |_| Some([1.0])), Some([Estimate::bare(1.0)]));
        let fails = |out: Option<usize>| (out != Some(2)).then_some([1.0]);
        assert_eq!(jackknife(5, fails), Some([Estimate::bare(1.0)]));
        assert_eq!(jackknife(5, |_| None::<[f64; 1]>), None);
    }
}
