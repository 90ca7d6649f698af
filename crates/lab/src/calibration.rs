//! The rate of the time-stamp counter.

use std::time::Duration;
use sys::clock::Instant;

/// The rate of the time-stamp counter, measured against the kernel's clock.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    begun: Instant,
}

impl Calibration {
    /// Reads both clocks.
    pub fn begin() -> Self {
        Self { begun: Instant::now() }
    }

    /// Waits until it has taken at least this time.
    pub fn wait(&self, shortest: Duration) {
        let taken = Duration::from_nanos(Instant::now().nanos.saturating_sub(self.begun.nanos));
        std::thread::sleep(shortest.saturating_sub(taken));
    }

    /// The rate since then, in hertz, and its source.
    pub fn end(&self) -> (f64, String) {
        let hertz = Instant::now().hertz_since(self.begun).unwrap_or(1e9);
        (hertz, "measured against CLOCK_MONOTONIC".to_owned())
    }
}
