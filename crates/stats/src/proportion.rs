//! The interval of a proportion.

use crate::Estimate;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

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
}
