//! A file or a block device as a storage: translates reads, writes, flushes, zeroing, and extents into system calls.
//! Direct I/O (O_DIRECT) requires whole blocks and page-aligned memory.

use super::{Outcome, Piece, RELEASED_AT_ONCE, piece};
use crate::lock;
use crate::wire::WireError;
use rustix::fs::{FallocateFlags, OFlags};
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::{Arc, Mutex, OnceLock};
use sys::buffer::AlignedBuffer;
use sys::byte_store::MappedFile;
use sys::send_batch::SendBatch;

/// Zeros to write if the file system cannot make any.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
/// Most bytes of zeros that are written before other clients may have their turn: about a millisecond in memory.
const WRITTEN_AT_ONCE: u32 = 512 << 10;
/// An open file.
#[derive(Debug)]
pub struct FileBackend {
    pub(super) file: Arc<File>,
    pub(super) size: u64,
    /// Direct I/O, if requested.
    pub(super) direct: Option<Direct>,
    /// The mapping from which pages are sent, if requested.
    pub(super) mapping: Option<Arc<MappedFile>>,
    /// The error of the first failed flush: the kernel reports a failed write-back once and then treats the data as
    /// written.
    lost: OnceLock<WireError>,
    /// Held by a test as long as a flush is to take.
    #[cfg(test)]
    pub(super) gate: Arc<std::sync::Mutex<()>>,
}

impl FileBackend {
    pub(super) fn new(mut file: File) -> io::Result<Self> {
        // Seek also works for a block device, whose metadata report size 0.
        let size = file.seek(SeekFrom::End(0))?;
        Ok(Self {
            file: Arc::new(file),
            size,
            direct: None,
            mapping: None,
            lost: OnceLock::new(),
            #[cfg(test)]
            gate: Arc::default(),
        })
    }

    /// Maps the file if possible.
    pub(super) fn mapped(self) -> Self {
        let mapping = usize::try_from(self.size).ok().and_then(|length| MappedFile::new(&self.file, length).ok());
        Self { mapping: mapping.map(Arc::new), ..self }
    }

    /// Uses direct I/O where ranges allow it.
    pub(super) fn direct_io(self) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&self.file)?;
        let writable = flags.intersection(OFlags::ACCMODE) != OFlags::RDONLY;
        let direct = Some(Direct::to(&self.file, writable)?);
        Ok(Self { direct, mapping: None, ..self })
    }

    pub(super) fn read(&self, offset: u64, length: u32, batch: &mut SendBatch) -> Outcome {
        if let Some(direct) = self.direct.as_ref().filter(|direct| direct.takes(offset, length.into())) {
            let mark = batch.mark();
            if direct.read(offset, length as usize, batch).is_ok() {
                return Ok(());
            }
            // Buffered I/O reports the error better: the data behind a short read are not whole blocks.
            batch.take_back(mark);
        }
        batch.put_file(&self.file, offset, length as usize).map_err(|error| match error.kind() {
            // The file was truncated.
            io::ErrorKind::UnexpectedEof => WireError::EIO,
            _ => WireError::from_system(&error),
        })
    }

    pub(super) fn write(&self, offset: u64, data: &[u8]) -> Outcome {
        if let Some(direct) = self.direct.as_ref().filter(|direct| direct.takes_bytes(offset, data)) {
            match direct.file.write_all_at(data, offset) {
                Ok(()) => return Ok(()),
                // Not possible with direct I/O after all.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                // A retry through the page cache would seem to succeed.
                Err(error) => return Err(WireError::from_system(&error)),
            }
        }
        self.file.write_all_at(data, offset).map_err(|error| WireError::from_system(&error))
    }

    /// After one failure, every later flush fails on every connection: the kernel does not report what was lost.
    pub(super) fn flush(&self) -> Outcome {
        #[cfg(test)]
        drop(self.gate.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        if let Some(error) = self.lost.get() {
            return Err(*error);
        }
        self.file.sync_data().map_err(|error| *self.lost.get_or_init(|| WireError::from_system(&error)))
    }

    pub(super) fn zero(&self, offset: u64, length: u32, allocated: bool) -> Piece {
        let kind = if allocated { FallocateFlags::ZERO_RANGE } else { FallocateFlags::PUNCH_HOLE };
        let flags = kind | FallocateFlags::KEEP_SIZE;
        if length == 0 {
            return Ok(0);
        }
        let released = piece(offset, length, RELEASED_AT_ONCE);
        match rustix::fs::fallocate(&self.file, flags, offset, u64::from(released)) {
            Ok(()) => Ok(released),
            // Not supported by this file system, or not for a range that is not a multiple of its blocks.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NODEV | rustix::io::Errno::INVAL) => {
                let written = piece(offset, length, WRITTEN_AT_ONCE);
                self.write_zeros(offset, written).map(|()| written)
            }
            Err(error) => Err(WireError::from_system(&error.into())),
        }
    }

    fn write_zeros(&self, offset: u64, length: u32) -> Outcome {
        (0..length).step_by(ZEROS.len()).try_for_each(|done| {
            let part = ZEROS.len().min((length - done) as usize);
            self.write(offset + u64::from(done), ZEROS.get(..part).unwrap_or(&ZEROS))
        })
    }

    pub(super) fn trim(&self, offset: u64, length: u32) -> u32 {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let released = piece(offset, length, RELEASED_AT_ONCE);
        // Trim is advisory: ignore that a file system does not support it.
        if released > 0 {
            let _ = rustix::fs::fallocate(&self.file, flags, offset, u64::from(released));
        }
        released
    }
}

