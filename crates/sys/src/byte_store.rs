//! Memory that several threads and the kernel read and write concurrently, as they do a disk. In and out: copies; never
//! a reference.

use crate::buffer::AlignedBuffer;
use crate::shared_copy::{Copying, copy};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

/// The unit of mappings.
const PAGE: usize = 4096;

/// What a receive call does if no data are available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Return immediately.
    Never,
    /// Wait for data.
    UntilSome,
}

/// Memory shared like a disk: every thread may read and write any part at any time, and a reader concurrent with a
/// writer gets a mix of old and new bytes. So no thread gets a reference into it: bytes are copied in and out, by this
/// code or by the kernel.
#[derive(Debug)]
pub struct ByteStore {
    memory: AlignedBuffer,
    length: usize,
    copying: Copying,
    /// The memory file of the pages, if any.
    file: Option<Arc<File>>,
}

// SAFETY: after construction no reference to the bytes exists; they are accessed by copies that are opaque to the
// compiler (`copy`) and by the kernel, like memory shared with another process.
unsafe impl Sync for ByteStore {}

impl ByteStore {
    /// Allocates zeroed memory, in huge pages if the system provides them.
    ///
    /// # Errors
    /// When address space is not available or a limit forbids it.
    pub fn zeroed(length: usize) -> io::Result<Self> {
        let memory = AlignedBuffer::zeroed(length)?;
        want_huge_pages(&memory, length);
        Ok(Self { memory, length, copying: Copying::default(), file: None })
    }

    /// Allocates zeroed memory in a memory file, whose pages the kernel can send without a copy.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub fn in_file(length: usize) -> io::Result<Self> {
        // A file may be longer than memory. An anonymous allocation of the same size shows whether the system would
        // grant it.
        drop(AlignedBuffer::zeroed(length)?);
        let file = File::from(rustix::fs::memfd_create("iotoll", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
        file.set_len(length as u64)?;
        // Accessing pages beyond the end of a truncated file would fault, so seal its size.
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let memory = AlignedBuffer::shared(&file, length, true)?;
        want_huge_pages(&memory, length);
        Ok(Self { memory, length, copying: Copying::default(), file: Some(Arc::new(file)) })
    }

    /// The first `length` bytes of a file, mapped: what is written there is written to the file. If another program cuts it short meanwhile,
    /// an access of this process is a SIGBUS ([`explain_bus_errors`](crate::process::explain_bus_errors)), as is a write to one that is mapped
    /// for reading only; where only the kernel accesses a page, the call fails (EFAULT).
    ///
    /// # Errors
    /// When the file is not open for that, or its file system does not support mapping.
    pub fn of_file(file: &File, length: usize, writes: bool) -> io::Result<Self> {
        let memory = AlignedBuffer::shared(file, length, writes)?;
        Ok(Self { memory, length, copying: Copying::default(), file: None })
    }

    /// Writes the pages of a range of a mapped file to its storage.
    ///
    /// # Errors
    /// As msync(2).
    ///
    /// # Panics
    /// When the range is out of bounds.
    pub fn sync(&self, offset: usize, length: usize) -> io::Result<()> {
        let begin = offset / PAGE * PAGE;
        let address = self.address(begin, length + (offset - begin));
        // SAFETY: the range is part of the mapping, which `self` owns.
        unsafe { rustix::mm::msync(address.cast(), length + (offset - begin), rustix::mm::MsyncFlags::SYNC)? };
        Ok(())
    }

    /// Sets the copy method.
    pub fn copied(self, copying: Copying) -> Self {
        Self { copying, ..self }
    }

    /// The memory file, if there is one.
    pub fn file(&self) -> Option<&Arc<File>> {
        self.file.as_ref()
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether the size is 0.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Address of a range, valid while `self` exists.
    ///
    /// # Panics
    /// When the range is out of bounds: a bug in the caller, which would otherwise access foreign memory.
    #[inline]
    pub(crate) fn address(&self, offset: usize, length: usize) -> *mut u8 {
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.length);
        assert!(inside, "{length} bytes at {offset} are outside {} bytes", self.length);
        self.memory.pointer().wrapping_add(offset)
    }

    /// Copies bytes out.
    ///
    /// # Panics
    /// When the range is out of bounds.
    #[inline]
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let from = self.address(offset, into.len());
        // SAFETY: both ranges are valid for this many bytes and do not overlap, because `into` is borrowed from
        // elsewhere.
        unsafe { copy(self.copying, into.as_mut_ptr(), from, into.len()) };
    }

    /// Copies bytes out, appending to `into`.
    ///
    /// # Panics
    /// When the range is out of bounds.
    #[inline]
    pub fn append_to(&self, offset: usize, length: usize, into: &mut Vec<u8>) {
        let from = self.address(offset, length);
        into.reserve(length);
        let begin = into.len();
        // SAFETY: the range of `self` is valid, the vector has room for this many bytes behind its length, and they are
        // initialised when its length is set.
        unsafe {
            copy(self.copying, into.as_mut_ptr().add(begin), from, length);
            into.set_len(begin + length);
        }
    }

