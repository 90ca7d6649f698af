//! The workload: the requests of a job, and the files and spans that they go to.

pub mod amount;
pub mod job_copy;
pub mod payload;
pub mod permutation;
pub(crate) mod replay;
pub mod request_source;
pub(crate) mod shuffler;
pub mod target;
pub(crate) mod trace_format;
pub(crate) mod trim_backlog;
mod turn;
pub(crate) mod verify_state;
pub(crate) mod zones;
