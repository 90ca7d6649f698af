//! Every number that a report may show, worked out from a record by [`crate::study`].
//!
//! This is also the JSON of `run` and `cost`, schema `iotoll.run/1`: fields are added, never renamed.
//! `null` means unknown, and a warning says why. Costs are net of the machine's background unless the
//! name ends in `_gross`.

use crate::injected::Injected;
use crate::page_cache::CacheFinding;
use crate::placement::PlacementFinding;
use crate::plan::JobPlan;
use crate::probe::Kind;
use crate::record::{Canaries, Exit, Host, Outcome, TaskOwner};
use crate::stats::Estimate;
use crate::stored::{StoredFinding, UnpairedChange};
use crate::warning::Warning;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema name in the JSON.
pub const SCHEMA: &str = "iotoll.run/1";

/// What a run or a command cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunFinding {
    /// [`SCHEMA`].
    pub schema: String,
    /// The meaning of the numbers; see [`crate::envelope::Kind::method_version`].
    pub method_version: u32,
    /// What was measured, in one line: the job names or the command.
    pub title: String,
    /// When the measurement began.
    pub started_unix_seconds: f64,
    /// The command line, as typed.
    pub command_line: Vec<String>,
    /// Where the I/O count comes from, in words; `null` for our own engines.
    pub counted_by: Option<String>,
    /// The machine.
    pub host: Host,
    /// Every meter: what it sees, or why it could not run.
    pub meters: Vec<MeterFinding>,
    /// What the machine did without the workload.
    pub background: Background,
    /// Jobs that ran together and share one cost.
    pub phases: Vec<PhaseFinding>,
    /// Jobs one by one.
    pub jobs: Vec<JobFinding>,
    /// The earlier measurement that this one stands beside (`--stored`); `null` without one.
    #[serde(default)]
    pub stored: Option<StoredFinding>,
    /// Speeds before and after.
    pub canaries: Vec<Canaries>,
    /// How it ended.
    pub outcome: Outcome,
    /// Caveats, the gravest first.
    pub warnings: Vec<Warning>,
}

/// One meter of this measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MeterFinding {
    /// Its name; the key in `by_meter`.
    pub name: String,
    /// Whether it could be read.
    pub available: bool,
    /// Why not, when it could not.
    pub reason: Option<String>,
    /// What it sees, when it could.
    pub sees: Option<String>,
}

/// The machine without the workload.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Background {
    /// Which part of the machine's capacity was busy, 0 to 1, by the headline meter.
    pub busy_fraction: Option<f64>,
    /// Its 95 % interval.
    pub busy_fraction_low: Option<f64>,
    /// Its 95 % interval.
    pub busy_fraction_high: Option<f64>,
    /// Before the workload.
    pub busy_fraction_before: Option<f64>,
    /// After it.
    pub busy_fraction_after: Option<f64>,
    /// How long it was watched.
    pub seconds: f64,
    /// Context switches per second.
    pub context_switches_per_second: Option<f64>,
    /// The tasks that used most of it.
    pub tasks: Vec<BackgroundTask>,
}

/// A task that ran in the background.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BackgroundTask {
    /// Its name.
    pub name: String,
    /// Part of the machine's capacity, 0 to 1.
    pub busy_fraction: f64,
}

/// A phase of an earlier measurement beside the same one of this. Costs are by the headline meter of now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoredPhase {
    /// What an I/O cost then; `null` where that meter did not run, or one mean did not describe the phase.
    pub cycles_per_io: Option<f64>,
    /// From then to now.
    pub cycles_per_io_change: Option<UnpairedChange>,
    /// All cycles of then, of a command whose I/Os are not counted.
    pub cycles: Option<f64>,
    /// From then to now.
    pub cycles_change: Option<UnpairedChange>,
    /// I/Os per second then.
    pub iops: Option<f64>,
    /// From then to now, as a fraction.
    pub iops_change: Option<f64>,
}

