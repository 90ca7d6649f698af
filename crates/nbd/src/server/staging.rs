//! Where a write's payload waits until it is whole, or long enough, because its storage wants whole blocks: it arrives cut anywhere.

use crate::backend::{Backend, Direct, Outcome};
use crate::wire::WireError;
use sys::buffer::AlignedBuffer;

/// Memory for that; there is some only within a write.
#[derive(Debug, Default)]
pub(super) struct Staging {
    buffer: Option<AlignedBuffer>,
    there: usize,
}

impl Staging {
    /// These bytes follow, the first of which belongs to `offset`; `last`: no more do. `direct` is `backend`'s.
    pub(super) fn take(
        &mut self,
        mut offset: u64,
        mut data: &[u8],
        last: bool,
        backend: &Backend,
        direct: &Direct,
    ) -> Outcome {
        let Self { buffer, there } = self;
        let memory = match buffer {
            Some(buffer) => buffer,
            None => buffer.insert(direct.borrow().map_err(|error| WireError::from_system(&error))?),
        };
        loop {
            let (now, later) = data.split_at(data.len().min(memory.len() - *there));
            memory.get_mut(*there..*there + now.len()).unwrap_or_default().copy_from_slice(now);
            *there += now.len();
            offset += now.len() as u64;
            data = later;
            if *there == memory.len() || (last && data.is_empty()) {
                let whole = memory.get(..*there).unwrap_or_default();
                let begin = offset - std::mem::take(there) as u64;
                backend.write(begin, whole)?;
            }
            if data.is_empty() {
                break;
            }
        }
        if last {
            self.forget(direct);
        }
        Ok(())
    }

    /// What waits is not wanted any more.
    pub(super) fn forget(&mut self, direct: &Direct) {
        self.there = 0;
        if let Some(buffer) = self.buffer.take() {
            direct.give_back(buffer);
        }
    }
}
