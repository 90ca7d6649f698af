//! Measuring: turns a [`model::plan::Plan`] or a command into a [`model::record::Record`].
//!
//! Nothing here computes a figure that is shown, and nothing prints: progress goes to an observer, results into the
//! record.

pub mod bounded_file;
pub mod calibration;
pub mod canary;
pub mod command;
mod control_groups;
pub mod created;
pub mod doctor;
pub mod elf;
pub mod error;
mod event_counters;
pub mod freezer;
pub mod group_limits;
pub mod guardian;
pub mod host;
pub mod interruption;
pub mod memory;
pub mod meter;
pub mod names;
pub mod network_namespace;
pub mod page_cache;
pub mod placing;
pub mod probe;
pub mod proc_files;
pub mod progress;
pub mod service;
pub mod session;
pub mod shell;
#[cfg(test)]
mod skipping;
pub(crate) mod starters;
pub mod store;
pub mod sysroot;
pub mod toggle;
pub mod watch;
pub mod whereabouts;

pub use error::{Error, Result};
pub use interruption::Interruption;
pub use sys::process::reset_inherited_signals;
pub use sys::uring::probe as io_uring;
