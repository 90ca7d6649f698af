//! A command that is measured, and how its I/Os are counted.
//!
//! It runs unchanged; a program that can report its I/O count in JSON gets the flag for that. /proc/PID/io is
//! not used: it misses I/O by io_uring.

mod counter;
mod execution;
mod fio;
mod iperf3;
mod output_parser;
mod running;

pub use counter::Counter;
pub use execution::{Executed, Surroundings, execute, set_apart};
pub use output_parser::{Output, Prepared, prepared};
pub use output_parser::{counted_by, reports};

use std::time::Duration;

/// A command, and where its I/O count comes from.
#[derive(Clone, Debug)]
pub struct CommandPlan {
    /// Program and arguments; not empty.
    pub command: Vec<String>,
    /// How I/Os are counted.
    pub count: Count,
    pub repeat: u32,
    /// Whether the command's standard output goes to our standard error, or nowhere. Never to ours, which contains only the result.
    pub printed: bool,
    /// What the command shares with iotoll, and how long it may live.
    pub custody: Isolation,
}

/// What a command shares with iotoll, and how long it may live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// It shares our standard input, standard error and process group, has no time limit, and may leave processes
    /// running.
    Shared,
    /// It has no standard input and a process group of its own. Of its standard error only the last line is kept, for
    /// the error message. Its processes are killed when it ends, or after this time.
    Alone { longest: Duration },
}

/// How the I/Os of a command are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    /// By the program itself, if it is one that can: fio, iperf3.
    Program,
    /// Stated by the user, for each execution.
    Stated {
        ios: Option<u64>,
        bytes: Option<u64>,
    },
    Kernel(Counter),
}
