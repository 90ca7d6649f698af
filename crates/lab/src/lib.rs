//! Measuring: turns a [`model::plan::Plan`] or a command into a [`model::record::Record`].
//!
//! Nothing here computes a figure that is shown, and nothing prints: progress goes to an observer, results into the
//! record.

pub mod blast;
pub mod bounded_file;
pub mod calibration;
pub mod canary;
pub mod compare;
mod control_groups;
pub mod cost;
mod demand;
pub mod doctor;
pub mod echo;
mod elf;
pub mod engine;
pub mod error;
mod event_counters;
mod file_roles;
pub(crate) mod freezer;
pub mod ftq;
mod group_limits;
pub mod guardian;
pub mod guest;
pub mod host;
pub mod interruption;
mod io_log;
pub mod laying_out;
mod memory;
pub mod meter;
mod names;
pub(crate) mod network_namespace;
pub(crate) mod page_cache;
pub mod placing;
pub mod probe;
mod proc_files;
pub mod progress;
mod read_back;
pub mod replaying;
pub mod run;
pub mod service;
pub mod session;
mod sheet;
pub(crate) mod shell;
#[cfg(test)]
mod skipping;
pub(crate) mod starters;
pub mod store;
mod sysroot;
mod thread_usage;
mod toggle;
pub mod watch;
pub(crate) mod whereabouts;
pub mod worker_pool;
pub mod workload;

pub use error::{Error, Result};
pub use interruption::Interruption;
pub use sys::process::reset_inherited_signals;
pub use sys::uring::probe as io_uring;
