//! Student's t distribution, and the confidence for which its quantiles are taken.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence of a reported interval, unless several hold together ([`super::confidence_of_each`]).
pub const CONFIDENCE: f64 = 0.95;

/// Quantile of Student's t distribution; `None` without a degree of freedom.
pub fn student_t(probability: f64, degrees_of_freedom: f64) -> Option<f64> {
    if degrees_of_freedom < 1.0 || !degrees_of_freedom.is_finite() {
        return None;
    }
    Some(StudentsT::new(0.0, 1.0, degrees_of_freedom).ok()?.inverse_cdf(probability))
}
