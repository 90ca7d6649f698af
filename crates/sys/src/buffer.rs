//! Page-aligned memory for I/O, unmapped when dropped.

use rustix::mm::{MapFlags, ProtFlags, mlock, mmap, mmap_anonymous, munmap};
use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A private mapping: page-aligned, zeroed, not on the heap.
#[derive(Debug)]
pub struct AlignedBuffer {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: only this value owns the mapping; moving it to another thread moves the ownership.
unsafe impl Send for AlignedBuffer {}

impl AlignedBuffer {
    /// Maps `length` zeroed bytes, at least one page.
    pub fn zeroed(length: usize) -> io::Result<Self> {
        let length = length.max(1);
        // SAFETY: with a null hint, the kernel chooses an address range that nothing else uses.
        let start = unsafe {
            mmap_anonymous(std::ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
        };
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mmap returned a null pointer"))?;
        Ok(Self { start, length })
    }

    /// The same, in the machine's memory until it is dropped (mlock).
    ///
    /// # Errors
    /// EPERM or ENOMEM if the limit of locked memory does not allow it.
    pub fn locked(length: usize) -> io::Result<Self> {
        let buffer = Self::zeroed(length)?;
        // SAFETY: the range is that of a live mapping, which mlock does not change; munmap unlocks it.
        unsafe { mlock(buffer.start.as_ptr().cast(), buffer.length)? };
        Ok(buffer)
    }

    /// Maps the first `length` bytes of a file shared, at least one page, for reading and, if it `writes`, for writing.
    ///
    /// For callers that use only [`pointer`](Self::pointer): other processes may write behind a reference, or truncate the file.
    pub(crate) fn shared(file: &File, length: usize, writes: bool) -> io::Result<Self> {
        let access = if writes { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        let length = length.max(1);
        // SAFETY: as for `zeroed`.
        let start = unsafe { mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, file, 0)? };
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mmap returned a null pointer"))?;
        Ok(Self { start, length })
    }

    /// Address of the first byte, for the kernel to read or write while the buffer exists.
    pub(crate) fn pointer(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `start` is the start of a live mapping of `length` initialised (zeroed) bytes. Shared mappings
        // (`shared`) are never dereferenced.
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
        // SAFETY: the range was mapped at construction, and no references to it remain.
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
    fn an_impossible_length_is_an_error() {
        assert!(AlignedBuffer::zeroed(usize::MAX / 2).is_err());
    }
}