/// Bytes read or written per call: a multiple of every block size.
const DIRECT_AT_ONCE: usize = 128 << 10;
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
    fn to(file: &File, writable: bool) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true).write(writable).custom_flags(OFlags::DIRECT.bits().cast_signed());
        // The same file even if its name now refers to another.
        let direct = options.open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let block = match sys::device::direct_alignment(&direct)? {
            Some(block) if block > DIRECT_AT_ONCE as u64 => return Err(io::ErrorKind::InvalidInput.into()),
            Some(block) => block.max(PAGE),
            None => PAGE,
        };
        Ok(Self { file: direct, block, buffers: Mutex::default() })
    }

    /// Whether a range is aligned for direct I/O.
    fn takes(&self, offset: u64, length: u64) -> bool {
        offset.is_multiple_of(self.block) && length.is_multiple_of(self.block)
    }

    /// Whether the range and the memory of these bytes are aligned for direct I/O.
    fn takes_bytes(&self, offset: u64, data: &[u8]) -> bool {
        self.takes(offset, data.len() as u64) && (data.as_ptr().addr() as u64).is_multiple_of(PAGE)
    }

    /// Appends an aligned range to `batch`; on failure, a part may have been appended.
    fn read(&self, offset: u64, length: usize, batch: &mut SendBatch) -> io::Result<()> {
        let mut buffer = self.borrow()?;
        let outcome = (0..length).step_by(DIRECT_AT_ONCE).try_for_each(|done| {
            let (piece, _) = buffer.split_at_mut((length - done).min(DIRECT_AT_ONCE));
            self.file.read_exact_at(piece, offset + done as u64)?;
            batch.put(piece);
            Ok(())
        });
        self.give_back(buffer);
        outcome
    }

    /// Borrows a page-aligned buffer of [`DIRECT_AT_ONCE`] bytes.
    pub(crate) fn borrow(&self) -> io::Result<AlignedBuffer> {
        let kept = lock(&self.buffers).pop();
        kept.map_or_else(|| AlignedBuffer::zeroed(DIRECT_AT_ONCE), Ok)
    }

    /// Returns a buffer.
    pub(crate) fn give_back(&self, buffer: AlignedBuffer) {
        let mut buffers = lock(&self.buffers);
        if buffers.len() < KEPT {
            buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel reports a failed write-back only once.
    #[test]
    fn after_a_failed_flush_every_flush_fails() {
        let backend = FileBackend::new(tempfile::tempfile().unwrap()).unwrap();
        assert_eq!(backend.flush(), Ok(()));
        // A device that does not support fdatasync.
        let lost = FileBackend { file: Arc::new(File::open("/dev/zero").unwrap()), ..backend };
        assert!(lost.flush().is_err());
        let fixed = FileBackend { file: Arc::new(tempfile::tempfile().unwrap()), ..lost };
        assert!(fixed.flush().is_err());
    }

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
        (0..2 * KEPT).for_each(|_| direct.give_back(AlignedBuffer::zeroed(DIRECT_AT_ONCE).unwrap()));
        assert_eq!(lock(&direct.buffers).len(), KEPT);
    }
}
