//! What was read during a comparison, before anything is computed from it.
//!
//! A record consists of a header, rounds, and an end. Each is written as one line during the measurement, so that a
//! crash does not lose it; a record without an end was cut off.

use crate::envelope::Envelope;
use crate::experiment::{Experiment, WorkCounter};
use crate::histogram::Histogram;
use crate::injected::Injected;
use crate::page_cache::CachedPages;
use crate::probe::Descriptor;
use crate::reading::Reading;
use crate::record::{Canaries, Done, Execution, Host, MeterStatus, Outcome, Snapshot, TaskTimes};
use crate::unit::{Bytes, Nanos};
use crate::warning::Warning;
use serde::{Deserialize, Serialize};

/// An experiment, as far as it was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompareRecord {
    /// What is known before the first round.
    pub header: Header,
    /// Complete rounds, in order.
    pub rounds: Vec<RoundRecord>,
    /// The measured boots, in order. Each round contains one boot of each arm; the last boots may not belong to a round
    /// yet.
    #[serde(default)]
    pub boots: Vec<BootRecord>,
    /// How the experiment ended; `None` if it was cut off.
    pub end: Option<End>,
}

/// What is known before the first round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Header {
    /// The first line of the record.
    #[serde(skip)]
    pub envelope: Envelope,
    /// What is compared.
    pub experiment: Experiment,
    /// Seed of the slice order.
    pub seed: u64,
    /// How a round is divided.
    pub schedule: Schedule,
    /// The machine.
    pub host: Host,
    /// All meters: which run, and why others do not.
    pub meters: Vec<MeterStatus>,
    /// Speeds of canary operations before the experiment.
    pub canaries: Canaries,
    /// The page cache condition; `None` if no job uses the page cache.
    #[serde(default)]
    pub page_cache: Option<CacheSetup>,
    /// What counts the I/Os of commands that take turns in slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_counter: Option<WorkCounter>,
    /// The probes that are read at both ends of each slice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<Descriptor>,
}

/// The page cache condition, established before the first round and maintained through all rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheSetup {
    /// State of the files' pages when a slice begins.
    pub condition: CacheCondition,
    /// Why this condition was chosen, in words.
    pub reason: String,
    /// The pages in memory just before the first round.
    pub before: Reading<CachedPages>,
}

/// The state of the pages of the jobs' files when a slice begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CacheCondition {
    /// All in memory.
    Warm,
    /// None in memory.
    Cold,
    /// Not controlled.
    AsIs,
    /// Dropped once before the first round, then not controlled (`invalidate=1`).
    DroppedOnce,
    /// Differs by arm: `invalidate=1` drops the pages before each slice, `invalidate=0` reads them in before it.
    ByArm,
}

/// How a round is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Workers are started anew in each round; the slices of all cases are in random order, in blocks.
    Slices {
        /// Length of a slice.
        slice_nanos: Nanos,
        /// Length of the discarded I/O before each slice.
        warm_up_nanos: Nanos,
        /// Number of blocks in a round.
        blocks: u32,
    },
    /// Each case runs once in each round with its own workers, followed by a sync.
    WholeRounds {
        /// Length of a slice.
        slice_nanos: Nanos,
    },
    /// Each case is executed once in each round, from beginning to end.
    Executions,
    /// Commands are started anew in each round and take turns; all but one are frozen. The slices of all cases of a cell
    /// are in random order, in blocks.
    SlicedCommands {
        /// Length of a slice.
        slice_nanos: Nanos,
        /// Length of the discarded time after each switch.
        guard_nanos: Nanos,
        /// Number of blocks of each cell in a round.
        blocks: u32,
        /// All commands of a round run on one CPU, which is drawn for each round.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        one_cpu: bool,
    },
    /// Each arm is booted once in each round, and measured as its [`BootRecord`] says.
    Boots,
}

/// One boot of an arm.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BootRecord {
    /// Index of the round, from 0.
    pub round: usize,
    /// Index of the arm.
    pub arm: usize,
    /// The kernel's boot ID.
    pub boot_id: String,
    /// Start of its measurement, in seconds since 1970.
    pub started_unix_seconds: f64,
    /// The machine as booted.
    pub host: Host,
    /// How it was measured.
    pub within: Schedule,
    /// Speeds of canary operations before the measurement.
    pub canaries: Canaries,
    /// Caveats that were found during the measurement.
    pub warnings: Vec<Warning>,
}

/// How it ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct End {
    /// The outcome.
    pub outcome: Outcome,
    /// Why a completed experiment ended: precision reached, or budget used up.
    pub reason: String,
    /// The reference clock, measured over the whole experiment.
    pub tsc_hertz: f64,
    /// Speeds of canary operations after the experiment.
    pub canaries: Canaries,
    /// Caveats that were found during the measurement.
    pub warnings: Vec<Warning>,
}

/// One round: every case is measured equally often.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RoundRecord {
    /// CLOCK_MONOTONIC at its start, before its workers start.
    pub begin_nanos: Nanos,
    /// CLOCK_MONOTONIC after its last slice.
    pub end_nanos: Nanos,
    /// In order of time.
    pub slices: Vec<SliceRecord>,
    /// Latency from submission to completion in all slices of each case, in TSC ticks.
    pub latencies: Vec<CaseLatency>,
    /// Number of slices of each boot, in order; empty without boots. The background is measured separately for each
    /// boot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boots: Vec<usize>,
    /// What each command did from its start to its end, if commands took turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandTotal>,
    /// The CPU on which all of them ran; `None` if they did not share one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
}

/// What a command did from its start to its end, in one round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandTotal {
    /// Indices of the cases that it ran for: several if their arms differ only by settings.
    pub cases: Vec<usize>,
    /// The I/Os that it reports itself; `None` if it does not report them.
    pub own: Option<Done>,
    /// The bytes of them that it read; `None` if it does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
        #[serde(default, skip_serializing_if = "Option::is_none")]
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
    /// The readings at both ends of a slice; `None` for an execution.
    pub fn ends(&self) -> Option<(&Snapshot, &Snapshot)> {
        match self {
            Self::Slice { before, after, .. } | Self::Command { before, after, .. } => Some((before, after)),
            Self::Execution(_) => None,
        }
    }
}

/// What a sliced command had done at an instant, since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandReading {
    /// CLOCK_MONOTONIC.
    pub at_nanos: Nanos,
    /// The count of the counter; `None` if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Read and write calls of its processes, if the counter knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// CPU time of its processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_nanos: Option<Nanos>,
    /// Bytes that its processes read by system calls, if the kernel reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<Bytes>,
    /// Bytes that storage read for its processes, if the kernel reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<Bytes>,
    /// Bytes that storage read for the workers, if the kernel reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_read: Option<Bytes>,
}
