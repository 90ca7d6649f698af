//! The results of a job's I/O: written only by its worker while it runs, read by other threads at boundaries.

use super::Stages;
use crate::workload::request_source::Kind;
use model::histogram::Histogram;
use model::record::StageLatencies;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Results of one worker. Their size does not depend on the length of the run.
#[derive(Clone, Debug)]
pub struct Tally {
    /// One for each [`Kind`].
    pub kinds: [KindTally; 3],
    /// fsync and fdatasync calls.
    pub syncs: u64,
    /// Start of counting, in ticks.
    pub begin_ticks: u64,
    /// The last completion, in ticks.
    pub end_ticks: u64,
    /// Sum of the possible lateness of the stamps, in ticks.
    pub stamp_error_sum: u64,
    /// Largest such error, in ticks.
    pub stamp_error_max: u64,
    /// Number of I/Os in this sum.
    pub stamp_error_count: u64,
    /// Only of engines that measure them.
    pub stages: Option<Box<StageLatencies>>,
}

/// Results of one direction. The number of I/Os is the total of the histogram.
#[derive(Clone, Debug, Default)]
pub struct KindTally {
    /// Bytes moved.
    pub bytes: u64,
    /// I/Os that moved fewer bytes than requested.
    pub short: u64,
    /// Submission to completion, in ticks.
    pub latency: Histogram,
}

impl Tally {
    /// An empty tally that counts from `begin_ticks`.
    pub fn new(begin_ticks: u64) -> Self {
        Self {
            kinds: Default::default(),
            syncs: 0,
            begin_ticks,
            end_ticks: begin_ticks,
            stamp_error_sum: 0,
            stamp_error_max: 0,
            stamp_error_count: 0,
            stages: None,
        }
    }

    /// Discards everything up to `begin_ticks` and keeps the memory: the end of the ramp.
    pub fn restart(&mut self, begin_ticks: u64) {
        for kind in &mut self.kinds {
            kind.latency.clear();
            (kind.bytes, kind.short) = (0, 0);
        }
        self.syncs = 0;
        (self.begin_ticks, self.end_ticks) = (begin_ticks, begin_ticks);
        (self.stamp_error_sum, self.stamp_error_max, self.stamp_error_count) = (0, 0, 0);
        if let Some(stages) = &mut self.stages {
            let StageLatencies { backlog_wait, sending, round_trip, delivery } = stages.as_mut();
            [backlog_wait, round_trip, delivery].into_iter().chain(sending).for_each(Histogram::clear);
        }
    }

    /// Counts an fsync or fdatasync that ended at this time. As in fio, the last one is part of the job's time.
    pub fn count_sync(&mut self, now: u64) {
        self.syncs += 1;
        self.end_ticks = now;
    }

    /// Counts one successful I/O.
    #[inline(always)]
    pub fn count(&mut self, kind: Kind, asked: u32, moved: u32, latency_ticks: u64) {
        let tally = &mut self.kinds[kind as usize];
        tally.bytes += u64::from(moved);
        tally.short += u64::from(moved < asked);
        tally.latency.record(latency_ticks, 1);
    }

    /// Counts the time of one I/O in each stage between issue and reaping.
    #[inline]
    pub fn count_stages(&mut self, issued: u64, stages: Stages, reaped: u64) {
        let Stages { handed_over, sent, answered } = stages;
        let latencies = self.stages.get_or_insert_default();
        latencies.backlog_wait.record(handed_over.saturating_sub(issued), 1);
        if let Some(sent) = sent {
            latencies.sending.get_or_insert_default().record(sent.saturating_sub(handed_over), 1);
        }
        latencies.round_trip.record(answered.saturating_sub(sent.unwrap_or(handed_over)), 1);
        latencies.delivery.record(reaped.saturating_sub(answered), 1);
    }

    /// Notes that `count` stamps may be late by up to `ticks` in all and `most` each.
    #[inline(always)]
    pub fn note_stamp_error(&mut self, ticks: u64, most: u64, count: u64) {
        self.stamp_error_sum += ticks;
        self.stamp_error_max = self.stamp_error_max.max(most);
        self.stamp_error_count += count;
    }
}

/// I/Os and bytes so far, written by one worker and read by other threads while it runs.
///
/// A sequence number guards the pair: without it one snapshot in a thousand here had the I/Os of one batch and the
/// bytes of another (docs/method/windows.md). On x86 all of it is plain stores.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct LiveCounters {
    sequence: AtomicU64,
    ios: AtomicU64,
    bytes: AtomicU64,
}

impl LiveCounters {
    /// Adds to the counters. Only their worker calls this.
    #[inline(always)]
    pub fn add(&self, ios: u64, bytes: u64) {
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.ios.store(self.ios.load(Ordering::Relaxed) + ios, Ordering::Relaxed);
        self.bytes.store(self.bytes.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(2), Ordering::Release);
    }

    /// The I/Os so far. Never waits for the worker.
    pub fn ios(&self) -> u64 {
        self.ios.load(Ordering::Relaxed)
    }

    /// The bytes so far. Never waits for the worker.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Both counters at one instant.
    ///
    /// A reader with a real-time priority may have preempted the worker within an addition, on its CPU: then only sleeping lets it go on.
    pub fn read(&self) -> (u64, u64) {
        /// An addition takes some nanoseconds.
        const SPINS: u32 = 1000;
        const NAP: std::time::Duration = std::time::Duration::from_micros(20);
        let mut spins = 0;
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            let pair = (self.ios.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.sequence.load(Ordering::Relaxed) == before {
                return pair;
            }
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::sleep(NAP);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_reader_never_sees_half_of_an_addition() {
        let (live, stop) = (Arc::new(LiveCounters::default()), Arc::new(AtomicBool::new(false)));
        let writer = {
            let (live, stop) = (live.clone(), stop.clone());
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    live.add(1, 4096);
                }
            })
        };
        for _ in 0..200_000 {
            let (ios, bytes) = live.read();
            assert_eq!(bytes, ios * 4096);
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    }

    #[test]
    fn the_last_sync_is_part_of_the_job_s_time() {
        let mut tally = Tally::new(5);
        tally.count_sync(77);
        assert_eq!((tally.syncs, tally.end_ticks), (1, 77));
    }

    #[test]
    fn the_ramp_leaves_nothing_behind() {
        let mut tally = Tally::new(5);
        tally.count(Kind::Write, 512, 100, 77);
        tally.note_stamp_error(3, 3, 1);
        tally.restart(9);
        assert_eq!(tally.kinds[1].latency.total() + tally.kinds[1].bytes + tally.kinds[1].short, 0);
        assert_eq!((tally.begin_ticks, tally.stamp_error_count), (9, 0));
    }
}
