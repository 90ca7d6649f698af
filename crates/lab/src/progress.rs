//! Progress of a measurement, for an observer that shows it.

use crate::watch::Step;
use model::experiment::Standing;
use std::path::Path;
use std::time::Duration;

/// Progress of a measurement.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A service is starting, or being filled.
    Starting { service: &'a str },
    /// A file is being laid out.
    LayingOut {
        path: &'a Path,
        /// Bytes so far.
        done: u64,
        /// Bytes in total.
        total: u64,
    },
    /// A file is being read into the page cache.
    ReadingIn {
        path: &'a Path,
        /// Bytes so far.
        done: u64,
        /// Bytes in total.
        total: u64,
    },
    /// The machine is being measured without the workload.
    Background { elapsed: Duration, total: Duration },
    /// The workload runs.
    Running {
        /// Number of the phase or execution, from 0.
        number: usize,
        /// Number of phases or executions.
        count: usize,
        elapsed: Duration,
        /// Total time, if it is known.
        total: Option<Duration>,
        /// I/Os per second in the latest window.
        iops: Option<f64>,
    },
    /// A round of a comparison was completed.
    Comparing {
        rounds: usize,
        elapsed: Duration,
        budget: Duration,
        /// The comparison that is furthest from its precision.
        standing: Option<Standing>,
    },
    /// After the last of these, a round was completed that says where the difference is.
    Explaining { rounds: usize, elapsed: Duration, of: Duration },
    /// A point of a blast was measured, after this many rounds.
    Packets { rounds: u32, of: u32, point: &'a str, delivered_per_second: f64 },
    /// What is prepared for guests, or how many of them are done.
    Guests(&'a str),
    /// What a measured command printed for people.
    Printed(&'a str),
}

/// Receives the progress of a measurement, several times a second.
pub type Observer<'a> = &'a mut dyn FnMut(Progress);

/// I/Os per second in the latest window.
pub fn iops(step: &Step) -> Option<f64> {
    let (before, after) = step.window;
    let seconds = after.at_nanos.since(before.at_nanos).seconds();
    let ios = after.done?.ios.saturating_sub(before.done?.ios);
    (seconds > 0.0).then_some(ios as f64 / seconds)
}
