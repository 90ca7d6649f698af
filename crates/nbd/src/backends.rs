//! What a server's requests are done to: memory, a file, or nothing.
//!
//! Ranges were checked by the server: `offset + length` is within [`Backend::size`].

mod direct;
mod file;

pub(crate) use direct::Direct;

use crate::tuning::{Sending, Tuning};
use crate::wire::{MAX_PAYLOAD, WireError};
use std::fs::File;
use std::sync::Arc;
use sys::byte_store::ByteStore;
use sys::send_batch::{SendBatch, Source};

/// What happened to a request.
pub type Outcome = Result<(), WireError>;

/// A storage. All connections of an export share one.
#[derive(Clone, Debug)]
pub enum Backend {
    /// Bytes in memory, gone with the server.
    Memory(Arc<ByteStore>),
    /// A file or a block device.
    File(Arc<file::FileBackend>),
    /// Nothing: reads are zeros, writes are forgotten. It shows what everything else costs.
    Null {
        /// Bytes that it claims to have.
        size: u64,
        /// As many as one reply can have. Nobody writes to them, so they are the kernel's own, which lie in the cache.
        zeros: Arc<ByteStore>,
    },
}

/// What a range holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtentKind {
    /// Something.
    Data,
    /// Nothing is allocated, and it reads as zeros.
    Hole,
}

impl ExtentKind {
    /// As the context `base:allocation` says it: 1 hole, 2 zeros.
    pub fn bits(self) -> u32 {
        match self {
            Self::Data => 0,
            Self::Hole => 3,
        }
    }
}

/// A part of a range that is of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes, more than none.
    pub length: u32,
    /// What they are.
    pub kind: ExtentKind,
}

/// What zeros may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zeroing {
    /// Blocks stay allocated (NO_HOLE); otherwise a hole is as good.
    pub allocated: bool,
    /// Not if they have to be written (FAST_ZERO).
    pub fast: bool,
}

impl Backend {
    /// Zeros in memory: where `tuning` may send pages, in pages that can be sent, otherwise in huge pages where the system
    /// gives them.
    ///
    /// # Errors
    /// When there is not so much of it.
    pub fn memory(bytes: u64, tuning: &Tuning) -> std::io::Result<Self> {
        let length = usize::try_from(bytes).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        let pages = tuning.zero_copy < MAX_PAYLOAD;
        let store = if pages { ByteStore::in_file(length) } else { ByteStore::zeroed(length) };
        Ok(Self::Memory(Arc::new(store?.copied(tuning.copying))))
    }

    /// An open file, through the page cache: what is asked for is read first, so that a failing storage is an error reply.
    ///
    /// # Errors
    /// When its size cannot be told.
    pub fn file(file: File) -> std::io::Result<Self> {
        Ok(Self::File(Arc::new(file::FileBackend::new(file)?)))
    }

    /// An open file whose pages are sent straight from the page cache, where it can be mapped: cheaper, but where the storage fails, or
    /// somebody makes the file shorter, the connection ends in the middle of a reply.
    ///
    /// # Errors
    /// When its size cannot be told.
    pub fn page_cache(file: File) -> std::io::Result<Self> {
        Ok(Self::File(Arc::new(file::FileBackend::new(file)?.mapped())))
    }

    /// An open file past the page cache, by a second way to it. Ranges that are no whole blocks go through the cache.
    ///
    /// # Errors
    /// When its size cannot be told, or InvalidInput when its file system has no O_DIRECT.
    pub fn file_direct(file: File) -> std::io::Result<Self> {
        Ok(Self::File(Arc::new(file::FileBackend::new(file)?.direct_io()?)))
    }

    /// Nothing, which claims to have so many bytes.
    ///
    /// # Errors
    /// When there are no addresses for a reply's zeros.
    pub fn null(size: u64) -> std::io::Result<Self> {
        Ok(Self::Null { size, zeros: Arc::new(ByteStore::zeroed(MAX_PAYLOAD as usize)?) })
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        match self {
            Self::Memory(store) => store.len() as u64,
            Self::File(file) => file.size(),
            Self::Null { size, .. } => *size,
        }
    }

    /// The way past the page cache, if there is one: each request waits for a device then, and what is written should come in whole
    /// blocks.
    #[inline]
    pub(crate) fn direct(&self) -> Option<&Direct> {
        match self {
            Self::File(file) => file.direct(),
            Self::Memory(_) | Self::Null { .. } => None,
        }
    }

