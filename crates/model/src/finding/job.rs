//! The results of one job: counts, rates and latencies.

use crate::ThreadUsage;
use crate::histogram::Histogram;
use crate::injected::Injected;
use crate::plan::JobPlan;
use crate::record::Verified;
use crate::unit::{Hertz, Ticks};
use serde::{Deserialize, Serialize};

/// The results of a job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JobFinding {
    /// Name of the job.
    pub name: String,
    /// Name of the I/O engine.
    pub engine: String,
    /// Number of copies that are reported together.
    pub copies: u32,
    /// The slowest and the fastest of these copies; `null` if the fastest has at most 20 % more I/Os per second.
    pub copies_apart: Option<CopiesApart>,
    /// All directions together.
    #[serde(flatten)]
    pub all: DirectionFinding,
    /// Number of failed I/Os.
    pub errors: u64,
    /// The first error; `null` if there was none.
    pub error: Option<String>,
    /// Time from the first submission to the last completion, in seconds.
    pub wall_seconds: f64,
    /// Results of reads.
    pub read: DirectionFinding,
    /// Results of writes.
    pub write: DirectionFinding,
    /// Results of trims.
    pub trim: DirectionFinding,
    /// Results of the I/Os of a foreign command whose direction is unknown (fio's `unified_rw_reporting=1`, `--ios`, `--count`); `null` if
    /// there are none.
    pub mixed: Option<DirectionFinding>,
    /// Number of fsync and fdatasync calls.
    pub syncs: u64,
    /// Blocks that were checked; `null` if the job does not verify. Those that a job reads back when it has written everything are
    /// not among its I/Os, and their cost is not measured.
    pub verified: Option<Verified>,
    /// Cycles of the job's own threads per I/O; `null` if the regimes of its phase are different loads.
    pub thread_cycles_per_io: Option<f64>,
    /// I/Os per system call; counts system calls that submit, wait for, or do I/O.
    pub ios_per_crossing: Option<f64>,
    /// The stages of the latency, if the engine measures them; the means of the stages sum to the mean latency.
    pub stages_ns: Option<StagesFinding>,
    /// Busy work added to each I/O (`inject_ns`); `null` if there is none.
    pub injected_ns: Option<Injected>,
    /// Its phase's cycles per I/O, if it is the only job of the phase, otherwise `null`.
    pub cycles_per_io: Option<f64>,
    /// Index of its phase in `phases`, from 0.
    pub phase: usize,
    /// What the kernel counts for the job's threads; `null` for a foreign command.
    pub usage: Option<ThreadUsage>,
    /// The job's options, all resolved; `null` for jobs of a foreign command.
    pub plan: Option<Box<JobPlan>>,
}

/// The slowest and the fastest copy of a job. Copies are numbered from 0, as in the names of their files.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct CopiesApart {
    /// Number of the slowest copy.
    pub slowest: u32,
    /// I/Os per second of the slowest copy.
    pub slowest_iops: f64,
    /// Number of the fastest copy.
    pub fastest: u32,
    /// I/Os per second of the fastest copy.
    pub fastest_iops: f64,
}

/// One direction of a job, or all of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DirectionFinding {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes completed.
    pub bytes: u64,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Number of short I/Os, which moved fewer bytes than requested.
    pub short: u64,
    /// Packets that a foreign program reports as lost. Those that it sent are among its I/Os, those that were sent to it are not.
    /// `null` if the program cannot know: iperf3's server does not learn what its client received.
    pub lost: Option<u64>,
    /// Latency, in nanoseconds.
    pub latency_ns: LatencyFinding,
}

/// The stages of an I/O to a remote server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StagesFinding {
    /// From the issue of the I/O until its first byte is passed to the kernel.
    pub backlog_wait: LatencyFinding,
    /// From then until the system call that sends it has returned, which on loopback contains the way to the server's socket; `null`
    /// where it is part of the round trip, because the engine does not measure it.
    pub sending: Option<LatencyFinding>,
    /// From then until the client has parsed the reply.
    pub round_trip: LatencyFinding,
    /// From then until the job sees the completion.
    pub delivery: LatencyFinding,
}

impl StagesFinding {
    /// The stages in order, with their names.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &LatencyFinding)> {
        let sending = self.sending.iter().map(|sending| ("sending", sending));
        let others = [("round trip", &self.round_trip), ("delivery", &self.delivery)];
        std::iter::once(("backlog wait", &self.backlog_wait)).chain(sending).chain(others)
    }
}

