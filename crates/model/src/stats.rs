//! Statistics of the method: estimates with their intervals, each from a stated formula.

pub mod estimate;
pub mod ratio;

pub use estimate::Estimate;
pub use ratio::{Pair, Series, ratio_of_series, ratio_of_sums};
