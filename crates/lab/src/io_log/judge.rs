//! Judges latencies for a job that looks for a queue depth (`latency_target`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the I/Os that took longer than the target. Its clones share the count: the log notes, the search reads.
#[derive(Clone, Debug)]
pub(crate) struct Judge {
    target_ticks: u64,
    late: Arc<AtomicU64>,
}

impl Judge {
    /// A judge that has seen nothing.
    pub(crate) fn new(target_ticks: u64) -> Self {
        Self { target_ticks, late: Arc::default() }
    }

    /// Judges the latency of an I/O.
    #[inline]
    pub(crate) fn note(&self, latency_ticks: u64) {
        if latency_ticks > self.target_ticks {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// I/Os that took longer so far.
    pub(crate) fn late(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }
}
