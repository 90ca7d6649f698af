//! A value with its confidence interval.

use super::uncertainty::Uncertainty;
use serde::{Deserialize, Serialize};

pub use super::basics::{CONFIDENCE, student_t};

/// A value and its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Lower end of the interval; `None` if there are too few units. Its confidence is 95 % where nothing else is said.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

impl Estimate {
    /// A value without an interval.
    pub fn bare(value: f64) -> Self {
        Self { value, low: None, high: None }
    }

    /// A value that is exact.
    pub fn exact(value: f64) -> Self {
        Self { value, low: Some(value), high: Some(value) }
    }

    /// value ± t(0.975, degrees of freedom) × standard error.
    pub fn with_error(value: f64, standard_error: f64, degrees_of_freedom: f64) -> Self {
        match half_width(standard_error, degrees_of_freedom) {
            Some(half) => Self { value, low: Some(value - half), high: Some(value + half) },
            None => Self::bare(value),
        }
    }

    /// The value with the interval that its uncertainty gives; bare without one.
    pub fn around(value: f64, error: Option<&Uncertainty>, confidence: f64) -> Self {
        match error.and_then(|error| error.reach(confidence)) {
            Some((below, above)) => Self { value, low: Some(value - below), high: Some(value + above) },
            None => Self::bare(value),
        }
    }

    /// The value and both ends by an increasing function.
    pub fn map(self, by: impl Fn(f64) -> f64) -> Self {
        Self { value: by(self.value), low: self.low.map(&by), high: self.high.map(&by) }
    }

    /// `None` without an interval.
    pub fn bounded(self) -> Option<Self> {
        self.ends().map(|_| self)
    }

    /// The ends of the interval.
    pub fn ends(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }

    /// Half the width of the interval.
    pub fn half_width(&self) -> Option<f64> {
        Some((self.high? - self.low?) / 2.0)
    }

    /// Whether the interval contains `truth`; `None` without an interval.
    pub fn contains(&self, truth: f64) -> Option<bool> {
        Some(self.low? <= truth && truth <= self.high?)
    }

    /// The same estimate in a unit that is `factor` times as fine.
    pub fn scaled(&self, factor: f64) -> Self {
        self.map(|end| end * factor)
    }
}

/// t(0.975, degrees of freedom) × standard error; `None` without a degree of freedom.
pub fn half_width(standard_error: f64, degrees_of_freedom: f64) -> Option<f64> {
    Some(student_t(0.5 + CONFIDENCE / 2.0, degrees_of_freedom)? * standard_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy.stats.t.ppf(p, df), scipy 1.17.
    #[test]
    fn student_t_agrees_with_scipy() {
        for (probability, degrees, expected) in [
            (0.975, 1.0, 12.706204736174694),
            (0.975, 4.0, 2.7764451051977934),
            (0.975, 9.0, 2.262157162798205),
            (0.975, 19.0, 2.0930240544083087),
            (0.98, 9.0, 2.3984409848565056),
            (0.8, 29.0, 0.8541919858818557),
        ] {
            let found = student_t(probability, degrees).unwrap();
            assert!((found - expected).abs() < 1e-9, "t({probability}, {degrees}) = {found}, not {expected}");
        }
    }

    #[test]
    fn one_unit_gives_no_interval() {
        assert_eq!(Estimate::with_error(1.0, 0.1, 0.0), Estimate::bare(1.0));
    }
}