    /// Whether a request may wait for a device.
    #[inline]
    pub(crate) fn may_wait(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// How a payload is sent that is wanted to be sent so: what is not possible is not done.
    #[inline]
    pub fn sending(&self, wanted: Sending) -> Sending {
        match (self, wanted) {
            (Self::Memory(store), Sending::ZeroCopy) if store.file().is_none() => Sending::Gather,
            // What is in the cache, or comes to be there, is not to be used.
            (Self::File(file), Sending::ZeroCopy) if file.direct().is_some() => Sending::PullUp,
            (Self::File(file), Sending::Gather) if file.mapping().is_none() => Sending::PullUp,
            (Self::Null { .. }, Sending::ZeroCopy) => Sending::Gather,
            (_, wanted) => wanted,
        }
    }

    /// An empty batch of payloads that come from here.
    pub fn batch(&self) -> SendBatch {
        match self {
            Self::Memory(store) => SendBatch::new(Some(store.clone())).with_pages_of(store.file().cloned()),
            Self::File(file) => {
                let source = file.mapping().cloned().map_or(Source::Nothing, Source::File);
                SendBatch::new(source).with_pages_of(Some(file.pages()))
            }
            Self::Null { zeros, .. } => SendBatch::new(Some(zeros.clone())),
        }
    }

    /// Puts bytes of the storage at the end of `batch`, which is one of its own. `sending` is what [`sending`](Self::sending) gave.
    #[inline]
    pub fn read(&self, offset: u64, length: u32, sending: Sending, batch: &mut SendBatch) -> Outcome {
        // Within the size, which a memory's is a usize and a file's an off_t.
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

    /// Puts `data` at `offset`.
    #[inline]
    pub fn write(&self, offset: u64, data: &[u8]) -> Outcome {
        match self {
            Self::Memory(store) => {
                store.write(offset as usize, data);
                Ok(())
            }
            Self::File(file) => file.write(offset, data),
            Self::Null { .. } => Ok(()),
        }
    }

    /// Makes everything written so far durable.
    pub fn flush(&self) -> Outcome {
        match self {
            Self::File(file) => file.flush(),
            Self::Memory(_) | Self::Null { .. } => Ok(()),
        }
    }

    /// Makes a range zero.
    pub fn zero(&self, offset: u64, length: u32, how: Zeroing) -> Outcome {
        match self {
            Self::Memory(store) => {
                store.zero(offset as usize, length as usize);
                Ok(())
            }
            Self::File(file) => file.zero(offset, length, how),
            Self::Null { .. } => Ok(()),
        }
    }

    /// Forgets a range, where that is possible: it is advice.
    pub fn trim(&self, offset: u64, length: u32) -> Outcome {
        match self {
            Self::Memory(store) => {
                store.zero(offset as usize, length as usize);
                Ok(())
            }
            Self::File(file) => file.trim(offset, length),
            Self::Null { .. } => Ok(()),
        }
    }

    /// Reads a range into the cache.
    pub fn cache(&self, offset: u64, length: u32) -> Outcome {
        match self {
            Self::File(file) => file.cache(offset, length),
            Self::Memory(_) | Self::Null { .. } => Ok(()),
        }
    }

    /// What the range holds, from its begin on: one extent at least, `most` at most, and not beyond its end.
    pub fn extents(&self, offset: u64, length: u32, most: usize) -> Vec<Extent> {
        match self {
            Self::File(file) => file.extents(offset, length, most),
            Self::Memory(_) => vec![Extent { length, kind: ExtentKind::Data }],
            Self::Null { .. } => vec![Extent { length, kind: ExtentKind::Hole }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CVE-2025-47711, -47712: lengths near 2^32.
    #[test]
    fn extents_of_the_largest_ranges_fit_into_them() {
        const SIZE: u64 = 1 << 40;
        let sparse = tempfile::tempfile().unwrap();
        sparse.set_len(SIZE).unwrap();
        let memory = Backend::memory(1 << 20, &Tuning::default()).unwrap();
        let null = Backend::null(SIZE).unwrap();
        for backend in [null, Backend::file(sparse).unwrap(), memory] {
            let size = backend.size();
            let largest = u32::try_from(size).unwrap_or(u32::MAX);
            for (offset, length) in [(0, largest), (size - u64::from(largest), largest), (size - 1, 1), (0, 1)] {
                let extents = backend.extents(offset, length, 128);
                let sum: u64 = extents.iter().map(|extent| u64::from(extent.length)).sum();
                assert!(sum <= u64::from(length) && extents.iter().all(|extent| extent.length > 0), "{extents:?}");
            }
        }
    }
}
