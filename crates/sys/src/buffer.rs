//! Memory for I/O: aligned to a page, given back to the kernel when dropped.

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A mapping of its own: page-aligned, zeroed, not on the heap.
#[derive(Debug)]
pub struct AlignedBuffer {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping is owned by this value alone; moving it to another thread moves the ownership.
unsafe impl Send for AlignedBuffer {}

impl AlignedBuffer {
    /// `length` zeroed bytes; at least one page is mapped.
    pub fn zeroed(length: usize) -> io::Result<Self> {
        let length = length.max(1);
        // SAFETY: a null hint lets the kernel choose an address range that nothing else uses.
        let start = unsafe {
            mmap_anonymous(std::ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
        };
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mmap returned a null pointer"))?;
        Ok(Self { start, length })
    }

    /// The first `length` bytes of a file, shared with all who have it; at least one page is mapped.
    ///
    /// It is for those who use [`pointer`](Self::pointer) alone: others may write behind a reference.
    pub(crate) fn shared(file: &File, length: usize) -> io::Result<Self> {
        Self::of_file(file, length, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// The same, to be read only, and by the kernel only: the file may become shorter.
    pub(crate) fn shared_to_read(file: &File, length: usize) -> io::Result<Self> {
        Self::of_file(file, length, ProtFlags::READ)
    }

    fn of_file(file: &File, length: usize, access: ProtFlags) -> io::Result<Self> {
        let length = length.max(1);
        // SAFETY: as for `zeroed`.
        let start = unsafe { mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, file, 0)? };
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mmap returned a null pointer"))?;
        Ok(Self { start, length })
    }

    /// The first byte, for the kernel to read or write while the buffer lives.
    pub(crate) fn pointer(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `start` is the beginning of a live mapping of `length` initialised (zeroed) bytes, which nobody shares
        // when there are references to them (`shared`, `shared_to_read`).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and `&mut self` makes this the only access.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: the range was mapped when this was made, and nothing refers to it any more.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_aligned_zeroed_and_writable() {
        let mut buffer = AlignedBuffer::zeroed(10_000).unwrap();
        assert_eq!(buffer.as_ptr() as usize % 4096, 0);
        assert!(buffer.iter().all(|byte| *byte == 0));
        buffer.fill(7);
        assert_eq!(buffer[9_999], 7);
    }

    #[test]
    fn more_memory_than_there_is_is_an_error() {
        assert!(AlignedBuffer::zeroed(usize::MAX / 2).is_err());
    }
}
