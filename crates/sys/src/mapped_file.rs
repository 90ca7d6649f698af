//! Maps a file so that the kernel can send its page-cache pages without a read. This process never accesses the memory.

use crate::buffer::AlignedBuffer;
use std::fs::File;
use std::io;

/// A file mapped for reading by the kernel only. Because this process never accesses it, a failing device or a
/// truncated file is an error (EFAULT) of the call that needed the page, not a SIGBUS. The rest of the page in which a
/// file ends reads as zeros.
#[derive(Debug)]
pub struct MappedFile {
    memory: AlignedBuffer,
    length: usize,
}

// SAFETY: no reference to the bytes ever exists; only the kernel reads them.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Maps the first `length` bytes of a file.
    ///
    /// # Errors
    /// When address space is not available or the file system does not support mapping.
    pub fn new(file: &File, length: usize) -> io::Result<Self> {
        Ok(Self { memory: AlignedBuffer::shared_to_read(file, length)?, length })
    }

    /// Address of a range, for the kernel to read while `self` exists.
    ///
    /// # Panics
    /// When the range is out of bounds: a bug in the caller, which would otherwise access foreign memory.
    #[inline]
    pub(crate) fn address(&self, offset: usize, length: usize) -> *mut u8 {
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.length);
        assert!(inside, "{length} bytes at {offset} are outside {} bytes", self.length);
        self.memory.pointer().wrapping_add(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, memfd_create};

    fn file(length: u64) -> File {
        let file = File::from(memfd_create("test", MemfdFlags::CLOEXEC).unwrap());
        file.set_len(length).unwrap();
        file
    }

    #[test]
    fn ranges_out_of_bounds_panic() {
        let file = file(100);
        let mapped = MappedFile::new(&file, 100).unwrap();
        for (offset, length) in [(0, 101), (100, 1), (usize::MAX, 2)] {
            let reached = std::panic::catch_unwind(|| mapped.address(offset, length));
            assert!(reached.is_err(), "{offset} {length}");
        }
        assert!(MappedFile::new(&file, usize::MAX).is_err());
    }
}
