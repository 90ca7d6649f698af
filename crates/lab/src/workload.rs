//! The load generator: what is asked for next, where it goes, and what came of it.
//!
//! The measured loop (in [`worker`]) does not allocate, lock, log or format. It reads the time-stamp
//! counter once per batch.

pub mod ledger;
pub mod permutation;
pub mod request_source;
pub mod target;
pub mod worker;
