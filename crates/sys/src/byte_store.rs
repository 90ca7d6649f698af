//! Bytes that several threads and the kernel read and write at once, as they do a disk's.

use crate::buffer::AlignedBuffer;
use crate::shared_copy::{Copying, copy};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

/// What receiving does while there is nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It says so.
    Never,
    /// It waits until there is something.
    UntilSome,
}

/// Memory that is shared like a disk: everybody may read and write any of it at any time, and who reads what another
/// writes at the same time gets some of the old and some of the new. So nobody gets a reference into it: bytes are
/// copied in and out, or the kernel is told to.
#[derive(Debug)]
pub struct ByteStore {
    memory: AlignedBuffer,
    length: usize,
    copying: Copying,
    /// Whose pages they are.
    file: Option<Arc<File>>,
}

// SAFETY: after `new` no reference to the bytes exists; they are reached by copies that the compiler does not see
// into (`copy`) and by the kernel, as memory is that is shared with another process.
unsafe impl Sync for ByteStore {}

impl ByteStore {
    /// Zeros, in huge pages where the system gives them.
    ///
    /// # Errors
    /// When there is not so much address space, or the limits do not allow it.
    pub fn zeroed(length: usize) -> io::Result<Self> {
        let memory = AlignedBuffer::zeroed(length)?;
        want_huge_pages(&memory, length);
        Ok(Self { memory, length, copying: Copying::default(), file: None })
    }

    /// Zeros in the pages of a file that is in memory only, so that the kernel can send them without a copy.
    ///
    /// # Errors
    /// When there is not so much of it.
    pub fn in_file(length: usize) -> io::Result<Self> {
        // A file may be longer than there is memory. Whether that much can be had at all, the system says when it is asked for as
        // much without a file.
        drop(AlignedBuffer::zeroed(length)?);
        let file = File::from(rustix::fs::memfd_create("iotoll", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
        file.set_len(length as u64)?;
        // What is behind the end of a file that became shorter cannot be touched.
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let memory = AlignedBuffer::shared(&file, length)?;
        want_huge_pages(&memory, length);
        Ok(Self { memory, length, copying: Copying::default(), file: Some(Arc::new(file)) })
    }

    /// Bytes are copied in and out so.
    pub fn copied(self, copying: Copying) -> Self {
        Self { copying, ..self }
    }

    /// The file whose pages they are, if there is one.
    pub fn file(&self) -> Option<&Arc<File>> {
        self.file.as_ref()
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Where a range begins; it may be used while `self` lives.
    ///
    /// # Panics
    /// When the range is not inside: a broken caller, who would otherwise reach memory that is not its own.
    #[inline]
    pub(crate) fn address(&self, offset: usize, length: usize) -> *mut u8 {
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.length);
        assert!(inside, "{length} bytes at {offset} are not within {} bytes", self.length);
        self.memory.pointer().wrapping_add(offset)
    }

    /// Copies out.
    ///
    /// # Panics
    /// When the range is not inside.
    #[inline]
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let from = self.address(offset, into.len());
        // SAFETY: both ranges are valid for so many bytes, and `into` is borrowed from elsewhere, so they are apart.
        unsafe { copy(self.copying, into.as_mut_ptr(), from, into.len()) };
    }

    /// Copies out, behind what is in `into`.
    ///
    /// # Panics
    /// When the range is not inside.
    #[inline]
    pub fn append_to(&self, offset: usize, length: usize, into: &mut Vec<u8>) {
        let from = self.address(offset, length);
        into.reserve(length);
        let begin = into.len();
        // SAFETY: the range of `self` is valid, the vector has room for so many bytes behind its length, and they are
        // initialised when its length is set.
        unsafe {
            copy(self.copying, into.as_mut_ptr().add(begin), from, length);
            into.set_len(begin + length);
        }
    }

    /// Copies in.
    ///
    /// # Panics
    /// When the range is not inside.
    #[inline]
    pub fn write(&self, offset: usize, from: &[u8]) {
        let into = self.address(offset, from.len());
        // SAFETY: as for `read`.
        unsafe { copy(self.copying, into, from.as_ptr(), from.len()) };
    }

    /// Receives from a socket straight into a range, what there is; bytes received.
    ///
    /// # Errors
    /// What recv says: WouldBlock when there is nothing and `waiting` is [`Waiting::Never`].
    ///
    /// # Panics
    /// When the range is not inside.
    pub fn receive(&self, offset: usize, length: usize, socket: &impl AsFd, waiting: Waiting) -> io::Result<usize> {
        let into = self.address(offset, length);
        let flags = if waiting == Waiting::Never { libc::MSG_DONTWAIT } else { 0 };
        // SAFETY: the range is valid for so many bytes while `self` lives, and the kernel may write it at any time.
        let count = unsafe { libc::recv(socket.as_fd().as_raw_fd(), into.cast(), length, flags) };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// Makes a range zero. Whole pages are given back to the system.
    ///
    /// # Panics
    /// When the range is not inside.
    pub fn zero(&self, offset: usize, length: usize) {
        const PAGE: usize = 4096;
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

/// A kernel that gives none is as right, and slower.
fn want_huge_pages(memory: &AlignedBuffer, length: usize) {
    // SAFETY: advice about a range that was mapped just now; it changes no content.
    let _ = unsafe { rustix::mm::madvise(memory.pointer().cast(), length.max(1), rustix::mm::Advice::LinuxHugepage) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_in_and_come_out() {
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
    fn zeros_begin_and_end_where_they_are_asked_for() {
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
    fn a_file_s_bytes_are_those_of_the_store() {
        use std::os::unix::fs::FileExt;
        let store = ByteStore::in_file(10_000).unwrap();
        store.write(4000, b"here");
        let mut found = [0; 4];
        store.file().unwrap().read_exact_at(&mut found, 4000).unwrap();
        assert_eq!(&found, b"here");
        assert!(store.file().unwrap().set_len(9999).is_err(), "nobody makes it shorter");
    }

    #[test]
    fn nothing_outside_is_reached() {
        let store = ByteStore::zeroed(100).unwrap();
        for (offset, length) in [(0, 101), (100, 1), (usize::MAX, 2)] {
            let reached = std::panic::catch_unwind(|| store.read(offset, &mut vec![0; length]));
            assert!(reached.is_err(), "{offset} {length}");
        }
    }
}
