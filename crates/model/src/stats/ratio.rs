//! The estimator of costs: a ratio of sums, with an interval from the residuals of its units.

use super::estimate::{Estimate, half_width};

/// Numerator and denominator of one unit (a window, a round, an execution), for example cycles and I/Os.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The numerator.
    pub numerator: f64,
    /// The denominator.
    pub denominator: f64,
}

/// A ratio of sums, with a standard error from the spread of the units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Σ numerator / Σ denominator.
    pub value: f64,
    /// Standard error, in the unit of the value; `None` with fewer than two units.
    pub standard_error: Option<f64>,
    /// Number of units.
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

    /// Half the width of the 95 % interval.
    pub fn half_width(&self) -> Option<f64> {
        half_width(self.standard_error?, self.degrees_of_freedom())
    }
}

/// Σn / Σd. The standard error is that of the classical ratio estimator (Cochran, Sampling Techniques, 3rd ed., § 6.4):
/// residuals e = n − r·d, se = sqrt(R/(R−1) · Σe²) / Σd. Units may have different lengths, as windows do, and are
/// weighted by their work. `None` if Σd is not positive.
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

/// Like [`ratio_of_sums`], for consecutive units: neighbours with similar errors make the error larger than the number
/// of units suggests. With ρ the correlation of consecutive residuals, the standard error grows by sqrt((1 + ρ)/(1 −
/// ρ)), and the degrees of freedom shrink by the inverse square (Bartlett, 1935). Twenty units cannot distinguish a
/// large ρ from a trend, so ρ is limited to 0.7.
pub fn ratio_of_series(pairs: &[Pair]) -> Option<Series> {
    const MOST: f64 = 0.7;
    let ratio = ratio_of_sums(pairs)?;
    let residuals: Vec<f64> = pairs.iter().map(|pair| pair.numerator - ratio.value * pair.denominator).collect();
    let squares: f64 = residuals.iter().map(|residual| residual.powi(2)).sum();
    let products: f64 = residuals.windows(2).map(|pair| pair.iter().product::<f64>()).sum();
    let correlation = if squares > 0.0 { (products / squares).clamp(0.0, MOST) } else { 0.0 };
    let growth = (1.0 + correlation) / (1.0 - correlation);
    Some(Series {
        value: ratio.value,
        standard_error: ratio.standard_error.map(|error| error * growth.sqrt()),
        degrees_of_freedom: (ratio.degrees_of_freedom() / growth).max(1.0),
        units: ratio.units,
    })
}

/// A ratio over consecutive units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Series {
    /// Σ numerator / Σ denominator.
    pub value: f64,
    /// Standard error; `None` with fewer than two units.
    pub standard_error: Option<f64>,
    /// Degrees of freedom of the standard error.
    pub degrees_of_freedom: f64,
    /// Number of units.
    pub units: usize,
}

impl From<Ratio> for Series {
    fn from(ratio: Ratio) -> Self {
        let degrees_of_freedom = ratio.degrees_of_freedom();
        Self { value: ratio.value, standard_error: ratio.standard_error, degrees_of_freedom, units: ratio.units }
    }
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
    fn correlated_neighbours_widen_the_error() {
        let alike = pairs(&[(11.0, 1.0); 4].into_iter().chain([(9.0, 1.0); 4]).collect::<Vec<_>>());
        let (plain, series) = (ratio_of_sums(&alike).unwrap(), ratio_of_series(&alike).unwrap());
        assert!(series.standard_error > plain.standard_error);
        assert!(series.degrees_of_freedom < plain.degrees_of_freedom());
        let unlike = pairs(&[(11.0, 1.0), (9.0, 1.0), (11.0, 1.0), (9.0, 1.0)]);
        assert_eq!(ratio_of_series(&unlike), ratio_of_sums(&unlike).map(Series::from), "never narrower");
    }

    #[test]
    fn without_work_there_is_no_ratio() {
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
