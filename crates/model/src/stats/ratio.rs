//! The one estimator for a cost: a ratio of sums with an interval from its units' residuals.

use super::estimate::{Estimate, half_width};

/// Numerator and denominator of one unit (a window, a round, an execution): cycles and I/Os, say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// What is divided.
    pub numerator: f64,
    /// What it is divided by.
    pub denominator: f64,
}

/// A ratio of sums, with the standard error that the spread of the units gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Σ numerator / Σ denominator.
    pub value: f64,
    /// Standard error, in the unit of the value; `None` with fewer than two units.
    pub standard_error: Option<f64>,
    /// Units.
    pub units: usize,
}

impl Ratio {
    /// Degrees of freedom of the standard error.
    pub fn degrees_of_freedom(&self) -> f64 {
        self.units.saturating_sub(1) as f64
    }

    /// The value with its 95 % interval.
    pub fn estimate(&self) -> Estimate {
        match self.standard_error {
            Some(error) => Estimate::with_error(self.value, error, self.degrees_of_freedom()),
            None => Estimate::bare(self.value),
        }
    }

    /// Half of the 95 % interval's width.
    pub fn half_width(&self) -> Option<f64> {
        half_width(self.standard_error?, self.degrees_of_freedom())
    }
}

/// Σn / Σd. The standard error is that of the classical ratio estimator (Cochran, Sampling
/// Techniques, 3rd ed., § 6.4): residuals e = n − r·d, se = sqrt(R/(R−1) · Σe²) / Σd. It lets units
/// have different lengths, as windows do, and weighs each by its work. `None` when Σd is not positive.
pub fn ratio_of_sums(pairs: &[Pair]) -> Option<Ratio> {
    let numerators: f64 = pairs.iter().map(|pair| pair.numerator).sum();
    let denominators: f64 = pairs.iter().map(|pair| pair.denominator).sum();
    if denominators <= 0.0 || !numerators.is_finite() {
        return None;
    }
    let value = numerators / denominators;
    let units = pairs.len();
    let standard_error = (units >= 2).then(|| {
        let squares: f64 = pairs.iter().map(|pair| (pair.numerator - value * pair.denominator).powi(2)).sum();
        (units as f64 / (units - 1) as f64 * squares).sqrt() / denominators
    });
    Some(Ratio { value, standard_error, units })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(values: &[(f64, f64)]) -> Vec<Pair> {
        values.iter().map(|&(numerator, denominator)| Pair { numerator, denominator }).collect()
    }

    /// Worked by hand: r = 60/30 = 2, residuals 1, 0, −1, se = sqrt(3/2 · 2)/30.
    #[test]
    fn golden() {
        let ratio = ratio_of_sums(&pairs(&[(21.0, 10.0), (20.0, 10.0), (19.0, 10.0)])).unwrap();
        assert_eq!(ratio.value, 2.0);
        assert!((ratio.standard_error.unwrap() - 3f64.sqrt() / 30.0).abs() < 1e-15);
        let interval = ratio.estimate();
        assert!((interval.half_width().unwrap() - 4.302652729749464 * 3f64.sqrt() / 30.0).abs() < 1e-9);
    }

    #[test]
    fn no_work_is_no_ratio() {
        assert_eq!(ratio_of_sums(&[]), None);
        assert_eq!(ratio_of_sums(&pairs(&[(5.0, 0.0)])), None);
    }

    proptest! {
        #[test]
        fn scaling_the_work_scales_the_cost_and_its_error(
            values in proptest::collection::vec((1.0f64..1e6, 1.0f64..1e6), 2..30),
            factor in 0.001f64..1000.0,
        ) {
            let plain = ratio_of_sums(&pairs(&values)).unwrap();
            let scaled: Vec<_> = values.iter().map(|&(n, d)| (n * factor, d)).collect();
            let scaled = ratio_of_sums(&pairs(&scaled)).unwrap();
            prop_assert!((scaled.value / plain.value / factor - 1.0).abs() < 1e-9);
            let (a, b) = (scaled.standard_error.unwrap(), plain.standard_error.unwrap() * factor);
            prop_assert!((a - b).abs() <= 1e-9 * scaled.value);
        }
    }
}
