//! A meter that is read once for all CPUs, as often as its cost allows.
//!
//! Reading /proc/timer_list takes 130 µs on 2 CPUs and grows with them: what measures must not be most of what is measured.

use super::MachineMeter;
use model::meter::Meter;
use model::record::{Clocks, Mode};
use model::unit::Nanos;
use sys::clock::monotonic_nanos;

/// A reading is due when this many times what the latest one took have passed: it stays below a 500th of one CPU's time.
const SHARE: u64 = 500;

/// The meter, and what reading it takes.
pub(super) struct Paced {
    pub(super) meter: Meter,
    source: Box<dyn MachineMeter>,
    latest: Option<Latest>,
    /// How long a reading takes, once somebody asked.
    cost: Option<Nanos>,
}

/// The latest reading: what followed it, when it was, how long it took.
struct Latest {
    mode: Mode,
    at: Nanos,
    took: Nanos,
}

impl Paced {
    pub(super) fn new(meter: Meter, source: Box<dyn MachineMeter>) -> Self {
        Self { meter, source, latest: None, cost: None }
    }

    /// Whether it is to be read at a snapshot now, which `mode` follows.
    pub(super) fn is_due(&self, mode: Mode, now: Nanos) -> bool {
        let due =
            |latest: &Latest| latest.mode != mode || now.since(latest.at).0 >= latest.took.0.saturating_mul(SHARE);
        self.latest.as_ref().is_none_or(due)
    }

    /// Whether it can be read at both ends of slices of this length.
    pub(super) fn fits(&mut self, slice: Nanos) -> bool {
        /// Of a slice, for reading at its two ends.
        const MOST: u64 = 50;
        self.cost().is_some_and(|cost| cost.0.saturating_mul(MOST) <= slice.0)
    }

    /// Reads it; `at` is when the snapshot began that `mode` follows.
    pub(super) fn read(&mut self, mode: Mode, at: Nanos) -> Option<Clocks> {
        let began = Nanos(monotonic_nanos());
        let read = self.source.read()?;
        self.latest = Some(Latest { mode, at, took: Nanos(monotonic_nanos()).since(began) });
        Some(read)
    }

    /// What is watched next begins anew, and its first snapshot is to have this meter.
    pub(super) fn begin_anew(&mut self) {
        self.latest = None;
    }

    /// How long reading it takes: the fastest of some readings, because a slow one was held up.
    fn cost(&mut self) -> Option<Nanos> {
        const READINGS: usize = 5;
        if self.cost.is_none() {
            let took = |_| {
                let began = Nanos(monotonic_nanos());
                self.source.read().map(|_| Nanos(monotonic_nanos()).since(began))
            };
            self.cost = (0..READINGS).filter_map(took).min();
        }
        self.cost
    }
}
