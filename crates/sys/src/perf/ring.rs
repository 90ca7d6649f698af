//! The ring buffer in which the kernel delivers samples: one page of control data, then the ring.
//!
//! The kernel writes at `data_head`, this process reads at `data_tail`; both only grow, and their remainder modulo the
//! ring size is the position. The kernel never writes between tail and head, so those bytes are stable until the tail
//! moves. No slice of the shared memory is ever created: bytes are copied out first.

use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Offsets in `struct perf_event_mmap_page` of include/uapi/linux/perf_event.h.
const DATA_HEAD_OFFSET: usize = 1024;
const DATA_TAIL_OFFSET: usize = 1032;

/// A mapped sample buffer.
pub(super) struct Ring {
    base: NonNull<u8>,
    /// Size of the control page, and so the offset of the ring.
    page: usize,
    /// Size of the ring: a power of two.
    size: usize,
}

// SAFETY: the mapping belongs to this value alone and is not tied to the thread that created it; the other party is the
// kernel, with which the atomics below synchronise.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps a buffer of `pages` pages of samples, rounded up to a power of two as the kernel requires.
    pub(super) fn map(event: &OwnedFd, pages: NonZeroUsize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let too_large = || io::Error::from(io::ErrorKind::InvalidInput);
        let size = pages.get().checked_next_power_of_two().and_then(|pages| pages.checked_mul(page));
        let size = size.ok_or_else(too_large)?;
        let length = size.checked_add(page).ok_or_else(too_large)?;
        // SAFETY: a new mapping at an address that the kernel chooses overlaps nothing.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(address.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { base, page, size })
    }

    /// Moves all bytes that the kernel has finished writing into `into`, oldest first, and frees their space.
    pub(super) fn take(&mut self, into: &mut Vec<u8>) {
        into.clear();
        // Acquire: the records before the head are complete.
        let head = self.position(DATA_HEAD_OFFSET).load(Ordering::Acquire);
        // Only this process moves the tail.
        let tail = self.position(DATA_TAIL_OFFSET).load(Ordering::Relaxed);
        for piece in pieces(tail, head, self.size) {
            let length = piece.len();
            into.reserve(length);
            // SAFETY: `pieces` returns ranges inside the ring, which is behind the control page in the mapping; the
            // kernel does not write between tail and head; `into` has room for `length` more bytes, which are
            // initialised before they are included in its length.
            unsafe {
                let from = self.base.as_ptr().add(self.page + piece.start);
                let to = into.as_mut_ptr().add(into.len());
                std::ptr::copy_nonoverlapping(from, to, length);
                into.set_len(into.len() + length);
            }
        }
        // Release: the bytes have been copied before the kernel may overwrite them.
        self.position(DATA_TAIL_OFFSET).store(head, Ordering::Release);
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both offsets are in the control page, which lives as long as `self`, and are multiples of 8 from a
        // page boundary; the kernel reads and writes these words as whole words.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: exactly what `map` mapped, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.page + self.size) };
    }
}

/// The ranges of the bytes from `tail` to `head` in a ring of `size` bytes: one, or two if they wrap around.
fn pieces(tail: u64, head: u64, size: usize) -> [Range<usize>; 2] {
    let length = usize::try_from(head.wrapping_sub(tail)).unwrap_or(usize::MAX).min(size);
    let start = usize::try_from(tail % size as u64).unwrap_or(0);
    let first = length.min(size - start);
    [start..start + first, 0..length - first]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_wrap_around_are_two_pieces() {
        assert_eq!(pieces(0, 24, 64), [0..24, 0..0]);
        assert_eq!(pieces(48, 80, 64), [48..64, 0..16]);
        assert_eq!(pieces(64, 128, 64), [0..64, 0..0]);
        assert_eq!(pieces(100, 100, 64), [36..36, 0..0]);
    }

    #[test]
    fn positions_may_wrap_and_invalid_ones_stay_inside_the_ring() {
        assert_eq!(pieces(u64::MAX - 7, 8, 64), [56..64, 0..8]);
        assert_eq!(pieces(0, 1 << 40, 64), [0..64, 0..0]);
    }
}
