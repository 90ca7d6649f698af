//! A file or a block device as a storage: translates requests into system calls.

use super::Outcome;
use crate::wire::WireError;
use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};
use sys::byte_store::ByteStore;
use sys::send_batch::SendBatch;

/// Zeros to write if the file system cannot make any.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// An open file.
#[derive(Debug)]
pub struct FileBackend {
    pub(super) file: Arc<File>,
    pub(super) size: u64,
    /// The mapping from which pages are sent, if requested.
    pub(super) mapping: Option<Arc<ByteStore>>,
    /// The error of the first failed flush: the kernel reports a failed write-back once and then treats the data as
    /// written.
    lost: OnceLock<WireError>,
}

impl FileBackend {
    pub(super) fn new(mut file: File) -> io::Result<Self> {
        // Seek also works for a block device, whose metadata report size 0.
        let size = file.seek(SeekFrom::End(0))?;
        Ok(Self { file: Arc::new(file), size, mapping: None, lost: OnceLock::new() })
    }

    /// Maps the file if possible.
    pub(super) fn mapped(self) -> Self {
        let mapping =
            usize::try_from(self.size).ok().and_then(|length| ByteStore::of_file(&self.file, length, false).ok());
        Self { mapping: mapping.map(Arc::new), ..self }
    }

    pub(super) fn read(&self, offset: u64, length: u32, batch: &mut SendBatch) -> Outcome {
        batch.put_file(&self.file, offset, length as usize).map_err(|error| match error.kind() {
            // The file was truncated.
            io::ErrorKind::UnexpectedEof => WireError::EIO,
            _ => WireError::from_system(&error),
        })
    }

    pub(super) fn write(&self, offset: u64, data: &[u8]) -> Outcome {
        self.file.write_all_at(data, offset).map_err(|error| WireError::from_system(&error))
    }

    /// After one failure, every later flush fails on every connection: the kernel does not report what was lost.
    pub(super) fn flush(&self) -> Outcome {
        if let Some(error) = self.lost.get() {
            return Err(*error);
        }
        self.file.sync_data().map_err(|error| *self.lost.get_or_init(|| WireError::from_system(&error)))
    }

    pub(super) fn zero(&self, offset: u64, length: u32, allocated: bool) -> Outcome {
        let kind = if allocated { FallocateFlags::ZERO_RANGE } else { FallocateFlags::PUNCH_HOLE };
        let flags = kind | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, flags, offset, u64::from(length)) {
            Ok(()) => Ok(()),
            // Not supported by this file system, or not for a range that is not a multiple of its blocks.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NODEV | rustix::io::Errno::INVAL) => {
                self.write_zeros(offset, length)
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

    pub(super) fn trim(&self, offset: u64, length: u32) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // Trim is advisory: ignore that a file system does not support it.
        let _ = rustix::fs::fallocate(&self.file, flags, offset, u64::from(length));
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
}
