//! Where a write's payload waits until it is whole, or long enough, because its storage wants whole blocks: it arrives cut anywhere.

use crate::backend::{Backend, Outcome};
use crate::wire::WireError;
use sys::buffer::AlignedBuffer;

/// A multiple of every block.
const BYTES: usize = 128 << 10;

/// Memory for that, which begins where a page does; there is none before it is needed.
#[derive(Debug, Default)]
pub(super) struct Staging {
    buffer: Option<AlignedBuffer>,
    there: usize,
}

impl Staging {
    /// These bytes follow, the first of which belongs to `offset`; `last`: no more do.
    pub(super) fn take(&mut self, mut offset: u64, mut data: &[u8], last: bool, backend: &Backend) -> Outcome {
        let Self { buffer, there } = self;
        let buffer = match buffer {
            Some(buffer) => buffer,
            None => {
                let made = AlignedBuffer::zeroed(BYTES).map_err(|error| WireError::from_system(&error))?;
                buffer.insert(made)
            }
        };
        loop {
            let (now, later) = data.split_at(data.len().min(BYTES - *there));
            buffer.get_mut(*there..*there + now.len()).unwrap_or_default().copy_from_slice(now);
            *there += now.len();
            offset += now.len() as u64;
            data = later;
            if *there == BYTES || (last && data.is_empty()) {
                let whole = buffer.get(..*there).unwrap_or_default();
                let begin = offset - std::mem::take(there) as u64;
                backend.write(begin, whole)?;
            }
            if data.is_empty() {
                return Ok(());
            }
        }
    }

    /// What waits is not wanted any more.
    pub(super) fn forget(&mut self) {
        self.there = 0;
    }
}
