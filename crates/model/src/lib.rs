//! What iotoll measures and what follows from it, as data and pure functions.
//!
//! A [`plan`] says what to measure, a [`record`] contains what was read, and [`study`] turns a record into a
//! [`finding`]. This crate does no I/O, reads no clock and starts no thread: everything can be recomputed from a saved
//! record.

pub mod account;
pub mod doctor;
pub mod elided_list;
pub mod events;
pub mod experiment;
pub mod experiment_kind;
pub mod explained;
pub mod finding;
pub mod fio_report;
pub mod group_limit;
pub mod injected;
pub mod kind;
pub mod limit;
pub mod meter;
pub mod number;
pub mod origin;
pub mod page_cache;
pub mod placement;
pub mod plan;
pub mod probe;
pub mod profile;
pub mod reading;
pub mod record;
pub mod scaling;
pub mod slice;
pub mod storage;
pub mod stored;
pub mod study;
pub mod toml_file;
pub mod unit;
pub mod warning;

pub use finding::LatencyBins;
pub use record::ThreadUsage;
pub use stats::{self, histogram};
