//! Memory shared between processes as atomic words, with waiting for changes (futex).
//!
//! The memory file is sealed against shrinking at creation, so no process can remove pages that another has mapped. All
//! access is atomic: an unexpected value from another process is possible, undefined behaviour is not.

use crate::buffer::AlignedBuffer;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::thread::futex;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Size of the signals: words that can be waited for.
const SIGNAL_BYTES: usize = 4096;
/// Number of signals.
pub const SIGNALS: usize = SIGNAL_BYTES / size_of::<AtomicU32>();

/// Signals and words, mapped.
#[derive(Debug)]
pub struct SharedWords {
    memory: AlignedBuffer,
    words: usize,
}

// SAFETY: the memory is accessed only through atomics.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Creates zeroed memory of `words` words with `text` behind them. Also returns the file by which another process
    /// opens it.
    pub fn create(words: usize, text: &[u8]) -> io::Result<(Self, File)> {
        let file = rustix::fs::memfd_create("iotoll", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let file = File::from(file);
        let length = length_of(words)?;
        file.set_len(length as u64)?;
        file.write_all_at(text, length as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok((Self { memory: AlignedBuffer::shared(&file, length, true)?, words }, file))
    }

    /// Opens memory of `words` words that another process created. Also returns the text behind them.
    ///
    /// # Errors
    /// When the file was not created by [`create`](Self::create) or is too short.
    pub fn open(file: &File, words: usize) -> io::Result<(Self, Vec<u8>)> {
        let seals = rustix::fs::fcntl_get_seals(file)?;
        let length = length_of(words)?;
        let whole = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        if !seals.contains(SealFlags::SHRINK) || whole < length {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut text = vec![0; whole - length];
        file.read_exact_at(&mut text, length as u64)?;
        // Sealed against shrinking, so all pages stay valid.
        Ok((Self { memory: AlignedBuffer::shared(file, length, true)?, words }, text))
    }

    /// The signals, [`SIGNALS`] of them.
    #[inline(always)]
    pub fn signals(&self) -> &[AtomicU32] {
        // SAFETY: the mapping is page-aligned, at least SIGNAL_BYTES long, lives as long as `self`, and is accessed
        // only through atomics, for which every bit pattern is valid.
        unsafe { std::slice::from_raw_parts(self.memory.pointer().cast(), SIGNALS) }
    }

    /// The words.
    #[inline(always)]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: as for the signals; the words are behind them, and SIGNAL_BYTES keeps them aligned.
        unsafe { std::slice::from_raw_parts(self.memory.pointer().add(SIGNAL_BYTES).cast(), self.words) }
    }
}

/// Bytes of the signals and this number of words.
fn length_of(words: usize) -> io::Result<usize> {
    let length = words.checked_mul(8).and_then(|bytes| bytes.checked_add(SIGNAL_BYTES));
    Ok(length.ok_or(io::ErrorKind::InvalidInput)?)
}

/// Sleeps while `signal` is `value`, at most for `timeout`. May return early (spurious wake-up).
pub fn wait_while(signal: &AtomicU32, value: u32, timeout: Duration) {
    if signal.load(Ordering::Acquire) != value {
        return;
    }
    let timeout = rustix::time::Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // Woken, timed out, interrupted, or changed before the sleep: the caller checks again in any case.
    let _ = futex::wait(signal, futex::Flags::empty(), value, Some(&timeout));
}

/// Wakes all threads that wait for `signal`.
pub fn wake_all(signal: &AtomicU32) {
    // Cannot fail for a valid address.
    let _ = futex::wake(signal, futex::Flags::empty(), i32::MAX.unsigned_abs());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_share_memory_and_the_text_follows() {
        let (ours, file) = SharedWords::create(3, b"plan").unwrap();
        let (theirs, text) = SharedWords::open(&file, 3).unwrap();
        ours.words()[2].store(7, Ordering::Relaxed);
        assert_eq!(theirs.words()[2].load(Ordering::Relaxed), 7);
        assert_eq!((theirs.words().len(), theirs.signals().len()), (3, SIGNALS));
        assert_eq!(text, b"plan");
    }

    #[test]
    fn a_change_wakes_the_waiter() {
        let (ours, file) = SharedWords::create(0, b"").unwrap();
        let (theirs, _) = SharedWords::open(&file, 0).unwrap();
        let waiter = std::thread::spawn(move || {
            while theirs.signals()[0].load(Ordering::Acquire) == 0 {
                wait_while(&theirs.signals()[0], 0, Duration::from_secs(60));
            }
        });
        ours.signals()[0].store(1, Ordering::Release);
        wake_all(&ours.signals()[0]);
        waiter.join().unwrap();
    }

    #[test]
    fn opening_other_files_is_an_error() {
        let (_, file) = SharedWords::create(1, b"").unwrap();
        assert!(SharedWords::open(&file, 2).is_err(), "too short");
        assert!(SharedWords::open(&File::open("/dev/null").unwrap(), 0).is_err(), "not a memory file");
        assert!(file.set_len(0).is_err(), "sealed");
    }
}
