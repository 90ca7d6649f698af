//! A file past the page cache: O_DIRECT, which wants whole blocks in memory that begins where a block does.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};
use sys::buffer::AlignedBuffer;
use sys::send_batch::SendBatch;

/// Read at one go.
const PIECE: usize = 128 << 10;
/// What nearly every device takes; the kernel says what this one does since Linux 6.1.
const USUAL_BLOCK: u64 = 4096;

/// The way past the cache.
#[derive(Debug)]
pub(super) struct Direct {
    file: File,
    /// Offsets, lengths and addresses are multiples of this.
    block: u64,
    /// As many as there were threads that read at one time; a page's beginning suits every block up to a page.
    buffers: Mutex<Vec<AlignedBuffer>>,
}

impl Direct {
    /// A file that was opened with O_DIRECT.
    pub(super) fn new(file: File) -> Self {
        let block = sys::device::direct_alignment(&file).filter(|block| *block <= USUAL_BLOCK);
        Self { file, block: block.unwrap_or(USUAL_BLOCK), buffers: Mutex::default() }
    }

    /// Whether a range can go this way.
    pub(super) fn takes(&self, offset: u64, length: u64) -> bool {
        offset.is_multiple_of(self.block) && length.is_multiple_of(self.block)
    }

    /// Whether these bytes can.
    pub(super) fn takes_bytes(&self, offset: u64, data: &[u8]) -> bool {
        self.takes(offset, data.len() as u64) && (data.as_ptr().addr() as u64).is_multiple_of(self.block)
    }

    /// Puts a range that it takes at the end of `batch`; when it fails, a part may be there.
    pub(super) fn read(&self, offset: u64, length: usize, batch: &mut SendBatch) -> io::Result<()> {
        let mut buffer = match self.lock().pop() {
            Some(buffer) => buffer,
            None => AlignedBuffer::zeroed(PIECE)?,
        };
        let outcome = self.read_through(&mut buffer, offset, length, batch);
        self.lock().push(buffer);
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

    /// Puts bytes that it takes at `offset`.
    pub(super) fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<AlignedBuffer>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_blocks_where_blocks_begin_and_nothing_else() {
        let direct = Direct { file: tempfile::tempfile().unwrap(), block: 512, buffers: Mutex::default() };
        let memory = AlignedBuffer::zeroed(4096).unwrap();
        for (offset, range, taken) in
            [(0, 0..512, true), (512, 512..1536, true), (1, 0..512, false), (0, 0..511, false), (0, 1..513, false)]
        {
            assert_eq!(direct.takes_bytes(offset, &memory[range.clone()]), taken, "{offset} {range:?}");
        }
    }
}
