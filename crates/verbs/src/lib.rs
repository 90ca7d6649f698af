//! What iotoll measures, a folder for each verb: its plan, its record, how it is measured, its study and its page. No verb knows another;
//! what they share is in the crates below, and in [`pages`].

pub mod blast;
pub mod compare;
mod cost;
pub mod doctor;
pub mod format;
pub mod ftq;
pub mod guest;
pub mod history;
pub mod pages;

#[cfg(test)]
mod experiments;

/// Records as a damaged disk might leave them, for the tests of both crates.
#[cfg(test)]
#[path = "../../model/src/hostile.rs"]
mod hostile;

pub use format::{Finding, Format};
