//! The storages that a server executes requests on: memory, a file, or nothing. They know nothing of the protocol or of
//! clients.
//!
//! The server has already checked the ranges: `offset + length` is within [`Backend::size`].

mod file;

pub(crate) use file::Direct;

use crate::payload_memory;
use crate::tuning::{Sending, Tuning};
use crate::wire::{MAX_PAYLOAD, WireError};
use file::FileBackend;
use std::fs::File;
use std::sync::Arc;
use sys::byte_store::ByteStore;
use sys::send_batch::{SendBatch, Source};

/// The result of a request.
pub type Outcome = Result<(), WireError>;

/// The length of the piece of a range that was done.
pub type Piece = Result<u32, WireError>;

/// Most bytes that are zeroed or discarded without being written, in one call. Pieces end at its multiples, so that whole
/// huge pages and whole clusters of a file system stay whole.
const RELEASED_AT_ONCE: u32 = 8 << 20;

/// The length of the first piece of a range: up to the next multiple of `unit`.
fn piece(offset: u64, length: u32, unit: u32) -> u32 {
    // The remainder is below `unit`.
    length.min(unit - (offset % u64::from(unit)) as u32)
}

/// A storage. All connections of an export share one.
#[derive(Clone, Debug)]
pub enum Backend {
    /// Memory, lost when the server exits.
    Memory(Arc<ByteStore>),
    /// A file or a block device.
    File(Arc<FileBackend>),
    /// Nothing: reads return zeros, writes are discarded. Shows the cost of everything else.
    Null {
        /// Claimed size in bytes.
        size: u64,
        /// The zeros of the largest reply. They are never written to, so they are the kernel's zero page, which stays
        /// in the cache.
        zeros: Arc<ByteStore>,
    },
}

