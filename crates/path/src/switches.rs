//! The techniques of the path, each a switch.

use std::time::Duration;

/// What both ends of a connection can do one way or another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// Payloads of at most so many bytes are copied behind their header; longer ones are sent from where they lie, where
    /// that is possible.
    pub pull_up: u32,
    /// How long, at most, more than the first message is waited for while there are several in flight. Zero: not at all.
    pub hold: Duration,
    /// For how long a message is looked for again and again before it is slept for. It burns what is measured, and saves
    /// the wake-up. Not while several are waited for.
    pub busy_poll: Duration,
}

impl Default for Switches {
    /// What holding is worth was measured (RESULTS.md). The pull-up's 2,048 bytes are a guess: where a gather becomes cheaper
    /// than a copy is not measured yet.
    fn default() -> Self {
        Self { pull_up: 2048, hold: Duration::from_micros(50), busy_poll: Duration::ZERO }
    }
}
