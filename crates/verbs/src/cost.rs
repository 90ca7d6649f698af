//! Runs of jobs and of commands.

pub mod page;
