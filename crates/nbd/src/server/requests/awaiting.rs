//! What takes the storage any time and cannot be cut into pieces. The connection waits for a worker; the thread does not.

use super::Requests;
use crate::backends::{Extent, Outcome};
use sys::send_batch::SendBatch;

/// What a worker does for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Makes all writes durable that were completed before.
    Flush,
    /// Finds the extents of a range, `most` at most.
    FindExtents {
        /// Start of the range.
        offset: u64,
        length: u32,
        /// Limit on the extents.
        most: usize,
    },
}

/// The result of [`Work`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    Flushed(Outcome),
    /// Of a search for extents.
    Found(Vec<Extent>),
}

/// A request that a worker has to finish. Later requests of the connection wait behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Awaiting {
    cookie: u64,
    work: Work,
    /// Whether the work has been taken.
    taken: bool,
}

impl Awaiting {
    pub(super) fn new(cookie: u64, work: Work) -> Self {
        Self { cookie, work, taken: false }
    }
}

impl Requests {
    /// The work for a worker, once for each request that needs any.
    pub fn take_work(&mut self) -> Option<Work> {
        let awaiting = self.awaiting.as_mut().filter(|awaiting| !awaiting.taken)?;
        awaiting.taken = true;
        Some(awaiting.work)
    }

    /// Whether a worker has to finish a request.
    pub fn is_awaiting(&self) -> bool {
        self.awaiting.is_some()
    }

    /// Replies to the request that the worker has finished.
    pub fn resume(&mut self, done: Done, batch: &mut SendBatch) {
        let Some(Awaiting { cookie, .. }) = self.awaiting.take() else { return };
        match done {
            Done::Flushed(outcome) => self.reply_simply(cookie, outcome, batch),
            Done::Found(extents) => Self::put_extents(cookie, &extents, batch),
        }
    }
}
