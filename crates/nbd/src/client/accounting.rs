//! Counters of requests in flight, incremented and decremented by each request. They reproduce what a file system does
//! for each direct I/O of an inode (i_dio_count), and so the cost of a counter that all CPUs write.

use std::sync::atomic::{AtomicU64, Ordering};

/// Where requests in flight are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accounting {
    /// Only in the connection itself.
    #[default]
    None,
    /// In a counter per connection.
    PerThread,
    /// In one counter for all connections of the process.
    Shared,
}

/// A counter in cache lines of its own; two lines, because processors prefetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Apart(AtomicU64);

static SHARED: Apart = Apart(AtomicU64::new(0));

/// The counter that a connection uses.
#[derive(Debug)]
pub enum Account {
    None,
    Own(Box<Apart>),
    /// That of the process.
    Shared,
}

impl Account {
    /// The counter of a new connection.
    pub fn new(accounting: Accounting) -> Self {
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

    /// Like inode_dio_begin.
    #[inline]
    pub fn begin(&self) {
        if let Some(word) = self.word() {
            word.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Like inode_dio_end. Release: a thread that reads zero also sees the effects of the requests.
    #[inline]
    pub fn end(&self) {
        if let Some(word) = self.word() {
            word.fetch_sub(1, Ordering::Release);
        }
    }

    /// Requests in flight in this counter; `None` if they are not counted.
    #[cfg(test)]
    pub(super) fn in_flight(&self) -> Option<u64> {
        self.word().map(|word| word.load(Ordering::Acquire))
    }
}
