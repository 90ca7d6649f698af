//! Writes: a payload goes to the storage as it arrives, in any pieces.

use super::{Requests, is_durable};
use crate::backends::{Backend, Outcome};
use crate::filters::{CHECKSUM_BYTES, Checksum};
use crate::wire::{Request, WireError};
use sys::send_batch::SendBatch;

/// A write whose payload is arriving.
#[derive(Debug)]
pub(super) struct Writing {
    cookie: u64,
    offset: u64,
    /// Payload bytes that have not arrived.
    pub(super) rest: u32,
    /// Flush before the reply (FUA).
    durable: bool,
    outcome: Outcome,
    /// Checksum of the payload so far, if it is to be verified.
    sum: Option<Checksum>,
}

impl Requests {
    /// Writes the payload bytes in `input`; returns what follows them.
    pub(super) fn write_on<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        if self.backend.may_wait() {
            self.may_be_slow();
        }
        let Some(writing) = &mut self.writing else { return input };
        let (now, later) = input.split_at(input.len().min(writing.rest as usize));
        writing.take(now, &self.backend);
        later
    }

    /// Whether the payload is complete, including its checksum, which is consumed from `input` and verified.
    pub(super) fn has_payload(&mut self, input: &mut &[u8]) -> bool {
        let Some(writing) = &mut self.writing else { return true };
        if writing.rest > 0 {
            return false;
        }
        if let Some(sum) = writing.sum {
            let Some((found, later)) = input.split_first_chunk::<CHECKSUM_BYTES>() else { return false };
            *input = later;
            writing.outcome = writing.outcome.and(if *found == sum.bytes() { Ok(()) } else { Err(WireError::EIO) });
        }
        true
    }

    /// Finishes a write whose payload is complete, and replies.
    pub(super) fn end_writing(&mut self, batch: &mut SendBatch) {
        let Some(writing) = self.writing.take() else { return };
        self.finish(writing.cookie, writing.outcome, writing.durable, batch);
    }
}

impl Writing {
    /// A write that is allowed or refused by `outcome`. The payload of a refused write is skipped.
    pub(super) fn new(request: &Request, outcome: Outcome, checksums: bool) -> Self {
        Self {
            cookie: request.cookie,
            offset: request.offset,
            rest: request.length,
            durable: is_durable(request),
            outcome,
            sum: checksums.then(Checksum::default),
        }
    }

    /// The place of the rest (start and length), if it may be received in place. A payload with a checksum may not: it
    /// is summed before anyone else can change it. The place is within the storage's size, which fits in a usize.
    pub(super) fn in_place(&self) -> Option<(usize, usize)> {
        (self.outcome.is_ok() && self.sum.is_none()).then_some((self.offset as usize, self.rest as usize))
    }

    /// Takes the next payload bytes.
    fn take(&mut self, data: &[u8], backend: &Backend) {
        if let Some(sum) = &mut self.sum {
            sum.add(data);
        }
        if self.outcome.is_ok() && !data.is_empty() {
            self.outcome = backend.write(self.offset, data);
        }
        self.pass(data.len());
    }

    /// Records that `count` payload bytes (at most `rest`) have been handled.
    pub(super) fn pass(&mut self, count: usize) {
        self.offset = self.offset.saturating_add(count as u64);
        self.rest -= count as u32;
    }
}