/// Latency from submission to completion, in nanoseconds. A value is `null` if there were too few I/Os.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LatencyFinding {
    /// Mean latency.
    pub mean: Option<f64>,
    /// Median latency.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// 99.99th percentile.
    pub p9999: Option<f64>,
    /// Largest latency.
    pub max: Option<f64>,
    /// The requested percentiles: pairs of percent and value.
    pub percentiles: Vec<(f64, Option<f64>)>,
    /// Maximum relative width of a histogram bucket, which bounds the relative error of percentiles.
    pub bucket_error_fraction: Option<f64>,
    /// Mean error of timestamps that a batch of I/Os shares.
    pub stamp_error_mean: Option<f64>,
    /// Maximum error of timestamps that a batch of I/Os shares.
    pub stamp_error_max: Option<f64>,
    /// The whole distribution.
    #[serde(skip)]
    pub bins: LatencyBins,
}

/// Latencies with the number of I/Os of each, in nanoseconds, ascending. A value stands for a bucket of the histogram that it was
/// recorded in, at most 0.78 % wide, whose middle it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyBins(Vec<(u64, u64)>);

impl LatencyBins {
    /// The filled buckets of a histogram of ticks of `clock`.
    pub fn of(histogram: &Histogram, clock: Hertz) -> Self {
        let mut bins: Vec<(u64, u64)> = Vec::new();
        for bucket in histogram.buckets() {
            let ticks = Ticks(bucket.middle().min(histogram.max()));
            let nanos = clock.nanos(ticks).0;
            match bins.last_mut() {
                // A tick may be shorter than a nanosecond.
                Some((value, count)) if *value == nanos => *count = count.saturating_add(bucket.count),
                _ => bins.push((nanos, bucket.count)),
            }
        }
        Self(bins)
    }

    /// Pairs of nanoseconds and I/Os, ascending.
    pub fn pairs(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// I/Os of all values.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, count)| *count).fold(0, u64::saturating_add)
    }

    /// The smallest value; `None` without I/Os.
    pub fn min(&self) -> Option<u64> {
        self.0.first().map(|(value, _)| *value)
    }

    /// The standard deviation of a sample, in nanoseconds; 0 for fewer than two I/Os.
    pub fn deviation(&self) -> f64 {
        let total = self.total() as f64;
        if total < 2.0 {
            return 0.0;
        }
        let weighted = |of: &dyn Fn(f64) -> f64| -> f64 {
            self.0.iter().map(|(value, count)| of(*value as f64) * *count as f64).sum()
        };
        let mean = weighted(&|value| value) / total;
        (weighted(&|value| (value - mean).powi(2)) / (total - 1.0)).sqrt()
    }

    /// The value that `percent` of the I/Os do not exceed, however few there are; `None` without I/Os.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let rank = (self.total() as f64 * percent / 100.0).ceil();
        let mut seen: u64 = 0;
        let reaches = |(_, count): &&(u64, u64)| {
            seen = seen.saturating_add(*count);
            seen as f64 >= rank
        };
        self.0.iter().find(reaches).or(self.0.last()).map(|(value, _)| *value)
    }

    /// The share of all I/Os, in percent, from `begin` to below `end` nanoseconds; 0 without I/Os.
    pub fn share(&self, begin: u64, end: u64) -> f64 {
        let total = self.total();
        let within = self.0.iter().filter(|(value, _)| (begin..end).contains(value));
        let count = within.map(|(_, count)| *count).fold(0, u64::saturating_add);
        if total > 0 { count as f64 * 100.0 / total as f64 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_is_described_by_its_buckets() {
        let mut histogram = Histogram::new();
        histogram.record(100, 3);
        histogram.record(200, 1);
        let bins = LatencyBins::of(&histogram, Hertz(1e9));
        assert_eq!(bins.pairs(), [(100, 3), (200, 1)]);
        assert_eq!((bins.total(), bins.min(), bins.deviation()), (4, Some(100), 50.0));
        assert_eq!([75.0, 75.1, 100.0].map(|percent| bins.percentile(percent)), [Some(100), Some(200), Some(200)]);
        assert_eq!((bins.share(100, 200), bins.share(0, 100)), (75.0, 0.0));
        // Two ticks of 0.4 ns are one nanosecond.
        let fast = LatencyBins::of(&histogram, Hertz(1e12));
        assert_eq!(fast.pairs(), [(0, 4)]);
        let none = LatencyBins::default();
        assert_eq!((none.min(), none.percentile(50.0), none.deviation(), none.share(0, 9)), (None, None, 0.0, 0.0));
    }
}
