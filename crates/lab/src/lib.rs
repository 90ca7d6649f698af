//! Measuring: turns a [`model::plan::Plan`] or a command into a [`model::record::Record`].
//!
//! Nothing here computes a figure that is shown, and nothing prints: progress goes to an observer, results into the
//! record.

pub mod bounded_file;
pub mod calibration;
pub mod canary;
pub mod command;
mod control_groups;
pub mod demand;
pub mod doctor;
pub mod echo;
pub mod elf;
pub mod engine;
pub mod error;
mod event_counters;
pub mod file_roles;
pub mod freezer;
pub mod group_limits;
pub mod guardian;
pub mod host;
pub mod interruption;
pub mod io_log;
pub mod laying_out;
pub mod memory;
pub mod meter;
pub mod names;
pub mod network_namespace;
pub mod page_cache;
pub mod placing;
pub mod probe;
pub mod proc_files;
pub mod progress;
pub mod read_back;
pub mod replaying;
pub mod service;
pub mod session;
pub mod shell;
#[cfg(test)]
mod skipping;
pub(crate) mod starters;
pub mod store;
pub mod sysroot;
mod thread_usage;
pub mod toggle;
pub mod watch;
pub mod whereabouts;
pub mod worker_pool;
pub mod workload;

pub use error::{Error, Result};
pub use interruption::Interruption;
pub use sys::process::reset_inherited_signals;
pub use sys::uring::probe as io_uring;
