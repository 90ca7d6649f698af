//! How a user asks a measurement to end: Ctrl-C, or another signal.

use std::sync::atomic::{AtomicU32, Ordering};

/// How often the user has asked for the end, by whoever hears of it; those who measure look at it.
#[derive(Debug, Default)]
pub struct Interruption {
    asked: AtomicU32,
}

impl Interruption {
    /// The user asks, once more. How often that was, this time included.
    pub fn ask(&self) -> u32 {
        self.asked.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// End, and keep what was measured.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) > 0
    }

    /// The user does not want to wait for what was asked to end and has not.
    pub fn is_insisted(&self) -> bool {
        self.asked.load(Ordering::Relaxed) > 1
    }
}
