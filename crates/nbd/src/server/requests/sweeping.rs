//! Zeroing, trimming and prefetching: a range piece by piece. Between pieces, other clients may have their turn.

use super::{Requests, is_durable};
use crate::backends::{Backend, Piece, Zeroing};
use crate::filters::delay::Layer;
use crate::wire::{Command, Request, WireError, command_flag};
use sys::send_batch::SendBatch;

/// A request for a range that is partly done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweeping {
    request: Request,
    /// Bytes done, from the start of the range.
    done: u32,
}

impl Requests {
    pub(super) fn begin_sweeping(&mut self, request: &Request) {
        self.delay(Layer::Storage);
        self.sweeping = Some(Sweeping { request: *request, done: 0 });
    }

    /// Does the next piece. Behind the last one it replies, or waits until the range is durable.
    pub(super) fn sweep_on(&mut self, batch: &mut SendBatch) {
        self.may_be_slow();
        let Some(mut sweeping) = self.sweeping.take() else { return };
        let request = sweeping.request;
        match sweeping.next_piece(&self.backend) {
            Ok(()) if sweeping.done < request.length => self.sweeping = Some(sweeping),
            Ok(()) if is_durable(&request) && sweeping.changes_storage() => self.flush(request.cookie, batch),
            outcome => self.reply(&request, outcome, batch),
        }
    }
}

impl Sweeping {
    /// Whether the storage is changed, and not only prefetched.
    pub(super) fn changes_storage(&self) -> bool {
        self.request.command != Command::Cache
    }

    fn next_piece(&mut self, backend: &Backend) -> Result<(), WireError> {
        let rest = self.request.length.saturating_sub(self.done);
        let piece = self.sweep(backend, self.request.offset.saturating_add(u64::from(self.done)), rest)?;
        // The range is not empty, so the end is reached.
        self.done += piece.clamp(1, rest.max(1));
        Ok(())
    }

    fn sweep(&self, backend: &Backend, offset: u64, length: u32) -> Piece {
        match self.request.command {
            Command::Cache => backend.cache(offset, length),
            Command::Trim => backend.trim(offset, length),
            Command::WriteZeroes => {
                let asked = |flag: u16| self.request.flags & flag != 0;
                let how = Zeroing { allocated: asked(command_flag::NO_HOLE), fast: asked(command_flag::FAST_ZERO) };
                backend.zero(offset, length, how)
            }
            _ => Err(WireError::EINVAL),
        }
    }
}
