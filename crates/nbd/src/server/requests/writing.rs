//! Writes: the payload goes to the storage as it arrives, cut anywhere, or waits in a buffer where the storage wants whole blocks.

use super::{Requests, is_durable};
use crate::backends::{Backend, Direct, Outcome};
use crate::filters::crc::{CHECKSUM_BYTES, Checksum};
use crate::filters::delay::Layer;
use crate::wire::{Request, WireError, simple_reply};
use sys::buffer::AlignedBuffer;
use sys::send_batch::SendBatch;

/// A write whose payload is on its way.
#[derive(Debug)]
pub(super) struct Writing {
    cookie: u64,
    offset: u64,
    rest: u32,
    /// Durable before the reply (FUA).
    durable: bool,
    outcome: Outcome,
    /// Of what has come, where it is to be checked.
    sum: Option<Checksum>,
    blocks: BlockBuffer,
}

/// What has come of a payload and is not whole blocks yet; its memory is the backend's and there is some only within a direct write.
#[derive(Debug, Default)]
struct BlockBuffer {
    memory: Option<AlignedBuffer>,
    filled: usize,
}

impl Requests {
    /// Writes what has come of the payload; gives what follows it.
    pub(super) fn write_on<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        if self.backend.may_wait() {
            self.may_be_slow();
        }
        let Some(writing) = &mut self.writing else { return input };
        let (now, later) = input.split_at(input.len().min(writing.rest as usize));
        writing.take(now, &self.backend);
        later
    }

    /// Whether all of the payload has come, and its checksum, which is taken from `input`.
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

    /// Replies to a write whose payload is where it belongs.
    pub(super) fn end_writing(&mut self, batch: &mut SendBatch) {
        let Some(writing) = self.writing.take() else { return };
        let mut outcome = writing.outcome;
        if outcome.is_ok() {
            self.delay(Layer::Storage);
        }
        if writing.durable && outcome.is_ok() {
            self.may_be_slow();
            outcome = self.backend.flush();
        }
        self.counters.errors += u64::from(outcome.is_err());
        batch.put(&simple_reply(writing.cookie, outcome.err()));
    }
}

impl Writing {
    /// A write that `outcome` allows or refuses: after an error its payload is read over.
    pub(super) fn new(request: &Request, outcome: Outcome, checksums: bool) -> Self {
        Self {
            cookie: request.cookie,
            offset: request.offset,
            rest: request.length,
            durable: is_durable(request),
            outcome,
            sum: checksums.then(Checksum::default),
            blocks: BlockBuffer::default(),
        }
    }

    /// Bytes of the payload that have not come.
    pub(super) fn rest(&self) -> u32 {
        self.rest
    }

    /// Where the rest belongs, begin and length, if it may be received to there: what is summed is summed before anybody else can
    /// change it. It is within the storage's size, which is a usize.
    pub(super) fn in_place(&self) -> Option<(usize, usize)> {
        (self.outcome.is_ok() && self.sum.is_none()).then_some((self.offset as usize, self.rest as usize))
    }

    /// The next bytes of the payload.
    fn take(&mut self, data: &[u8], backend: &Backend) {
        if let Some(sum) = &mut self.sum {
            sum.add(data);
        }
        if self.outcome.is_ok() && !data.is_empty() {
            self.outcome = match backend.direct() {
                Some(direct) => {
                    let last = data.len() == self.rest as usize;
                    self.blocks.take(self.offset, data, last, backend, direct)
                }
                None => backend.write(self.offset, data),
            };
        }
        self.pass(data.len());
    }

    /// So many bytes, at most `rest`, are where they belong.
    pub(super) fn pass(&mut self, count: usize) {
        self.offset = self.offset.saturating_add(count as u64);
        self.rest -= count as u32;
    }
}

impl BlockBuffer {
    /// These bytes follow, the first of which belongs to `offset`; `last`: no more do. `direct` is `backend`'s.
    fn take(&mut self, offset: u64, data: &[u8], last: bool, backend: &Backend, direct: &Direct) -> Outcome {
        let mut memory = match self.memory.take() {
            Some(memory) => memory,
            None => direct.borrow().map_err(|error| WireError::from_system(&error))?,
        };
        let outcome = self.fill(&mut memory, offset, data, last, backend);
        if last || outcome.is_err() {
            self.filled = 0;
            direct.give_back(memory);
        } else {
            self.memory = Some(memory);
        }
        outcome
    }

    fn fill(&mut self, memory: &mut [u8], mut offset: u64, mut data: &[u8], last: bool, backend: &Backend) -> Outcome {
        while !data.is_empty() {
            let (now, later) = data.split_at(data.len().min(memory.len() - self.filled));
            memory.get_mut(self.filled..self.filled + now.len()).unwrap_or_default().copy_from_slice(now);
            self.filled += now.len();
            offset += now.len() as u64;
            data = later;
            if self.filled == memory.len() || (last && data.is_empty()) {
                let whole = memory.get(..self.filled).unwrap_or_default();
                let begin = offset - std::mem::take(&mut self.filled) as u64;
                backend.write(begin, whole)?;
            }
        }
        Ok(())
    }
}
