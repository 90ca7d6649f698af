//! Slices: the readings at both ends of a piece of work of one case, and rounds of them. Comparisons and blasts record them; `rounds` has what
//! was measured between two such ends, or in an execution.

pub mod command;
mod execution;
pub(crate) mod rounds;

pub use command::{bytes_of_a_message, counts};
pub use rounds::{CaseLoad, Choice, Measured, MeasuredSlices, Round, Rounds, SliceCost, why_unmetered};

use crate::group_limit::LimitWindow;
use crate::histogram::Histogram;
use crate::injected::Injected;
use crate::record::{Done, Execution, IoInterval, Mode, Snapshot, Stretch, TaskTimes};
use crate::unit::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// One round: every case is measured equally often.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RoundRecord {
    /// CLOCK_MONOTONIC at its start, before its workers start.
    pub begin_nanos: Nanos,
    /// CLOCK_MONOTONIC after its last slice.
    pub end_nanos: Nanos,
    /// In order of time.
    pub slices: Vec<SliceRecord>,
    /// Slices that end as soon as they begin, in rounds that count events: what is in them is in every slice, whatever its length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<SliceRecord>,
    /// Latency from submission to completion in all slices of each case, in TSC ticks.
    pub latencies: Vec<CaseLatency>,
    /// What each command did from its start to its end, if commands took turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandTotal>,
    /// The CPUs on which all arms ran, which were drawn for this round; empty if something else placed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
}

impl RoundRecord {
    /// The limits of the load's control groups at both ends of each of its slices, and those of each execution apart.
    pub fn limits(&self) -> Vec<Vec<LimitWindow<'_>>> {
        let (mut executions, mut slices) = (Vec::new(), Vec::new());
        for slice in self.slices.iter().filter(|slice| slice.case.is_some()) {
            match &slice.reading {
                SliceReading::Execution(execution) => executions.push(execution.limits()),
                other => slices.extend(other.ends().map(|(before, after)| [before.limits(), after.limits()])),
            }
        }
        executions.push(slices);
        executions
    }
}

/// What a command did from its start to its end, in one round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandTotal {
    /// Indices of the cases that it ran for: several if their arms differ only by settings.
    pub cases: Vec<usize>,
    /// The I/Os that it reports itself; `None` if it does not report them.
    pub own: Option<Done>,
    /// The bytes of them that it read; `None` if it does not report them.
    pub own_read: Option<Bytes>,
    /// The count of the counter.
    pub count: u64,
}

/// Latencies of a case in a round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseLatency {
    /// Index of the case.
    pub case: usize,
    /// Latencies of reads, writes and trims together.
    pub ticks: Histogram,
    /// Busy work added to each I/O.
    pub injected_ns: Option<Injected>,
}

/// One slice, or a time without a workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SliceRecord {
    /// Index of the case; `None` for the idle machine.
    pub case: Option<usize>,
    /// What was read in it.
    pub reading: SliceReading,
}

/// The readings at the ends of a slice.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SliceReading {
    /// Of iotoll's workers, or of the idle machine.
    Slice {
        /// Just before it began.
        before: Box<Snapshot>,
        /// Just after the last I/O in flight completed.
        after: Box<Snapshot>,
        /// The work done; zero for the idle machine.
        work: SliceWork,
        /// CPU time of every task of the machine, if the slice is long enough to read them.
        tasks: Option<TaskTimes>,
    },
    /// Of a foreign command, with windows in between.
    Execution(Execution),
    /// Of a foreign command that takes turns with others.
    Command {
        /// At the beginning of the slice, after the guard.
        before: Box<Snapshot>,
        /// What the command had done just before that.
        first: CommandReading,
        /// What it had done just before the end.
        last: CommandReading,
        /// At the end of the slice, before the command is frozen.
        after: Box<Snapshot>,
    },
}

impl SliceReading {
    /// Each reading of the machine with the next one, in order of time: both ends of a slice, the windows of an execution.
    pub fn pairs(&self) -> impl Iterator<Item = (&Snapshot, &Snapshot)> {
        let windows = if let Self::Execution(execution) = self { Some(execution.stretch.pairs()) } else { None };
        self.ends().into_iter().chain(windows.into_iter().flatten())
    }

    /// Whether the counter of a command could not be read at an end of its slice, which then is left out.
    pub fn is_uncounted(&self) -> bool {
        matches!(self, Self::Command { first, last, .. } if first.count.and(last.count).is_none())
    }

    /// The time of I/O of an execution, if it is a part of it.
    pub(crate) fn io_interval(&self) -> Option<IoInterval> {
        if let Self::Execution(execution) = self { execution.io_interval } else { None }
    }

    /// The readings at both ends of a slice; `None` for an execution.
    pub fn ends(&self) -> Option<(&Snapshot, &Snapshot)> {
        match self {
            Self::Slice { before, after, .. } | Self::Command { before, after, .. } => Some((before, after)),
            Self::Execution(_) => None,
        }
    }

    /// Stolen CPU seconds, and the CPU seconds between the two readings.
    pub(crate) fn stolen(&self, cpus: f64) -> (f64, f64) {
        let ends = match self {
            Self::Slice { .. } | Self::Command { .. } => self.ends(),
            Self::Execution(Execution { stretch: Stretch { snapshots, .. }, .. }) => {
                let measured = |snapshot: &&Snapshot| snapshot.mode != Mode::Gap;
                snapshots.iter().find(measured).zip(snapshots.last())
            }
        };
        let read = ends.and_then(|(before, after)| {
            let (first, last) = (before.system.as_ref()?, after.system.as_ref()?);
            let watched = after.at_nanos.since(before.at_nanos).seconds() * cpus;
            Some((last.steal_nanos.since(first.steal_nanos).seconds(), watched))
        });
        read.unwrap_or((0.0, 0.0))
    }
}

/// What a sliced command had done at an instant, since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandReading {
    /// CLOCK_MONOTONIC.
    pub at_nanos: Nanos,
    /// The count of the counter; `None` if it could not be read.
    pub count: Option<u64>,
    /// Read and write calls of its processes, if the counter knows them.
    pub calls: Option<u64>,
    /// Segments with data that its TCP sockets received and sent, if the counter reads them.
    pub segments: Option<u64>,
    /// CPU time of its processes.
    pub thread_nanos: Option<Nanos>,
    /// Bytes that its processes read by system calls, if the kernel reports it.
    pub read_bytes: Option<Bytes>,
    /// Bytes that storage read for its processes, if the kernel reports it.
    pub storage_read: Option<Bytes>,
}

/// The work of the workers of a case in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceWork {
    /// I/Os submitted and completed in the slice.
    pub ios: u64,
    /// Bytes that they moved.
    pub bytes: Bytes,
    /// Time from the first submission to the last completion, or to the end of the sync after it.
    pub wall_nanos: Nanos,
    /// CPU time of the workers' threads.
    pub thread_nanos: Nanos,
    /// Sum of the latencies of all I/Os, from submission to completion.
    pub latency_nanos: Nanos,
    /// Bytes of reads; `None` in records without this field.
    pub read_bytes: Option<Bytes>,
    /// Bytes that storage read for the workers, if the kernel reports it.
    pub storage_read: Option<Bytes>,
}
