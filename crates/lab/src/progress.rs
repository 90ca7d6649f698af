//! How far a measurement has come, for an observer that shows it.

use crate::watch::Step;
use std::path::Path;
use std::time::Duration;

/// How far a measurement has come.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A file is being written before it is read.
    LayingOut {
        /// Which.
        path: &'a Path,
        /// Bytes so far.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// A file is being read into the page cache.
    ReadingIn {
        /// Which.
        path: &'a Path,
        /// Bytes so far.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// The machine is being watched without the workload.
    Background {
        /// How long so far.
        elapsed: Duration,
        /// How long in all.
        total: Duration,
    },
    /// The workload runs.
    Running {
        /// Phase or execution, from 0.
        number: usize,
        /// How many there are.
        count: usize,
        /// How long so far.
        elapsed: Duration,
        /// How long in all, when that is known.
        total: Option<Duration>,
        /// I/Os per second in the latest window.
        iops: Option<f64>,
    },
}

/// Told how far a measurement has come, several times a second.
pub type Observer<'a> = &'a mut dyn FnMut(Progress);

/// I/Os per second in the latest window.
pub(crate) fn iops(step: &Step) -> Option<f64> {
    let (before, after) = step.window;
    let seconds = after.at_nanos.since(before.at_nanos).seconds();
    let ios = after.done?.ios.saturating_sub(before.done?.ios);
    (seconds > 0.0).then_some(ios as f64 / seconds)
}
