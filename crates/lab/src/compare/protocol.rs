//! The protocol between the scheduler and a worker process: signals and words in shared memory.

use crate::engine::worker::STOP_SIGNAL;
use crate::placing::Placing;
use crate::workload::target::Target;
use model::injected::Injected;
use model::plan::Phase;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use sys::shared_words::SharedWords;

/// Incremented for each slice; [`QUIT`] ends the process. (1 is [`STOP_SIGNAL`]: finish the I/Os in flight and return.)
const TURN: usize = 0;
/// Number of threads that wait for their next turn.
const ARRIVED: usize = 2;
/// 1: the latencies of this slice count.
const KEEP: usize = 3;
/// The value of the last turn.
pub(super) const QUIT: u32 = u32::MAX;

/// Words per thread: two cache lines, so that neighbours do not disturb each other.
pub(super) const WORDS_PER_THREAD: usize = 16;

/// The job of a worker process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Assignment {
    /// Jobs and their copies, one thread each.
    pub phase: Phase,
    /// Files of each thread, found or made by the scheduler: a worker makes and claims no files, and does not change
    /// the page cache.
    pub targets: Vec<Vec<Target>>,
    /// Process id of the scheduler.
    pub scheduler: u32,
    /// Rate of the time-stamp counter.
    pub clock_hertz: f64,
    /// The CPUs of each thread.
    pub placing: Placing,
}

impl Assignment {
    pub fn threads(&self) -> usize {
        self.phase.jobs.iter().map(|job| job.copies.max(1) as usize).sum()
    }
}

/// The signals of a worker process, by name.
#[derive(Clone, Copy)]
pub(super) struct Signals<'a>(&'a SharedWords);

impl<'a> Signals<'a> {
    pub fn of(words: &'a SharedWords) -> Self {
        Self(words)
    }

    fn signal(self, place: usize) -> &'a AtomicU32 {
        // There is a page of signals, of which four are used.
        #[expect(clippy::indexing_slicing, reason = "places are constants far below SIGNALS")]
        &self.0.signals()[place]
    }

    pub fn turn(self) -> &'a AtomicU32 {
        self.signal(TURN)
    }

    pub fn stop(self) -> &'a AtomicU32 {
        self.signal(STOP_SIGNAL)
    }

    pub fn arrived(self) -> &'a AtomicU32 {
        self.signal(ARRIVED)
    }

    pub fn keep(self) -> &'a AtomicU32 {
        self.signal(KEEP)
    }
}

/// The work of one thread in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Report {
    pub ios: u64,
    pub bytes: u64,
    /// Time of the first submission.
    pub begin_ticks: u64,
    /// Time of the last completion, or of the sync after it.
    pub end_ticks: u64,
    pub thread_nanos: u64,
    /// Sum of all latencies, from submission to completion.
    pub latency_ticks: u64,
    /// The bytes that were read.
    pub read_bytes: u64,
    /// Busy work added to each I/O, requested and burnt; `None` is stored as two zeros.
    pub injected_ns: Option<Injected>,
    /// The CPU at the start of the slice, and at its end.
    pub cpus: Option<[u32; 2]>,
}

impl Report {
    /// Writes it into shared memory; the arrival afterwards makes it visible.
    pub fn publish(self, words: &SharedWords, thread: usize) {
        let Self { ios, bytes, begin_ticks, end_ticks, thread_nanos, latency_ticks, read_bytes, injected_ns, cpus } =
            self;
        let [asked, burnt] =
            injected_ns.map_or([0, 0], |injected| [injected.asked.to_bits(), injected.burnt.to_bits()]);
        // Stored plus one, because 0 means none.
        let [begin, end] = cpus.map_or([0, 0], |cpus| cpus.map(|cpu| u64::from(cpu) + 1));
        let values =
            [ios, bytes, begin_ticks, end_ticks, thread_nanos, latency_ticks, read_bytes, asked, burnt, begin, end];
        let slot = words.words().iter().skip(thread * WORDS_PER_THREAD);
        slot.zip(values).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    }

    /// Reads the report of `thread`.
    pub fn read(words: &SharedWords, thread: usize) -> Self {
        let mut slot = words.words().iter().skip(thread * WORDS_PER_THREAD);
        let cpu = |word: u64| u32::try_from(word.checked_sub(1)?).ok();
        let mut next = || slot.next().map_or(0, |word: &AtomicU64| word.load(Ordering::Relaxed));
        Self {
            ios: next(),
            bytes: next(),
            begin_ticks: next(),
            end_ticks: next(),
            thread_nanos: next(),
            latency_ticks: next(),
            read_bytes: next(),
            injected_ns: Some(Injected { asked: f64::from_bits(next()), burnt: f64::from_bits(next()) })
                .filter(|injected| injected.asked > 0.0),
            cpus: cpu(next()).zip(cpu(next())).map(|(begin, end)| [begin, end]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_published() {
        let (words, _) = SharedWords::create(2 * WORDS_PER_THREAD, b"").unwrap();
        let injected_ns = Some(Injected { asked: 7.5, burnt: 8.5 });
        let report = Report {
            ios: 1,
            bytes: 2,
            begin_ticks: 3,
            end_ticks: 4,
            thread_nanos: 5,
            latency_ticks: 6,
            read_bytes: 7,
            injected_ns,
            cpus: Some([0, 3]),
        };
        report.publish(&words, 1);
        assert_eq!(Report::read(&words, 1), report);
        assert_eq!(Report::read(&words, 0), Report::default());
    }
}
