//! Stopping workers, from this process or another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use sys::shared_words::SharedWords;

/// Shared by the workers of a phase: whether to stop.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    /// The stop flag of another process, in shared memory.
    shared: Option<Arc<SharedWords>>,
}

/// The word of shared memory that asks to stop.
pub const STOP_SIGNAL: usize = 1;

impl Control {
    /// Workers that another process can stop.
    pub fn shared(words: Arc<SharedWords>) -> Self {
        Self { stop: AtomicBool::new(false), shared: Some(words) }
    }

    /// Asks every worker to end after its I/Os in flight.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the workers were asked to end.
    #[inline(always)]
    pub fn stopped(&self) -> bool {
        match &self.shared {
            None => self.stop.load(Ordering::Relaxed),
            Some(words) => words.signals().get(STOP_SIGNAL).is_some_and(|stop| stop.load(Ordering::Relaxed) != 0),
        }
    }

    /// Sleeps until `duration` has passed or the workers were asked to end.
    pub(super) fn pause(&self, duration: Duration) {
        /// Longest reaction time to a stop.
        const POLL_INTERVAL: Duration = Duration::from_millis(50);
        let mut left = duration;
        while !left.is_zero() && !self.stopped() {
            let nap = left.min(POLL_INTERVAL);
            std::thread::sleep(nap);
            left -= nap;
        }
    }
}