/// What a phase cost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PhaseFinding {
    /// Names of its jobs.
    pub jobs: Vec<String>,
    /// Length.
    pub wall_seconds: f64,
    /// I/Os completed; `null` when nothing counts them.
    pub ios: Option<u64>,
    /// Bytes completed.
    pub bytes: Option<u64>,
    /// Cycles of the whole machine, net of the background, in all of the phase.
    pub cycles: Option<f64>,
    /// Lower end of its 95 % interval.
    pub cycles_low: Option<f64>,
    /// Upper end.
    pub cycles_high: Option<f64>,
    /// I/Os per second.
    pub iops: Option<f64>,
    /// Bytes per second.
    pub bytes_per_second: Option<f64>,
    /// The meter that the costs below come from.
    pub headline_meter: Option<String>,
    /// Cycles of the whole machine per I/O, net of the background.
    pub cycles_per_io: Option<f64>,
    /// Lower end of its 95 % interval.
    pub cycles_per_io_low: Option<f64>,
    /// Upper end.
    pub cycles_per_io_high: Option<f64>,
    /// Background included.
    pub cycles_per_io_gross: Option<f64>,
    /// The background's part: gross − net.
    pub cycles_per_io_background: Option<f64>,
    /// What the interval is made of, in words.
    pub interval_from: String,
    /// Cycles of the whole machine per byte, net.
    pub cycles_per_byte: Option<f64>,
    /// Lower end of its 95 % interval.
    pub cycles_per_byte_low: Option<f64>,
    /// Upper end.
    pub cycles_per_byte_high: Option<f64>,
    /// Context switches of the whole machine per I/O, net.
    pub context_switches_per_io: Option<f64>,
    /// CPUs kept busy, net: 1.0 is one CPU all the time.
    pub busy_cpus: Option<f64>,
    /// CPUs kept busy, background included.
    pub busy_cpus_gross: Option<f64>,
    /// Cycles of the workload's own threads per I/O: what a per-process figure would say.
    pub thread_cycles_per_io: Option<f64>,
    /// Part of the time that the workload's own threads were on a CPU, 0 to 1: near 1 for a load that does not
    /// sleep.
    pub threads_on_cpu_fraction: Option<f64>,
    /// Net cycles per I/O less the workload's own threads: what others did for it.
    pub elsewhere_cycles_per_io: Option<f64>,
    /// Net cycles per I/O by each meter that ran.
    pub by_meter: BTreeMap<String, Option<f64>>,
    /// The same with intervals and reasons.
    pub by_meter_detail: Vec<MeterReading>,
    /// Whom the net cycles per I/O are charged to; they sum to `cycles_per_io`.
    pub accounts: Vec<AccountFinding>,
    /// How executions ended, for a measured command.
    pub exits: Vec<Exit>,
    /// Measured command: cycles outside the part in which it did I/O (setup, layout, exit), all.
    pub cycles_outside_io: Option<f64>,
    /// Part of the sampler's samples that fell in user mode, 0 to 1, the background's included.
    pub sampled_user_fraction: Option<f64>,
    /// Where the rate stepped by half or more: each stretch of one level with its own cost, in order. Empty where one level
    /// describes the phase. Where the stretches are two loads (own threads' cost apart by half, or reads that come from
    /// elsewhere), every mean of the phase above is `null`. Of a command whose I/Os nobody counts live they are stretches of
    /// what storage read, and its means stay: they are of all stretches together.
    pub regimes: Vec<RegimeFinding>,
    /// The page cache under the jobs' files; `null` where no job uses files.
    pub page_cache: Option<CacheFinding>,
    /// Where its threads ran; `null` where it was not noted.
    #[serde(default)]
    pub placement: Option<PlacementFinding>,
    /// What was read beside the meters; empty where nothing was asked for.
    #[serde(default)]
    pub probes: Vec<ProbeFinding>,
    /// Over time: what was done and what it cost in each window of the headline meter, first execution only. At most 400
    /// points: neighbouring windows of a long phase are one.
    pub series: Vec<SeriesPoint>,
    /// The same phase of the earlier measurement; `null` without one, or where that has no such phase.
    #[serde(default)]
    pub stored: Option<StoredPhase>,
}

/// A stretch of a phase in which the rate had one level.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct RegimeFinding {
    /// When it began, from the start of the phase.
    pub begin_seconds: f64,
    /// When it ended.
    pub end_seconds: f64,
    /// I/Os per second; `null` where nobody counts them live.
    pub iops: Option<f64>,
    /// Cycles of the whole machine per I/O, net of the background.
    pub cycles_per_io: Option<f64>,
    /// Lower end of its 95 % interval.
    pub cycles_per_io_low: Option<f64>,
    /// Upper end.
    pub cycles_per_io_high: Option<f64>,
    /// Cycles of the workload's own threads per I/O.
    pub thread_cycles_per_io: Option<f64>,
    /// What storage read for the workload.
    pub storage_bytes_per_second: Option<f64>,
    /// Bytes that storage read ÷ bytes of I/O, 0 to 1.
    pub from_storage_fraction: Option<f64>,
}

/// One meter's reading of a phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MeterReading {
    /// Its name.
    pub name: String,
    /// Net cycles per I/O; `null` when it could not be had.
    pub cycles_per_io: Option<Estimate>,
    /// Seconds of windows that it comes from.
    pub seconds: f64,
    /// Why there is no value.
    pub reason: Option<String>,
}

/// Cycles charged to someone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AccountFinding {
    /// Who, in words.
    pub name: String,
    /// Whose task; `null` for a sum over several owners and for what no task is charged for: interrupts,
    /// entering and leaving idle, tasks that were born and died between two scans, and the error of the rest.
    pub owner: Option<TaskOwner>,
    /// Net cycles per I/O.
    pub cycles_per_io: f64,
    /// Part of the phase's net cycles per I/O.
    pub share: f64,
}

