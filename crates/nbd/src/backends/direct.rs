//! Direct I/O to a file (O_DIRECT), which requires whole blocks and page-aligned memory.

use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::{Mutex, MutexGuard, PoisonError};
use sys::buffer::AlignedBuffer;
use sys::send_batch::SendBatch;

/// Bytes read or written per call: a multiple of every block size.
const PIECE: usize = 128 << 10;
/// Smallest unit of direct I/O, even if the device allows smaller ones: the page cache contains whole pages, and direct
/// and cached I/O to one page at the same time are coherent only if the file system ensures it (open(2) advises against
/// mixing them).
const PAGE: u64 = 4096;
/// Unused buffers kept for reuse.
const KEPT: usize = 64;

/// A file opened for direct I/O.
#[derive(Debug)]
pub(crate) struct Direct {
    file: File,
    /// Block size: offsets and lengths are multiples of it; at least a page.
    block: u64,
    buffers: Mutex<Vec<AlignedBuffer>>,
}

impl Direct {
    /// Opens a file a second time, with O_DIRECT.
    pub(super) fn to(file: &File, writable: bool) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true).write(writable).custom_flags(OFlags::DIRECT.bits().cast_signed());
        // The same file even if its name now refers to another.
        let direct = options.open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let block = match sys::device::direct_alignment(&direct)? {
            Some(block) if block > PIECE as u64 => return Err(io::ErrorKind::InvalidInput.into()),
            Some(block) => block.max(PAGE),
            None => PAGE,
        };
        Ok(Self { file: direct, block, buffers: Mutex::default() })
    }

    /// Whether a range is aligned for direct I/O.
    pub(super) fn takes(&self, offset: u64, length: u64) -> bool {
        offset.is_multiple_of(self.block) && length.is_multiple_of(self.block)
    }

    /// Whether the range and the memory of these bytes are aligned for direct I/O.
    pub(super) fn takes_bytes(&self, offset: u64, data: &[u8]) -> bool {
        self.takes(offset, data.len() as u64) && (data.as_ptr().addr() as u64).is_multiple_of(PAGE)
    }

    /// Appends an aligned range to `batch`; on failure, a part may have been appended.
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

    /// Writes aligned bytes at `offset`; on failure, a part may have been written.
    pub(super) fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }

    /// Borrows a page-aligned buffer of [`PIECE`] bytes.
    pub(crate) fn borrow(&self) -> io::Result<AlignedBuffer> {
        match self.lock().pop() {
            Some(buffer) => Ok(buffer),
            None => AlignedBuffer::zeroed(PIECE),
        }
    }

    /// Returns a buffer.
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
    fn only_aligned_whole_blocks_use_direct_io() {
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
