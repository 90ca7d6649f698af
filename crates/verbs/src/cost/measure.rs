//! Measures jobs (`iotoll run`) and commands (`iotoll cost`) into the same kind of record.

pub mod command;
pub mod jobs;
mod sheet;
