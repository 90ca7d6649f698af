//! Counting what is in flight where others can see it, up and down with each request: what a file system does for each direct
//! I/O of an inode (i_dio_count), and what a word that all CPUs write costs.

use std::sync::atomic::{AtomicU64, Ordering};

/// Where requests in flight are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accounting {
    /// Nobody but the connection itself.
    #[default]
    None,
    /// Each connection, in a word that no other writes.
    PerThread,
    /// All connections of the process, in one word.
    Shared,
}

/// A word in cache lines of its own; two, because processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Apart(AtomicU64);

static SHARED: Apart = Apart(AtomicU64::new(0));

/// One connection's count.
#[derive(Debug)]
pub(super) enum Account {
    None,
    Own(Box<Apart>),
    Shared,
}

impl Account {
    pub(super) fn new(accounting: Accounting) -> Self {
        match accounting {
            Accounting::None => Self::None,
            Accounting::PerThread => Self::Own(Box::default()),
            Accounting::Shared => Self::Shared,
        }
    }

    fn word(&self) -> Option<&AtomicU64> {
        match self {
            Self::None => None,
            Self::Own(word) => Some(&word.0),
            Self::Shared => Some(&SHARED.0),
        }
    }

    /// As inode_dio_begin.
    #[inline]
    pub(super) fn begin(&self) {
        if let Some(word) = self.word() {
            word.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// As inode_dio_end: whoever sees zero sees what the requests did.
    #[inline]
    pub(super) fn end(&self) {
        if let Some(word) = self.word() {
            word.fetch_sub(1, Ordering::Release);
        }
    }

    /// So many are in flight that are counted here; `None` when nobody counts.
    pub(super) fn in_flight(&self) -> Option<u64> {
        self.word().map(|word| word.load(Ordering::Acquire))
    }
}