    /// Copies bytes in.
    ///
    /// # Panics
    /// When the range is out of bounds.
    #[inline]
    pub fn write(&self, offset: usize, from: &[u8]) {
        let into = self.address(offset, from.len());
        // SAFETY: as for `read`.
        unsafe { copy(self.copying, into, from.as_ptr(), from.len()) };
    }

    /// Receives available bytes from a socket directly into a range. Returns the number of bytes received.
    ///
    /// # Errors
    /// As recv(2): WouldBlock if no data are available and `waiting` is [`Waiting::Never`].
    /// # Panics
    /// When the range is out of bounds.
    pub fn receive(&self, offset: usize, length: usize, socket: &impl AsFd, waiting: Waiting) -> io::Result<usize> {
        let into = self.address(offset, length);
        let flags = if waiting == Waiting::Never { libc::MSG_DONTWAIT } else { 0 };
        // SAFETY: the range is valid for this many bytes while `self` exists, and the kernel may write to it at any
        // time.
        let count = unsafe { libc::recv(socket.as_fd().as_raw_fd(), into.cast(), length, flags) };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// Zeroes a range. Whole pages are returned to the system.
    ///
    /// # Panics
    /// When the range is out of bounds.
    pub fn zero(&self, offset: usize, length: usize) {
        const ZEROS: [u8; PAGE] = [0; PAGE];
        let begin = self.address(offset, length);
        let end = offset + length;
        if let Some(file) = &self.file {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            if length == 0 || rustix::fs::fallocate(file, hole, offset as u64, length as u64).is_ok() {
                return;
            }
            return self.fill_with_zeros(offset, length, &ZEROS);
        }
        let (first, last) = (offset.next_multiple_of(PAGE).min(end), end / PAGE * PAGE);
        if first < last {
            // SAFETY: whole pages inside the mapping, which is private and anonymous: they read as zeros afterwards.
            let given = unsafe {
                let begin = begin.wrapping_add(first - offset).cast();
                rustix::mm::madvise(begin, last - first, rustix::mm::Advice::LinuxDontNeed)
            };
            if given.is_ok() {
                self.fill_with_zeros(offset, first - offset, &ZEROS);
                self.fill_with_zeros(last, end - last, &ZEROS);
                return;
            }
        }
        self.fill_with_zeros(offset, length, &ZEROS);
    }

    fn fill_with_zeros(&self, offset: usize, length: usize, zeros: &[u8]) {
        let mut done = 0;
        while done < length {
            let part = zeros.len().min(length - done);
            self.write(offset + done, &zeros[..part]);
            done += part;
        }
    }
}

/// Huge pages are only advice: without them everything works, more slowly.
fn want_huge_pages(memory: &AlignedBuffer, length: usize) {
    // SAFETY: advice about a range that was just mapped; it changes no content.
    let _ = unsafe { rustix::mm::madvise(memory.pointer().cast(), length.max(1), rustix::mm::Advice::LinuxHugepage) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_written_are_read_back() {
        let store = ByteStore::zeroed(20_000).unwrap();
        let data: Vec<u8> = (0..10_000_u32).map(|place| place as u8 | 1).collect();
        store.write(3, &data);
        let mut found = vec![9; 10_000];
        store.read(3, &mut found);
        assert_eq!(found, data);
        let mut behind = vec![7];
        store.append_to(2, 3, &mut behind);
        assert_eq!(behind, [7, 0, data[0], data[1]]);
    }

    #[test]
    fn zeroing_affects_exactly_the_range() {
        for (offset, length) in [(0, 20_000), (1, 100), (4095, 2), (100, 9000), (4096, 8192), (19_999, 1), (5, 0)] {
            for store in [ByteStore::zeroed(20_000).unwrap(), ByteStore::in_file(20_000).unwrap()] {
                store.write(0, &vec![1; 20_000]);
                store.zero(offset, length);
                let mut found = vec![9; 20_000];
                store.read(0, &mut found);
                let wrong = found
                    .iter()
                    .enumerate()
                    .find(|(place, byte)| **byte != u8::from(!(offset..offset + length).contains(place)));
                assert_eq!(wrong, None, "{offset} {length}");
            }
        }
    }

    #[test]
    fn the_file_has_the_bytes_of_the_store() {
        use std::os::unix::fs::FileExt;
        let store = ByteStore::in_file(10_000).unwrap();
        store.write(4000, b"here");
        let mut found = [0; 4];
        store.file().unwrap().read_exact_at(&mut found, 4000).unwrap();
        assert_eq!(&found, b"here");
        assert!(store.file().unwrap().set_len(9999).is_err(), "its size is sealed");
    }

    #[test]
    fn ranges_out_of_bounds_panic() {
        let store = ByteStore::zeroed(100).unwrap();
        for (offset, length) in [(0, 101), (100, 1), (usize::MAX, 2)] {
            let reached = std::panic::catch_unwind(|| store.read(offset, &mut vec![0; length]));
            assert!(reached.is_err(), "{offset} {length}");
        }
    }
}
