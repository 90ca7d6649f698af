//! What was read during a comparison, before anything is computed from it.
//!
//! A record consists of a header, rounds, and an end. Each is written as one line during the measurement, so that a
//! crash does not lose it; a record without an end was cut off.

use model::events::Events;
pub use model::experiment::CacheCondition;
use model::experiment::{Experiment, WorkCounter};
use model::kind::Envelope;
use model::page_cache::CachedPages;
use model::probe::Descriptor;
use model::reading::Reading;
use model::record::{Canaries, Host, MeterStatus, Outcome};
pub use model::slice::{CaseLatency, CommandReading, CommandTotal, RoundRecord, SliceReading, SliceRecord, SliceWork};
use model::unit::Nanos;
use model::warning::Warning;
use serde::{Deserialize, Serialize};

/// An experiment, as far as it was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompareRecord {
    /// What is known before the first round.
    pub header: Header,
    /// Complete rounds, in order.
    pub rounds: Vec<RoundRecord>,
    /// Explaining rounds, after all others: their slices keep exact accounts, count events or are sampled, which disturbs them. Nothing else
    /// uses them.
    pub explaining: Vec<RoundRecord>,
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
    pub page_cache: Option<CacheSetup>,
    /// What counts the I/Os of commands that take turns in slices.
    pub work_counter: Option<WorkCounter>,
    /// The probes that are read at both ends of each slice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<Descriptor>,
    /// The events that explaining rounds count, or why they do not; `None` if none are to be counted.
    pub events: Option<Events>,
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
    },
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

/// A line of the record.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// What is known before the first round.
    Header(Box<Header>),
    Round(RoundRecord),
    /// An explaining round. A version that does not know them does not take it for one of the answer.
    Explaining(RoundRecord),
    /// How the experiment ended.
    End(Box<End>),
}
