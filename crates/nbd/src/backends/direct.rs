//! A file past the page cache: O_DIRECT, which wants whole blocks in memory that begins where a page does.

use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::{Mutex, MutexGuard, PoisonError};
use sys::buffer::AlignedBuffer;
use sys::send_batch::SendBatch;

/// Read or written at one go: a multiple of every block.
const PIECE: usize = 128 << 10;
/// Nothing smaller goes this way, even where the device would take it: a page is in the cache as a whole or not at all, and what two ways do to
/// one page at a time agrees only where the file system sees to it (open(2) asks not to mix them).
const PAGE: u64 = 4096;
/// Buffers that are kept while nobody uses them.
const KEPT: usize = 64;

/// The way past the cache.
#[derive(Debug)]
pub(crate) struct Direct {
    file: File,
    /// Offsets and lengths are multiples of this, and a page at least.
    block: u64,
    buffers: Mutex<Vec<AlignedBuffer>>,
}

impl Direct {
    /// A second way to an open file.
    pub(super) fn to(file: &File, writable: bool) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true).write(writable).custom_flags(OFlags::DIRECT.bits().cast_signed());
        // The very file, whatever its name leads to by now.
        let direct = options.open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let block = match sys::device::direct_alignment(&direct)? {
            Some(block) if block > PIECE as u64 => return Err(io::ErrorKind::InvalidInput.into()),
            Some(block) => block.max(PAGE),
            None => PAGE,
        };
        Ok(Self { file: direct, block, buffers: Mutex::default() })
    }

    /// Whether a range can go this way.
    pub(super) fn takes(&self, offset: u64, length: u64) -> bool {
        offset.is_multiple_of(self.block) && length.is_multiple_of(self.block)
    }

    /// Whether these bytes can.
    pub(super) fn takes_bytes(&self, offset: u64, data: &[u8]) -> bool {
        self.takes(offset, data.len() as u64) && (data.as_ptr().addr() as u64).is_multiple_of(PAGE)
    }

    /// Puts a range that it takes at the end of `batch`; when it fails, a part may be there.
    pub(super) fn read(&self, offset: u64, length: usize, batch: &mut SendBatch) -> io::Result<()> {
        let mut buffer = self.borrow()?;
        let outcome = self.read_through(&mut buffer, offset, length, batch);
        self.give_back(buffer);
        outcome
    }

    fn read_through(&self, buffer: &mut [u8], offset: u64, length: usize, batch: &mut SendBatch) -> io::Result<()> {
        let mut done = 0;
        while done < length {
            let (piece, _) = buffer.split_at_mut((length - done).min(PIECE));
            self.file.read_exact_at(piece, offset + done as u64)?;
            batch.put(piece);
            done += piece.len();
        }
        Ok(())
    }

    /// Puts bytes that it takes at `offset`; when it fails, a part may be there.
    pub(super) fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }

    /// [`PIECE`] bytes of memory that begin where a page does.
    pub(crate) fn borrow(&self) -> io::Result<AlignedBuffer> {
        match self.lock().pop() {
            Some(buffer) => Ok(buffer),
            None => AlignedBuffer::zeroed(PIECE),
        }
    }

    /// They are not used any more.
    pub(crate) fn give_back(&self, buffer: AlignedBuffer) {
        let mut buffers = self.lock();
        if buffers.len() < KEPT {
            buffers.push(buffer);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<AlignedBuffer>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_blocks_where_pages_begin_and_nothing_else() {
        let direct = Direct { file: tempfile::tempfile().unwrap(), block: PAGE, buffers: Mutex::default() };
        let memory = direct.borrow().unwrap();
        for (offset, range, taken) in [
            (0, 0..4096, true),
            (4096, 4096..12_288, true),
            (512, 0..4096, false),
            (0, 0..4095, false),
            (0, 512..4608, false),
        ] {
            assert_eq!(direct.takes_bytes(offset, &memory[range.clone()]), taken, "{offset} {range:?}");
        }
        (0..2 * KEPT).for_each(|_| direct.give_back(AlignedBuffer::zeroed(PIECE).unwrap()));
        assert_eq!(direct.lock().len(), KEPT);
    }
}
