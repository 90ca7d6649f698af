//! The storages that a server executes requests on: memory, a file, or nothing. They know nothing of the protocol or of
//! clients.
//!
//! The server has already checked the ranges: `offset + length` is within [`Backend::size`].

mod file;

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

    /// Whether a request may wait for a device.
    #[inline]
    pub(crate) fn may_wait(&self) -> bool {
        self.file_backend().is_some()
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

    /// Makes a range zero; `allocated`: without holes.
    pub fn zero(&self, offset: u64, length: u32, allocated: bool) -> Outcome {
        match self {
            Self::Memory(store) => store.zero(offset as usize, length as usize),
            Self::File(file) => return file.zero(offset, length, allocated),
            Self::Null { .. } => {}
        }
        Ok(())
    }

    /// Discards a range if possible: trim is advisory.
    pub fn trim(&self, offset: u64, length: u32) -> Outcome {
        match self {
            Self::File(file) => file.trim(offset, length),
            memory_or_null => return memory_or_null.zero(offset, length, false),
        }
        Ok(())
    }
}
