//! What this machine can measure.

pub mod page;
