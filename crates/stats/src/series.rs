//! Series of equally spaced values: their level, their spectrum, and what repeats in them.

pub mod fold;
pub mod level;
pub mod rotated;
pub mod spectrum;
