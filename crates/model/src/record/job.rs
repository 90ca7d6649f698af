//! What a job did, as it counted itself.

use super::is_first;
use crate::histogram::Histogram;
use crate::injected::Injected;
use crate::unit::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// The results of one job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JobRecord {
    /// The job's name.
    pub name: String,
    /// Index of the copy (`numjobs`), from 0.
    pub copy: u32,
    /// Jobs of one group ran at the same time, groups one after the other.
    #[serde(default, skip_serializing_if = "is_first")]
    pub group: u32,
    /// Whether the copies are reported as one job.
    pub group_reporting: bool,
    /// The I/O engine.
    pub engine: String,
    /// Reads.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// Trims.
    pub trim: Direction,
    /// I/Os whose direction the program does not report.
    pub mixed: Option<Box<Direction>>,
    /// Packets that were sent and did not arrive, as the program reports them; `None` if no packet was lost.
    pub lost: Option<Lost>,
    /// Its counts leave out I/O that the machine paid for, so that no cost can be divided by them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncounted: bool,
    /// fsync and fdatasync calls.
    pub syncs: u64,
    /// Blocks that were checked; `None` if the job does not verify.
    pub verified: Option<Verified>,
    /// I/Os that failed.
    pub errors: u64,
    /// The first error, in words.
    pub error: Option<String>,
    /// Time from the first submission that counts to the last completion.
    pub wall_nanos: Nanos,
    /// CPU time of the job's thread.
    pub thread_nanos: Option<Nanos>,
    /// What the kernel counts for the job's thread.
    pub usage: Option<ThreadUsage>,
    /// System calls that submit, wait for, or do I/O.
    pub syscalls: Option<u64>,
    /// Error of timestamps; only if a batch of I/Os shares them.
    pub stamp_error: Option<StampError>,
    /// The stages of latency, if the engine measures them.
    pub stages: Option<Box<StageLatencies>>,
    /// Busy work added to each I/O.
    pub injected_ns: Option<Injected>,
    /// Percentiles to report, in percent.
    pub percentiles: Vec<f64>,
}

/// Blocks that were read and compared with what was written. Those that a job reads back when it has written everything are neither
/// in its I/Os nor in its cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Blocks.
    pub ios: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// Blocks that are not as they were written.
    pub wrong: u64,
}

impl Verified {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            ios: self.ios.saturating_add(other.ios),
            bytes: Bytes(self.bytes.0.saturating_add(other.bytes.0)),
            wrong: self.wrong.saturating_add(other.wrong),
        }
    }
}

impl JobRecord {
    /// I/Os of all directions that a cost can be divided by; 0 if the counts leave out some. Saturates, because the numbers in a file may
    /// be arbitrary.
    pub fn ios(&self) -> u64 {
        if self.uncounted { 0 } else { self.reported_ios() }
    }

    /// Bytes of all directions; 0 likewise.
    pub fn bytes(&self) -> Bytes {
        if self.uncounted { Bytes(0) } else { self.directions().map(|direction| direction.bytes).sum() }
    }

    /// I/Os of all directions, also if they are not all that the machine paid for.
    pub fn reported_ios(&self) -> u64 {
        self.directions().map(|direction| direction.ios).fold(0, u64::saturating_add)
    }

    /// Reads, writes and trims, and the I/Os that may be either.
    pub fn directions(&self) -> impl Iterator<Item = &Direction> {
        [&self.read, &self.write, &self.trim].into_iter().chain(self.mixed.as_deref())
    }
}

/// Packets that were sent and did not arrive; `None` if the program cannot know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Of those that were sent to this side. They are not among its reads.
    pub read: Option<u64>,
    /// Of those that this side sent. They are among its writes.
    pub write: Option<u64>,
}

impl Lost {
    /// No packet was lost.
    pub const NONE: Self = Self { read: Some(0), write: Some(0) };
}

/// The stages of each I/O to a remote server, in ticks of the record's clock. They sum to its latency.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StageLatencies {
    /// From the issue of the I/O until its first byte is passed to the kernel.
    pub backlog_wait: Histogram,
    /// From then until the kernel has all of it, if the engine measures that.
    pub sending: Option<Histogram>,
    /// From then until the client has parsed the reply.
    pub round_trip: Histogram,
    /// From then until the job sees the completion.
    pub delivery: Histogram,
}

/// How far the timestamps of a batch are from the events that they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StampError {
    /// Mean over I/Os.
    pub mean_nanos: f64,
    /// Largest.
    pub max_nanos: Nanos,
}

/// The results of one direction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Direction {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes completed.
    pub bytes: Bytes,
    /// Number of short I/Os, which moved fewer bytes than requested.
    pub short: u64,
    /// Latency from submission to completion.
    pub latency: Latency,
}

/// Recorded latencies.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Latency {
    /// Not recorded.
    #[default]
    None,
    /// Of iotoll's own engines, in TSC ticks.
    Ticks(Histogram),
    /// As reported by a foreign program.
    Reported {
        /// Mean.
        mean_nanos: f64,
        /// Largest.
        max_nanos: Nanos,
        /// Pairs of percent and value.
        percentiles: Vec<(f64, Nanos)>,
    },
}

/// CPU time by mode, context switches and page faults of the threads of a job while its I/Os counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUsage {
    /// CPU time in user mode.
    pub user_nanos: Nanos,
    /// CPU time in the kernel.
    pub system_nanos: Nanos,
    /// Context switches, voluntary and not.
    pub context_switches: u64,
    /// Page faults that waited for storage.
    pub major_faults: u64,
    /// Page faults that did not.
    pub minor_faults: u64,
}

impl ThreadUsage {
    /// What was used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_nanos: self.user_nanos.since(earlier.user_nanos),
            system_nanos: self.system_nanos.since(earlier.system_nanos),
            context_switches: self.context_switches.saturating_sub(earlier.context_switches),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
        }
    }

    /// What both used.
    pub fn plus(self, other: Self) -> Self {
        Self {
            user_nanos: self.user_nanos + other.user_nanos,
            system_nanos: self.system_nanos + other.system_nanos,
            context_switches: self.context_switches.saturating_add(other.context_switches),
            major_faults: self.major_faults.saturating_add(other.major_faults),
            minor_faults: self.minor_faults.saturating_add(other.minor_faults),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_and_its_sum() {
        let of = |times: u64| ThreadUsage {
            user_nanos: Nanos(times),
            system_nanos: Nanos(2 * times),
            context_switches: 3 * times,
            major_faults: 4 * times,
            minor_faults: 5 * times,
        };
        assert_eq!(of(7).since(of(3)), of(4));
        assert_eq!(of(7).plus(of(3)), of(10));
    }
}
