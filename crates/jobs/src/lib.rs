//! What a job does: its requests and their files, the engines that send them, and the measured loop of its workers.
//!
//! A crate of its own: its loops are compiled for speed, what surrounds a measurement (`lab`) for size.

pub mod cached_files;
pub mod demand;
pub mod echo;
pub mod engine;
pub mod file_roles;
pub mod io_log;
pub mod read_back;
pub mod replaying;
mod thread_usage;
pub mod worker_pool;
pub mod workload;
