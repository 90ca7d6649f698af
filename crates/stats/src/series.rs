//! Series of equally spaced values: their level, their spectrum, and what repeats in them.

pub mod fold;
pub mod level;
pub mod rotated;
pub mod spectrum;

/// The mean of values; 0 without any.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
