//! Whether what is asked for of a mapped file can be taken to be in memory.
//!
//! What is in memory is cheapest sent from there. What is not is better read: a page fault within a send reads less at one time, and has no
//! error that a client could be told. To ask the system about each range costs as much as to read it. So some are asked about, and while all of
//! these are in memory, the others are taken to be; major faults tell when that was wrong.

use crate::backoff::Backoff;

/// So many ranges in a row have to be in memory.
const ENOUGH: u32 = 16;
/// It is looked whether that was right after each so many reads: the two system calls take less than a hundredth of them.
const READS: u32 = 64;

/// What is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Residency {
    /// Ranges in a row that were in memory, up to [`ENOUGH`].
    found: u32,
    /// When to ask, as long as that are too few.
    backoff: Backoff,
    /// Reads since faults were counted.
    reads: u32,
    /// The thread's faults then.
    faults: u64,
}

impl Residency {
    /// Whether a range is taken to be in memory. `look` asks about it, `faults` are those of this thread so far.
    #[inline]
    pub fn has(&mut self, look: impl FnOnce() -> bool, faults: impl FnOnce() -> u64) -> bool {
        if self.found >= ENOUGH {
            self.reads += 1;
            return true;
        }
        if !self.backoff.take() {
            return false;
        }
        let there = look();
        if !there {
            self.found = 0;
            self.backoff.note(false);
            return false;
        }
        self.found += 1;
        if self.found == ENOUGH {
            (self.reads, self.faults) = (0, faults());
        }
        true
    }

    /// Whether so much was sent that was taken to be in memory that it is to be seen whether it was.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.found >= ENOUGH && self.reads >= READS
    }

    /// The thread's faults by now.
    pub fn sent(&mut self, faults: u64) {
        let right = faults == self.faults;
        (self.reads, self.faults) = (0, faults);
        self.backoff.note(right);
        if !right {
            self.found = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::note_skipped;
    use rustix::fs::{Advice, fadvise};
    use std::cell::Cell;
    use std::os::unix::fs::FileExt;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use sys::mapped_file::MappedFile;
    use sys::process::major_faults;
    use sys::send_batch::{SendBatch, Source};

    #[test]
    fn a_send_that_waits_for_a_device_is_a_fault_and_one_that_does_not_is_none() {
        const BYTES: usize = 64 << 10;
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[7; BYTES], 0).unwrap();
        file.sync_all().unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        let mapped = Arc::new(MappedFile::new(&file, BYTES).unwrap());
        if mapped.is_cached(0, BYTES) {
            return note_skipped("residency", "the temporary folder's files do not leave memory");
        }
        let mut batch = SendBatch::new(Source::File(mapped.clone()));
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut faults = || {
            let before = major_faults();
            batch.gather(0, 4096);
            assert_eq!(batch.send(&ours).unwrap(), 4096);
            major_faults() - before
        };
        assert!(faults() > 0);
        assert!(mapped.is_cached(0, 4096));
        assert_eq!(faults(), 0);
        let is_dropped = || {
            fadvise(&file, 0, None, Advice::DontNeed).unwrap();
            !mapped.is_cached(0, 4096)
        };
        assert!(!is_dropped());
        mapped.let_go();
        assert!(is_dropped(), "when nobody is there");
    }

    #[test]
    fn what_was_there_often_enough_is_not_looked_for_until_there_is_a_fault() {
        let (looks, faults) = (Cell::new(0), Cell::new(7));
        let mut residency = Residency::default();
        let mut ask = |there: bool| {
            let look = || {
                looks.set(looks.get() + 1);
                there
            };
            let has = residency.has(look, || faults.get());
            if residency.is_due() {
                residency.sent(faults.get());
            }
            has
        };
        assert!(!ask(false) && !ask(true), "the one after a miss is let go by");
        (0..100).for_each(|_| assert!(ask(true)));
        assert_eq!(looks.get(), 1 + ENOUGH);
        faults.set(8);
        let before_it_is_known = (0..1000).take_while(|_| ask(false)).count();
        assert!(before_it_is_known <= READS as usize, "{before_it_is_known}");
        looks.set(0);
        (0..1000).for_each(|_| assert!(!ask(false)));
        assert!(looks.get() < 20, "{}", looks.get());
        let until_there_again = (0..1000).take_while(|_| !ask(true)).count();
        assert!(until_there_again <= 127, "{until_there_again}");
    }
}
