//! Whose progress is read: a worker thread of iotoll, a command that iotoll starts, a process that runs already.

use super::amount::Counted;
use crate::error::Result;
use crate::probe::WorkerTask;
use model::plan::Access;
use std::time::Duration;

/// The subject of a recording.
pub(super) trait Subject {
    /// In words: "4 KiB sequential writes to /data/f, psync".
    fn words(&self) -> String;
    /// Its task, for probes of the worker.
    fn task(&self) -> WorkerTask;
    /// Where its amount is read. `access` chooses the directions of a foreign process.
    ///
    /// # Errors
    /// Refused, when its I/O cannot be seen.
    fn counted(&mut self, access: Access) -> Result<Counted>;
    /// Called now and then while it is recorded: finds what else belongs to it.
    fn look_around(&mut self) {}
    /// Lets it start, if it waits.
    fn begin(&mut self);
    /// Waits until it has ended by itself, or `timeout` has passed. Returns whether it has ended.
    fn wait(&mut self, timeout: Duration) -> bool;
    /// Ends it, if iotoll started it.
    fn end(self: Box<Self>) -> Ending;
}

/// How a subject ended.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// I/Os that it made, if it counts them.
    pub ios: Option<u64>,
}
