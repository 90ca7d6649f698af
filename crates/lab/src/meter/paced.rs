//! A meter that is read once for all CPUs, as often as its cost allows.
//!
//! Reading /proc/timer_list takes 130 µs on 2 CPUs and more on larger machines: reading must not dominate the
//! measurement.

use super::MachineMeter;
use model::meter::Meter;
use model::record::{Clocks, Mode};
use model::unit::Nanos;
use sys::clock::monotonic_nanos;

/// A reading is due after this many times the duration of the latest one: reading takes less than a 500th of one CPU's
/// time.
const SHARE: u64 = 500;

/// The meter and the cost of reading it.
pub(super) struct Paced {
    pub(super) meter: Meter,
    source: Box<dyn MachineMeter>,
    latest: Option<Latest>,
    /// Duration of a reading, once measured.
    cost: Option<Nanos>,
}

/// The latest reading: the mode after it, its time, and its duration.
struct Latest {
    mode: Mode,
    at: Nanos,
    took: Nanos,
}

impl Paced {
    pub(super) fn new(meter: Meter, source: Box<dyn MachineMeter>) -> Self {
        Self { meter, source, latest: None, cost: None }
    }

    /// Whether to read it at a snapshot now; `mode` follows the snapshot.
    pub(super) fn is_due(&self, mode: Mode, now: Nanos) -> bool {
        let due =
            |latest: &Latest| latest.mode != mode || now.since(latest.at).0 >= latest.took.0.saturating_mul(SHARE);
        self.latest.as_ref().is_none_or(due)
    }

    /// Whether it can be read at both ends of slices of this length.
    pub(super) fn fits(&mut self, slice: Nanos) -> bool {
        /// Readings at the two ends may take one part in this many of a slice.
        const MOST: u64 = 50;
        self.cost().is_some_and(|cost| cost.0.saturating_mul(MOST) <= slice.0)
    }

    /// Reads it; `at` is the start of the snapshot, `mode` follows it.
    pub(super) fn read(&mut self, mode: Mode, at: Nanos) -> Option<Clocks> {
        let began = Nanos(monotonic_nanos());
        let read = self.source.read()?;
        self.latest = Some(Latest { mode, at, took: Nanos(monotonic_nanos()).since(began) });
        Some(read)
    }

    /// Starts a new stretch, whose first snapshot must include this meter.
    pub(super) fn begin_anew(&mut self) {
        self.latest = None;
    }

    /// Duration of a reading: the fastest of several, because slower ones were delayed.
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
