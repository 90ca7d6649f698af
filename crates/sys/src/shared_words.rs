//! Memory that processes share, as atomic words, and waiting until one of them changes.
//!
//! A memory file is sealed against shrinking when it is made, so that no process can take away what another has
//! mapped. All access is atomic; what is written by one process at worst surprises another, it never breaks it.

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use rustix::thread::futex;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of the signals: words that can be waited for.
const SIGNAL_BYTES: usize = 4096;
/// How many signals there are.
pub const SIGNALS: usize = SIGNAL_BYTES / size_of::<AtomicU32>();

/// Signals and words, mapped.
#[derive(Debug)]
pub struct SharedWords {
    memory: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is only ever reached through atomics, and is unmapped by the last owner alone.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// New memory for `words` words, all zero, and `text` behind them; and the file that another process opens it
    /// by.
    pub fn create(words: usize, text: &[u8]) -> io::Result<(Self, File)> {
        let file = rustix::fs::memfd_create("iotoll", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let file = File::from(file);
        let length = (words.checked_mul(8)).and_then(|bytes| bytes.checked_add(SIGNAL_BYTES));
        let length = length.ok_or(io::ErrorKind::InvalidInput)?;
        file.set_len(length as u64)?;
        file.write_all_at(text, length as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok((Self::map(&file, length)?, file))
    }

    /// What another process made for `words` words, and the text behind them.
    ///
    /// # Errors
    /// When the file is not of this kind, or shorter than that.
    pub fn open(file: &File, words: usize) -> io::Result<(Self, Vec<u8>)> {
        let seals = rustix::fs::fcntl_get_seals(file)?;
        let length = (words.checked_mul(8)).and_then(|bytes| bytes.checked_add(SIGNAL_BYTES));
        let length = length.ok_or(io::ErrorKind::InvalidInput)?;
        let whole = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        if !seals.contains(SealFlags::SHRINK) || whole < length {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut text = vec![0; whole - length];
        file.read_exact_at(&mut text, length as u64)?;
        Ok((Self::map(file, length)?, text))
    }

    fn map(file: &File, bytes: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing of ours; the file is sealed
        // against shrinking, so all of it stays backed.
        let memory = unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, 0) }?;
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { memory, bytes })
    }

    /// The signals, [`SIGNALS`] of them.
    #[inline(always)]
    pub fn signals(&self) -> &[AtomicU32] {
        // SAFETY: the mapping is page-aligned, at least SIGNAL_BYTES long, lives as long as `self`, and is only
        // reached through atomics, for which every bit pattern is a value.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), SIGNALS) }
    }

    /// The words.
    #[inline(always)]
    pub fn words(&self) -> &[AtomicU64] {
        let count = (self.bytes - SIGNAL_BYTES) / size_of::<AtomicU64>();
        // SAFETY: as for the signals; the words lie behind them, and SIGNAL_BYTES keeps them aligned.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(SIGNAL_BYTES).cast(), count) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: this mapping was made by `map` with this length, and nobody can have a reference into it.
        // Unmapping a whole mapping does not fail.
        let _ = unsafe { rustix::mm::munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}

/// Sleeps while `signal` is `value`, at most for `timeout`. It may return earlier for no reason.
pub fn wait_while(signal: &AtomicU32, value: u32, timeout: Duration) {
    if signal.load(Ordering::Acquire) != value {
        return;
    }
    let timeout = rustix::time::Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // Woken, timed out, interrupted or changed before it slept: the caller looks again in any case.
    let _ = futex::wait(signal, futex::Flags::empty(), value, Some(&timeout));
}

/// Wakes all that wait for `signal`.
pub fn wake_all(signal: &AtomicU32) {
    // It fails for no valid address.
    let _ = futex::wake(signal, futex::Flags::empty(), i32::MAX.unsigned_abs());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_are_one_memory_and_the_text_is_behind_it() {
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
    fn what_is_no_such_memory_is_an_error() {
        let (_, file) = SharedWords::create(1, b"").unwrap();
        assert!(SharedWords::open(&file, 2).is_err(), "shorter than asked for");
        assert!(SharedWords::open(&File::open("/dev/null").unwrap(), 0).is_err(), "no memory file");
        assert!(file.set_len(0).is_err(), "sealed");
    }
}
