//! The correlation of two quantities over a few places, with its interval.

use super::estimate::Estimate;
use statrs::distribution::{ContinuousCDF, Normal};

/// Fewer places have no interval.
pub const FEWEST_PLACES: usize = 4;

/// Pearson's correlation with the interval of Fisher's transformation: atanh r is nearly normal with variance 1/(n − 3) (Fisher, 1921). `None`
/// with fewer than [`FEWEST_PLACES`], or where one of them is constant.
pub fn correlation(places: &[(f64, f64)], confidence: f64) -> Option<Estimate> {
    let count = places.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| places.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|place| place.0), mean(|place| place.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| places.iter().map(|place| of(place.0 - x, place.1 - y)).sum::<f64>();
    let value = sum(&|x, y| x * y) / (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt();
    if places.len() < FEWEST_PLACES || !value.is_finite() {
        return None;
    }
    // Rounding may exceed 1, whose transformation is infinite.
    let value = value.clamp(-1.0, 1.0);
    let reach = Normal::standard().inverse_cdf(0.5 + confidence / 2.0) / (count - 3.0).sqrt();
    let end = |reach: f64| (value.atanh() + reach).tanh();
    Some(Estimate { value, low: Some(end(-reach)), high: Some(end(reach)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::CONFIDENCE;
    use proptest::prelude::*;

    /// Worked by hand: r = 8/10, atanh r = 1.0986, 1.96/√2 = 1.3859.
    #[test]
    fn golden() {
        let found = correlation(&[(1.0, 2.0), (2.0, 1.0), (3.0, 3.0), (4.0, 5.0), (5.0, 4.0)], CONFIDENCE).unwrap();
        assert!((found.value - 0.8).abs() < 1e-12, "{found:?}");
        assert!((found.low.unwrap() - (0.8f64.atanh() - 1.959_964 / 2f64.sqrt()).tanh()).abs() < 1e-6, "{found:?}");
        assert_eq!(found.contains(0.0), Some(true), "five places prove little");
    }

    #[test]
    fn few_or_constant_places_have_none() {
        let line = |count: u32| (0..count).map(|place| (f64::from(place), f64::from(2 * place))).collect::<Vec<_>>();
        assert_eq!(correlation(&line(3), CONFIDENCE), None);
        let whole = correlation(&line(6), CONFIDENCE).unwrap();
        assert!(whole.value > 0.999 && whole.contains(0.0) == Some(false), "{whole:?}");
        assert_eq!(correlation(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0), (1.0, 4.0)], CONFIDENCE), None);
    }

    proptest! {
        #[test]
        fn it_is_between_the_ends_of_its_interval(places in proptest::collection::vec((-1e6f64..1e6, -1e6f64..1e6), 4..20)) {
            if let Some(Estimate { value, low: Some(low), high: Some(high) }) = correlation(&places, CONFIDENCE) {
                prop_assert!(-1.0 <= low && low <= value && value <= high && high <= 1.0);
            }
        }
    }
}