impl Backend {
    /// Zeroed memory: in a memory file, whose pages can be sent, if `tuning` allows zero copy; otherwise in huge pages
    /// if the system provides them.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub fn memory(bytes: u64, tuning: &Tuning) -> std::io::Result<Self> {
        let length = usize::try_from(bytes).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        Ok(Self::Memory(payload_memory(length, tuning.zero_copy < MAX_PAYLOAD, tuning.copying)?))
    }

    /// An open file through the page cache. The server reads data before it sends the header, so a storage failure
    /// becomes an error reply.
    ///
    /// # Errors
    /// When its size cannot be determined.
    pub fn file(file: File) -> std::io::Result<Self> {
        Ok(Self::File(Arc::new(FileBackend::new(file)?)))
    }

    /// An open file whose mapped pages are sent directly from the page cache. Cheaper, but if the storage fails or the
    /// file is truncated, the connection closes in the middle of a reply.
    ///
    /// # Errors
    /// When its size cannot be determined.
    pub fn page_cache(file: File) -> std::io::Result<Self> {
        Ok(Self::File(Arc::new(FileBackend::new(file)?.mapped())))
    }

    /// An open file with direct I/O, through a second file description. Ranges that are not whole blocks go through the
    /// page cache.
    ///
    /// # Errors
    /// When its size cannot be determined, or InvalidInput when its file system does not support O_DIRECT.
    pub fn file_direct(file: File) -> std::io::Result<Self> {
        Ok(Self::File(Arc::new(FileBackend::new(file)?.direct_io()?)))
    }

    /// Nothing, with a claimed size.
    ///
    /// # Errors
    /// When address space for a reply's zeros is not available.
    pub fn null(size: u64) -> std::io::Result<Self> {
        Ok(Self::Null { size, zeros: Arc::new(ByteStore::zeroed(MAX_PAYLOAD as usize)?) })
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Self::Memory(store) => store.len() as u64,
            Self::File(file) => file.size,
            Self::Null { size, .. } => *size,
        }
    }

    /// Direct I/O, if in use: each request then waits for the device, and writes should come in whole blocks.
    #[inline]
    pub(crate) fn direct(&self) -> Option<&Direct> {
        self.file_backend()?.direct.as_ref()
    }

    /// Whether a request may wait for a device.
    #[inline]
    pub(crate) fn may_wait(&self) -> bool {
        self.file_backend().is_some()
    }

    /// The lock that holds up flushes of a file.
    #[cfg(test)]
    pub(crate) fn gate(&self) -> Arc<std::sync::Mutex<()>> {
        self.file_backend().map(|file| file.gate.clone()).unwrap_or_default()
    }

    #[inline]
    fn file_backend(&self) -> Option<&FileBackend> {
        if let Self::File(file) = self { Some(file) } else { None }
    }

    /// The way to send a payload, given the wanted way: falls back if the storage does not support it.
    #[inline]
    pub fn sending(&self, wanted: Sending) -> Sending {
        match (self, wanted) {
            (Self::Memory(store), Sending::ZeroCopy) if store.file().is_none() => Sending::Gather,
            // Direct I/O must not use the page cache.
            (Self::File(file), Sending::ZeroCopy) if file.direct.is_some() => Sending::PullUp,
            (Self::File(file), Sending::Gather) if file.mapping.is_none() => Sending::PullUp,
            (Self::Null { .. }, Sending::ZeroCopy) => Sending::Gather,
            (_, wanted) => wanted,
        }
    }

    /// An empty batch for payloads from this storage.
    pub fn batch(&self) -> SendBatch {
        match self {
            Self::Memory(store) => SendBatch::new(Some(store.clone())).with_pages_of(store.file().cloned()),
            Self::File(file) => {
                let source = file.mapping.clone().map_or(Source::Nothing, Source::File);
                SendBatch::new(source).with_pages_of(Some(file.file.clone()))
            }
            Self::Null { zeros, .. } => SendBatch::new(Some(zeros.clone())),
        }
    }

    /// Appends a range of the storage to `batch`, which must come from [`batch`](Self::batch). `sending` is the result
    /// of [`sending`](Self::sending).
    #[inline]
    pub fn read(&self, offset: u64, length: u32, sending: Sending, batch: &mut SendBatch) -> Outcome {
        // The range is within the size, which is a usize for memory and an off_t for a file.
        let (begin, bytes) = (offset as usize, length as usize);
        match (self, sending) {
            (Self::Memory(_), Sending::PullUp) => batch.pull_up(begin, bytes),
            (Self::Memory(_) | Self::File(_), Sending::Gather) => batch.gather(begin, bytes),
            (Self::Memory(_) | Self::File(_), Sending::ZeroCopy) => batch.hand_over(begin, bytes),
            (Self::File(file), _) => return file.read(offset, length, batch),
            (Self::Null { .. }, Sending::PullUp) => batch.pull_up(0, bytes),
            (Self::Null { .. }, _) => batch.gather(0, bytes),
        }
        Ok(())
    }

    /// Writes `data` at `offset`.
    #[inline]
    pub fn write(&self, offset: u64, data: &[u8]) -> Outcome {
        match self {
            Self::Memory(store) => store.write(offset as usize, data),
            Self::File(file) => return file.write(offset, data),
            Self::Null { .. } => {}
        }
        Ok(())
    }

    /// Makes all completed writes durable.
    pub fn flush(&self) -> Outcome {
        self.file_backend().map_or(Ok(()), |file| file.flush())
    }

    /// Makes the first piece of a range zero, which takes some milliseconds at most; `allocated`: without holes. Returns its
    /// length; 0 only for an empty range.
    pub fn zero(&self, offset: u64, length: u32, allocated: bool) -> Piece {
        match self {
            Self::Memory(store) => {
                let piece = piece(offset, length, RELEASED_AT_ONCE);
                store.zero(offset as usize, piece as usize);
                Ok(piece)
            }
            Self::File(file) => file.zero(offset, length, allocated),
            Self::Null { .. } => Ok(length),
        }
    }

    /// Discards the first piece of a range if possible: trim is advisory. Returns its length as [`zero`](Self::zero).
    pub fn trim(&self, offset: u64, length: u32) -> Piece {
        match self {
            Self::File(file) => Ok(file.trim(offset, length)),
            memory_or_null => memory_or_null.zero(offset, length, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces cover a range without a gap, and the largest request needs many of them on every storage that works.
    #[test]
    fn a_range_is_done_in_pieces_that_end_at_multiples() {
        const END: u64 = 1 << 32;
        let file = tempfile::tempfile().unwrap();
        file.set_len(END).unwrap();
        for backend in [Backend::file(file).unwrap(), Backend::memory(64 << 20, &Tuning::default()).unwrap()] {
            let end = backend.size();
            let works: [&dyn Fn(u64, u32) -> Piece; 2] =
                [&|at, rest| backend.zero(at, rest, false), &|at, rest| backend.trim(at, rest)];
            for work in works {
                let (mut at, mut pieces) = (5000, 0);
                while at < end {
                    let done = work(at, u32::try_from(end - at).unwrap()).unwrap();
                    assert!(done > 0 && done <= RELEASED_AT_ONCE, "{done}");
                    (at, pieces) = (at + u64::from(done), pieces + 1);
                    assert!(at == end || at.is_multiple_of(4096), "{at}");
                }
                assert!(at == end && pieces >= 8, "{pieces}");
            }
        }
    }
}
