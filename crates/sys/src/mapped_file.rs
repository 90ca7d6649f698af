//! A file's bytes where the kernel can send them from without reading them first: in its page cache.

use crate::buffer::AlignedBuffer;
use std::fs::File;
use std::io;

/// A file that is mapped to be read, by the kernel alone: nobody here ever touches it. So what cannot be had, because the device failed or
/// somebody made the file shorter, is an error of the call that wanted it (EFAULT), and no SIGBUS. Of a page in which a file ends the rest is zeros.
#[derive(Debug)]
pub struct MappedFile {
    memory: AlignedBuffer,
    length: usize,
}

// SAFETY: no reference to the bytes ever exists; only the kernel reads them.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// The first `length` bytes of a file.
    ///
    /// # Errors
    /// When there are no addresses for it, or its file system maps none.
    pub fn new(file: &File, length: usize) -> io::Result<Self> {
        Ok(Self { memory: AlignedBuffer::shared_to_read(file, length)?, length })
    }

    /// Where a range begins, for the kernel to read while `self` lives.
    ///
    /// # Panics
    /// When the range is not inside: a broken caller, who would otherwise reach memory that is not its own.
    #[inline]
    pub(crate) fn address(&self, offset: usize, length: usize) -> *mut u8 {
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.length);
        assert!(inside, "{length} bytes at {offset} are not within {} bytes", self.length);
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
    fn nothing_outside_is_reached() {
        let file = file(100);
        let mapped = MappedFile::new(&file, 100).unwrap();
        for (offset, length) in [(0, 101), (100, 1), (usize::MAX, 2)] {
            let reached = std::panic::catch_unwind(|| mapped.address(offset, length));
            assert!(reached.is_err(), "{offset} {length}");
        }
        assert!(MappedFile::new(&file, usize::MAX).is_err());
    }
}
