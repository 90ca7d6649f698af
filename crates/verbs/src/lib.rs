//! What iotoll measures, a folder for each verb: its plan, its record, how it is measured, its study and its page. No verb knows another;
//! what they share is in the crates below, and in [`pages`].

pub mod blast;
pub mod compare;
pub mod cost;
pub mod doctor;
pub mod format;
pub mod ftq;
pub mod guest;
pub mod history;
pub mod pages;

#[cfg(test)]
mod experiments;

#[cfg(test)]
mod hostile;

pub use format::{Finding, Format};
