//! Whether two series have the same level, by ranks.

use statrs::distribution::{ContinuousCDF, Normal};

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

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, of 1, 3, 5 … 19 and 4, 6, 8 … 22: ranks 91 and 119, so z = −14/√175.
    #[test]
    fn the_p_value_follows_from_the_ranks() {
        let series = |begin: u32| (0..10).map(|i| f64::from(begin + 2 * i)).collect::<Vec<_>>();
        let p = rank_sum_p(&series(1), &series(4)).unwrap();
        assert!((p - 0.289_918).abs() < 1e-5, "{p}");
        assert_eq!(rank_sum_p(&series(1)[..9], &series(4)), None);
        assert!(rank_sum_p(&series(1), &series(100)).unwrap() < 2e-4);
    }
}
