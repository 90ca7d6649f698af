//! A file's bytes where the kernel can send them from without reading them first: in its page cache.

use crate::buffer::AlignedBuffer;
use std::fs::File;
use std::io;

/// So far behind the end nothing is in memory: some file systems have blocks of 64 KiB there.
const BEHIND: usize = 1 << 20;
/// So many pages are asked about with one system call.
const PAGES_AT_A_TIME: usize = 256;

/// A file that is mapped to be read, by the kernel alone: nobody here ever touches it. So what cannot be had, because the device failed or
/// somebody made the file shorter, is an error of the call that wanted it (EFAULT), and no SIGBUS. Of a page in which a file ends the rest is zeros.
#[derive(Debug)]
pub struct MappedFile {
    memory: AlignedBuffer,
    length: usize,
    page: usize,
}

// SAFETY: no reference to the bytes ever exists; only the kernel reads them.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// The first `length` bytes of a file.
    ///
    /// # Errors
    /// When there are no addresses for it, its file system maps none, or PermissionDenied when the system does not tell this user what of
    /// it is in memory (it tells who owns the file or may write it).
    pub fn new(file: &File, length: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        // Unless that is what the system always says.
        let behind = length.checked_next_multiple_of(page).and_then(|end| end.checked_add(BEHIND));
        let behind = behind.ok_or(io::ErrorKind::OutOfMemory)?;
        let mapped = behind.checked_add(page).ok_or(io::ErrorKind::OutOfMemory)?;
        let memory = AlignedBuffer::shared_to_read(file, mapped)?;
        let mapping = Self { memory, length, page };
        if mapping.is_resident(behind, page) { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(mapping) }
    }

    /// Whether all of a range can be read now without waiting for a device. That takes about as long as reading 4 KiB of it, and may
    /// be over when it is told.
    ///
    /// # Panics
    /// When the range is not inside.
    pub fn is_cached(&self, offset: usize, length: usize) -> bool {
        self.address(offset, length);
        let begin = offset / self.page * self.page;
        length == 0 || self.is_resident(begin, offset + length - begin)
    }

    /// Gives back what it takes to know where its pages are. They stay in memory; but while they are mapped nobody who asks for that can drop them.
    pub fn let_go(&self) {
        // SAFETY: the range is the mapping, which is shared with a file: what is read there afterwards is what the file holds.
        let _ = unsafe {
            let whole = self.memory.pointer().cast();
            rustix::mm::madvise(whole, self.length, rustix::mm::Advice::LinuxDontNeed)
        };
    }

    /// The same of what begins with a page.
    fn is_resident(&self, begin: usize, length: usize) -> bool {
        let mut resident = [0_u8; PAGES_AT_A_TIME];
        let (mut at, end) = (begin, begin + length);
        while at < end {
            let bytes = (end - at).min(PAGES_AT_A_TIME * self.page);
            let place = self.memory.pointer().wrapping_add(at);
            // SAFETY: the range is within the mapping, and there is a byte in `resident` for each of its pages.
            let told = unsafe { libc::mincore(place.cast(), bytes, resident.as_mut_ptr()) };
            let pages = resident.iter().take(bytes.div_ceil(self.page));
            if told != 0 || pages.into_iter().any(|flags| flags & 1 == 0) {
                return false;
            }
            at += bytes;
        }
        true
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
    use std::os::unix::fs::FileExt;

    fn file(length: u64) -> File {
        let file = File::from(memfd_create("test", MemfdFlags::CLOEXEC).unwrap());
        file.set_len(length).unwrap();
        file
    }

    #[test]
    fn what_was_written_is_in_memory_and_a_hole_is_not() {
        let file = file(4 << 20);
        file.write_all_at(&[7; 10_000], 1 << 20).unwrap();
        let mapped = MappedFile::new(&file, 4 << 20).unwrap();
        for (offset, length, cached) in [
            (1 << 20, 10_000, true),
            ((1 << 20) + 4095, 2, true),
            (1 << 20, 0, true),
            ((1 << 20) - 1, 2, false),
            (1 << 20, 12_289, false),
            (0, 4 << 20, false),
        ] {
            assert_eq!(mapped.is_cached(offset, length), cached, "{length} at {offset}");
        }
        file.write_all_at(&vec![7; 4 << 20], 0).unwrap();
        assert!(mapped.is_cached(0, 4 << 20), "more pages than are asked about at one time");
        file.set_len(5000).unwrap();
        assert!(mapped.is_cached(0, 5000) && !mapped.is_cached(5000, 4000), "what is there no more");
    }

    #[test]
    fn nothing_outside_is_reached() {
        let file = file(100);
        let mapped = MappedFile::new(&file, 100).unwrap();
        for (offset, length) in [(0, 101), (100, 1), (usize::MAX, 2)] {
            let reached = std::panic::catch_unwind(|| mapped.is_cached(offset, length));
            assert!(reached.is_err(), "{offset} {length}");
        }
        assert!(MappedFile::new(&file, usize::MAX).is_err());
    }
}