/// A point of the series over time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// Middle of the window, from the start of the phase.
    pub seconds: f64,
    /// CPUs busy in it, gross; `null` where no meter of the whole machine could be read.
    pub busy_cpus: Option<f64>,
    /// I/Os per second in it.
    pub iops: Option<f64>,
    /// Its length.
    #[serde(default)]
    pub window_seconds: f64,
    /// I/Os completed in it.
    #[serde(default)]
    pub ios: Option<u64>,
    /// Bytes completed in it.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Cycles of the whole machine in it, net of the background.
    #[serde(default)]
    pub cycles: Option<f64>,
    /// The same per I/O.
    #[serde(default)]
    pub cycles_per_io: Option<f64>,
}

/// What a probe showed in a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeFinding {
    /// As typed.
    pub name: String,
    /// What it reads, in words.
    pub meaning: String,
    /// Its unit; empty where nobody knows it.
    pub unit: String,
    /// Whether it only grows.
    pub kind: Kind,
    /// Counters: growth per second, the background's included.
    pub per_second: Option<f64>,
    /// Lower end of its 95 % interval.
    pub per_second_low: Option<f64>,
    /// Upper end.
    pub per_second_high: Option<f64>,
    /// Counters: growth per I/O, net of the background.
    pub per_io: Option<f64>,
    /// Lower end of its 95 % interval.
    pub per_io_low: Option<f64>,
    /// Upper end.
    pub per_io_high: Option<f64>,
    /// Counters: growth per second without the workload.
    pub background_per_second: Option<f64>,
    /// Gauges: mean over time.
    pub mean: Option<f64>,
    /// Lower end of its 95 % interval.
    pub mean_low: Option<f64>,
    /// Upper end.
    pub mean_high: Option<f64>,
    /// Gauges: the least that was read.
    pub min: Option<f64>,
    /// Gauges: the most that was read.
    pub max: Option<f64>,
    /// Why numbers are missing.
    pub reason: Option<String>,
    /// Over time, first execution only: seconds from the start of the phase (the middle of a window), and the counter's growth
    /// per second or the gauge's level there. At most 400.
    pub series: Vec<(f64, f64)>,
}

/// What one job did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JobFinding {
    /// Its name.
    pub name: String,
    /// What issued its I/O.
    pub engine: String,
    /// Copies reported together.
    pub copies: u32,
    /// I/Os completed.
    pub ios: u64,
    /// Bytes completed.
    pub bytes: u64,
    /// I/Os that failed.
    pub errors: u64,
    /// The first failure.
    pub error: Option<String>,
    /// First submission to last completion.
    pub wall_seconds: f64,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Reads.
    pub read: DirectionFinding,
    /// Writes.
    pub write: DirectionFinding,
    /// Trims.
    pub trim: DirectionFinding,
    /// fsync and fdatasync calls.
    pub syncs: u64,
    /// Cycles of the job's own threads per I/O.
    pub thread_cycles_per_io: Option<f64>,
    /// I/Os per system call that submitted, waited or did I/O.
    pub ios_per_crossing: Option<f64>,
    /// All directions together.
    pub latency_ns: LatencyFinding,
    /// Where that latency went, of an engine that knows it; their means add up to its mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages_ns: Option<StagesFinding>,
    /// Busy work that was added to each I/O, where any was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub injected_ns: Option<Injected>,
    /// Its phase's cycles per I/O, when it is alone in it; else `null`.
    pub cycles_per_io: Option<f64>,
    /// What it was asked to do, every option resolved; `null` for the jobs of a foreign command.
    #[serde(default)]
    pub plan: Option<Box<JobPlan>>,
}

/// One direction of a job.
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
    /// I/Os that moved less than was asked for.
    pub short: u64,
    /// Latency.
    pub latency_ns: LatencyFinding,
}

/// The stages of an I/O to a remote server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StagesFinding {
    /// From its issue until its first byte is handed over.
    pub backlog_wait: LatencyFinding,
    /// From there until its reply is there and understood.
    pub round_trip: LatencyFinding,
    /// From there until whoever issued it sees it.
    pub delivery: LatencyFinding,
}

impl StagesFinding {
    /// In order, with their names.
    pub fn named(&self) -> [(&'static str, &LatencyFinding); 3] {
        [("backlog wait", &self.backlog_wait), ("round trip", &self.round_trip), ("delivery", &self.delivery)]
    }
}

/// Latency from submission to completion, nanoseconds. `null` where too few I/Os were done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LatencyFinding {
    /// Mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// 99.99th percentile.
    pub p9999: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// The percentiles that were asked for, in percent.
    pub percentiles: Vec<(f64, Option<f64>)>,
    /// Largest relative width of a histogram bucket: bounds the error of a percentile.
    pub bucket_error_fraction: Option<f64>,
    /// Mean distance of a time stamp that a batch shares from the event it stands for.
    pub stamp_error_mean: Option<f64>,
    /// Largest such distance.
    pub stamp_error_max: Option<f64>,
}
