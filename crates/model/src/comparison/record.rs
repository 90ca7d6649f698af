//! What was read while comparing, before anything is computed from it.
//!
//! A record is a header, then rounds, then an end. It is written as it is measured, a line each, so that what was
//! measured survives whatever happens next; a record without an end was cut off.

use crate::envelope::Envelope;
use crate::experiment::Experiment;
use crate::histogram::Histogram;
use crate::injected::Injected;
use crate::page_cache::CachedPages;
use crate::reading::Reading;
use crate::record::{Canaries, Execution, Host, MeterStatus, Outcome, Snapshot, TaskTimes};
use crate::unit::{Bytes, Nanos};
use crate::warning::Warning;
use serde::{Deserialize, Serialize};

/// One experiment, as far as it was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompareRecord {
    /// What is known before the first round.
    pub header: Header,
    /// Complete rounds, in order.
    pub rounds: Vec<RoundRecord>,
    /// The boots that were measured, in order; each round holds one of each arm, and the last ones may be of none yet.
    #[serde(default)]
    pub boots: Vec<BootRecord>,
    /// How it ended; `None` when it was cut off.
    pub end: Option<End>,
}

/// What is known before the first round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Header {
    /// The record's first line.
    #[serde(skip)]
    pub envelope: Envelope,
    /// What is compared.
    pub experiment: Experiment,
    /// Seed of the order of slices.
    pub seed: u64,
    /// How each round is cut.
    pub schedule: Schedule,
    /// Where.
    pub host: Host,
    /// Which meters run, and why others do not.
    pub meters: Vec<MeterStatus>,
    /// Speeds of a stated set of operations, before.
    pub canaries: Canaries,
    /// What was done about the page cache; `None` where no job goes through it.
    #[serde(default)]
    pub page_cache: Option<CacheSetup>,
}

/// What was done about the page cache before the first round and is kept up through all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheSetup {
    /// What the files' pages are when a slice begins.
    pub condition: CacheCondition,
    /// Who decided that, in words.
    pub reason: String,
    /// Just before the first round.
    pub before: Reading<CachedPages>,
}

/// What the pages of the jobs' files are when a slice begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheCondition {
    /// In memory, all of them.
    Warm,
    /// On the disk, all of them.
    Cold,
    /// As they happen to be.
    AsIs,
    /// Dropped once, before the first round, and as they happen to be from then on (`invalidate=1`).
    DroppedOnce,
    /// Arms differ: `invalidate=1` drops them before each slice, `invalidate=0` has them read in before it.
    ByArm,
}

/// How a round is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Warm workers, fresh in each round; slices of all cases in random order, block after block.
    Slices {
        /// Length of a slice.
        slice_nanos: Nanos,
        /// I/O before each slice that does not count.
        warm_up_nanos: Nanos,
        /// Blocks in a round.
        blocks: u32,
    },
    /// Each case once in each round, with workers of its own, ended by a sync.
    WholeRounds {
        /// Length of a slice.
        slice_nanos: Nanos,
    },
    /// Each case once in each round, from its beginning to its end.
    Executions,
    /// Each arm booted once in each round, and measured as the [`BootRecord`] says.
    Boots,
}

/// One boot of an arm.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BootRecord {
    /// Of which round, from 0.
    pub round: usize,
    /// Which arm was booted.
    pub arm: usize,
    /// The kernel's name for this boot.
    pub boot_id: String,
    /// When its measurement began.
    pub started_unix_seconds: f64,
    /// What was booted.
    pub host: Host,
    /// How it was measured.
    pub within: Schedule,
    /// Speeds of a stated set of operations, before.
    pub canaries: Canaries,
    /// Caveats seen while measuring.
    pub warnings: Vec<Warning>,
}

/// How it ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct End {
    /// How.
    pub outcome: Outcome,
    /// Why it ended, when it completed: precise enough, or the budget.
    pub reason: String,
    /// The reference clock, measured over the whole experiment.
    pub tsc_hertz: f64,
    /// Speeds of a stated set of operations, after.
    pub canaries: Canaries,
    /// Caveats seen while measuring.
    pub warnings: Vec<Warning>,
}

/// One round: every case was measured as often as every other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RoundRecord {
    /// CLOCK_MONOTONIC when it began, its workers not yet started.
    pub begin_nanos: Nanos,
    /// When its last slice had ended.
    pub end_nanos: Nanos,
    /// In order of time.
    pub slices: Vec<SliceRecord>,
    /// Submission to completion in all slices of a case, in ticks of the TSC.
    pub latencies: Vec<CaseLatency>,
    /// How many of the slices belong to each boot, in order; empty where all are of one. The machine alone is another one
    /// in each boot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boots: Vec<usize>,
}

/// Latencies of a case in one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseLatency {
    /// Which case.
    pub case: usize,
    /// Reads, writes and trims together.
    pub ticks: Histogram,
    /// Busy work that was added to each I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub injected_ns: Option<Injected>,
}

/// One slice, or a time in which nothing of ours ran.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SliceRecord {
    /// Which case; `None` for the machine alone.
    pub case: Option<usize>,
    /// What the machine did in it.
    pub reading: SliceReading,
}

/// What was read at a slice's ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SliceReading {
    /// Of a worker of ours, or of the machine alone.
    Slice {
        /// Just before it began.
        before: Box<Snapshot>,
        /// Just after the last I/O in flight was done.
        after: Box<Snapshot>,
        /// What was done; nothing for the machine alone.
        work: SliceWork,
        /// CPU time of every task of the machine, of slices that are long enough to read them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tasks: Option<TaskTimes>,
    },
    /// Of a foreign command, with windows in between.
    Execution(Execution),
}

/// What the workers of a case did in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceWork {
    /// I/Os, all of them submitted and completed in the slice.
    pub ios: u64,
    /// Bytes that they moved.
    pub bytes: Bytes,
    /// From the first submission to the last completion, or the end of the sync after it.
    pub wall_nanos: Nanos,
    /// CPU time of the workers' threads.
    pub thread_nanos: Nanos,
    /// Sum over I/Os of submission to completion.
    pub latency_nanos: Nanos,
    /// Bytes of reads alone; `None` in records that do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<Bytes>,
    /// Bytes that storage read for the workers meanwhile, where the kernel tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_read: Option<Bytes>,
}
