//! What to record: a worker, and how often it is read.

use crate::plan::Plan;
use crate::unit::Nanos;
use serde::{Deserialize, Serialize};

/// Quantum of the seed's figures: 440 µs.
pub const QUANTUM: Nanos = Nanos(440_000);
/// Shortest quantum: a reading of the worker alone takes about 1 µs, one probe of /proc/vmstat 27 µs.
pub const SHORTEST_QUANTUM: Nanos = Nanos(10_000);
/// Most quanta of one recording: an hour of quanta of 440 µs is 8.2 million.
pub const MOST_QUANTA: u64 = 20_000_000;

/// A plan for `iotoll ftq`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FtqPlan {
    /// The worker whose progress is read.
    pub worker: Worker,
    /// Time between two deadlines of the recorder.
    pub quantum: Nanos,
    /// Length of the recording.
    pub duration: Nanos,
    /// CPU of the recorder; `None` if the scheduler chooses.
    pub recorder_cpu: Option<u32>,
    /// CPU of the worker, if iotoll starts it; `None` if the scheduler chooses.
    pub worker_cpu: Option<u32>,
    /// Seed of random offsets and of the study's shuffled series.
    pub seed: u64,
}

/// Whose progress is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Worker {
    /// One thread of iotoll that does the I/O of this plan, which has one job, without pause.
    Job(Box<Plan>),
    /// One thread of iotoll that computes without pause (`--cpu`): FTQ itself.
    Cpu,
    /// A command that iotoll starts.
    Command(Vec<String>),
    /// A process that runs already (`--pid`).
    Process(u32),
}
