//! What the measured loop does next.

use crate::error::Error;
use crate::workload::request_source::Request;
use std::time::Duration;

/// The next step of the loop.
pub(super) enum Next {
    Issue(Request),
    /// Wait for this time, with nothing in flight.
    Pause(Rest),
    /// Sync the files that are due, with nothing in flight.
    Sync,
    /// Open this file, whose request is held.
    Open(u32),
    /// Go on when nothing is in flight.
    Settle,
    /// The ramp has ended: start counting.
    Count,
    /// End the job with this error, with nothing in flight.
    Fail(Box<Error>),
    Done,
}

/// A pause: the CPU is kept busy first, then the thread sleeps.
pub(super) struct Rest {
    pub busy_until: u64,
    pub duration: Duration,
}
