//! Every number that a report of a comparison may show, worked out from a record.
//!
//! This is also the JSON of `compare`, schema `iotoll.compare/1`: fields are added, never renamed. `change`,
//! `low` and `high` are fractions (+0.031 is +3.1 %). `null` means unknown, and `reason` or a warning says why.

use crate::comparison::record::CacheCondition;
use crate::experiment::{ArmPlan, Axis, Metric, Published, Rules, Work};
use crate::injected::Injected;
use crate::page_cache::CacheState;
use crate::placement::CasePlacement;
use crate::record::{Canaries, Host, Outcome};
use crate::stats::{LogRatio, Verdict};
use crate::stored::{StoredFinding, UnpairedChange};
use crate::warning::Warning;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema name in the JSON.
pub const SCHEMA: &str = "iotoll.compare/1";

/// Whether the change made it cheaper.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompareFinding {
    /// [`SCHEMA`].
    pub schema: String,
    /// The meaning of the numbers; see [`crate::envelope::Kind::method_version`].
    pub method_version: u32,
    /// What was compared, in one line.
    pub title: String,
    /// When the measurement began.
    pub started_unix_seconds: f64,
    /// The command line, as typed.
    pub command_line: Vec<String>,
    /// Seed of the order of slices: the same seed draws the same order.
    pub seed: u64,
    /// Rounds that count.
    pub rounds: usize,
    /// Length of all of them.
    pub seconds: f64,
    /// One measured piece of an arm is this long, in seconds; `null` for whole executions of a command.
    pub slice_seconds: Option<f64>,
    /// How it was measured, in words: what a slice is, what a round is, why it ended.
    pub method: String,
    /// The arms; the first is the baseline.
    pub arms: Vec<ArmFinding>,
    /// What was varied, in the order in which it was given.
    pub axes: Vec<Axis>,
    /// The metrics that the answer is about, by name: those that were asked for. Where none of them has a value, those of
    /// whole executions, and otherwise all that have one.
    pub targets: Vec<Metric>,
    /// The comparisons: one for each cell and each arm but the baseline, cell by cell.
    pub cells: Vec<CellFinding>,
    /// Where the candidate starts to win, along each numeric axis.
    pub crossovers: Vec<CrossoverFinding>,
    /// What one I/O costs as a function of its size: c0 + c1 × bytes, for each arm.
    pub lines: Vec<LineFinding>,
    /// The baseline against itself (`--aa`): what this machine can tell apart.
    pub noise_floor: Option<NoiseFloor>,
    /// What `--fail-on` asked for.
    pub limits: Vec<LimitFinding>,
    /// Margin, precision, budget.
    pub rules: Rules,
    /// The machine.
    pub environment: Environment,
    /// The earlier comparison that this one stands beside (`--stored`); `null` without one.
    pub stored: Option<StoredFinding>,
    /// Numbers that others published, to stand beside ours.
    pub published: Vec<Published>,
    /// What was done about the page cache; `null` where no job goes through it.
    #[serde(default)]
    pub cache: Option<CacheFound>,
    /// Where the reads of each case came from, where that is known: cell by cell, arm by arm.
    #[serde(default)]
    pub page_cache: Vec<CaseCache>,
    /// Where the rate of the arms stepped by half or more: the rounds before, and those that answer. Empty where one level
    /// describes all rounds.
    #[serde(default)]
    pub regimes: Vec<RoundsRegime>,
    /// Where each case ran, where two of its threads were busy: cell by cell, arm by arm.
    #[serde(default)]
    pub placement: Vec<CasePlacement>,
    /// The boots that were measured, in order, where arms are boots.
    #[serde(default)]
    pub boots: Vec<BootFinding>,
    /// What each arm was asked to do at each point of the sweep.
    #[serde(default)]
    pub cases: Vec<CasePlan>,
    /// How it ended.
    pub outcome: Outcome,
    /// Caveats, the gravest first.
    pub warnings: Vec<Warning>,
}

/// What an arm was asked to do at a point of the sweep.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CasePlan {
    /// The point.
    pub cell: BTreeMap<String, String>,
    /// The arm.
    pub arm: String,
    /// Its jobs, every option resolved, or the words of its command.
    pub plan: Work,
}

/// An arm.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArmFinding {
    /// Its name: `baseline`, `candidate`…
    pub name: String,
    /// What distinguishes it, in words.
    pub what: String,
    /// As it was declared.
    pub plan: ArmPlan,
    /// Busy work that was added to each I/O, where any was: the mean over its rounds and cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub injected_ns: Option<Injected>,
}

/// One boot of an arm.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BootFinding {
    /// Of which round, from 0.
    pub round: usize,
    /// Which arm.
    pub arm: String,
    /// The kernel's name for this boot.
    pub boot_id: String,
    /// When its measurement began.
    pub started_unix_seconds: f64,
    /// What was booted.
    pub host: Host,
    /// Speeds of a stated set of operations.
    pub canaries: Canaries,
}

/// What was done about the page cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheFound {
    /// What the files' pages are when a slice begins.
    pub condition: CacheCondition,
    /// Who decided that, in words.
    pub reason: String,
    /// Part of the files in memory just before the first round, 0 to 1.
    pub resident_before_fraction: Option<f64>,
}

/// Where the reads of one case came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseCache {
    /// The point of the sweep.
    pub cell: BTreeMap<String, String>,
    /// The arm.
    pub arm: String,
    /// In one word.
    pub state: CacheState,
    /// Part of the bytes read that storage delivered, 0 to 1.
    pub reads_from_storage_fraction: Option<f64>,
}

/// Rounds in which the rate had one level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundsRegime {
    /// From 1.
    pub first_round: usize,
    /// The last one of it.
    pub last_round: usize,
    /// Whether the answer is made of them.
    pub counted: bool,
    /// I/Os per second, all arms together.
    pub iops: Option<f64>,
    /// Cycles of the whole machine per I/O, net, all arms together.
    pub cycles_per_io: Option<f64>,
    /// Part of the bytes read that storage delivered, 0 to 1.
    pub from_storage_fraction: Option<f64>,
}

/// One arm beside the baseline, at one point of the sweep.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellFinding {
    /// The point: option and value; empty without a sweep.
    pub cell: BTreeMap<String, String>,
    /// The arm that stands beside the baseline.
    pub arm: String,
    /// By name, see [`crate::experiment::Metric`].
    pub metrics: BTreeMap<String, MetricFinding>,
    /// Latency at a range of percentiles, arm beside baseline.
    pub shift: Vec<ShiftPoint>,
    /// Every slice that counts, of both arms, in order of time.
    pub slices: Vec<SlicePoint>,
}

/// One metric of a comparison.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MetricFinding {
    /// The baseline's value, in the metric's unit.
    pub baseline: Option<f64>,
    /// The other arm's.
    pub candidate: Option<f64>,
    /// candidate ÷ baseline − 1.
    pub change: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// The change that would be detected in 80 % of such experiments.
    pub mde80: Option<f64>,
    /// The interval excludes 0 (in a sweep: also after Holm's correction for the number of cells).
    pub detected: bool,
    /// What it means, with the margin that was asked for.
    pub verdict: Verdict,
    /// Two-sided p-value, corrected by Holm over the cells of a sweep.
    pub p_value: Option<f64>,
    /// What it was worked out from.
    #[serde(skip)]
    pub log_ratio: Option<LogRatio>,
    /// The change in a typical round (Hodges–Lehmann), without the weight of rare stalls.
    pub typical: Option<Interval>,
    /// The ratio of sums and the typical round do not agree: rare, slow parts changed, or only the others did.
    pub shape_changed: bool,
    /// For `inconclusive`: how long measuring in all would be that decides, in seconds.
    pub seconds_to_decide: Option<f64>,
    /// Independent units that the interval comes from.
    pub units: usize,
    /// Why there is no value.
    pub reason: Option<String>,
    /// Beside the baseline of an earlier comparison; `null` without one, where it lacks this cell or metric, and for
    /// percentiles.
    pub stored: Option<AgainstStored>,
}

impl MetricFinding {
    /// Nothing but why there is no value.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self {
            baseline: None,
            candidate: None,
            change: None,
            low: None,
            high: None,
            mde80: None,
            detected: false,
            verdict: Verdict::Inconclusive,
            p_value: None,
            log_ratio: None,
            typical: None,
            shape_changed: false,
            seconds_to_decide: None,
            units: 0,
            reason: Some(reason.into()),
            stored: None,
        }
    }
}

/// One metric beside the stored baseline: (1 + total) = (1 + `change`) · (1 + environment), `change` being the metric's own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgainstStored {
    /// The stored baseline's value, in the metric's unit.
    pub baseline: f64,
    /// The baseline now ÷ the stored one − 1: everything but the change, from the kernel to the neighbours.
    pub environment: UnpairedChange,
    /// The arm now ÷ the stored baseline − 1.
    pub total: UnpairedChange,
}

/// A change with its interval, as fractions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The change.
    pub change: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Latency at one percentile.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ShiftPoint {
    /// Which, in percent.
    pub percent: f64,
    /// The baseline's, nanoseconds.
    pub baseline_ns: f64,
    /// The other arm's, nanoseconds.
    pub candidate_ns: f64,
    /// The change, where there were I/Os enough for its interval.
    pub change: Option<Interval>,
}

/// One slice.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SlicePoint {
    /// Its middle, from the start of the experiment.
    pub seconds: f64,
    /// Its round, from 0.
    pub round: usize,
    /// It is the baseline's.
    pub baseline: bool,
    /// I/Os per second.
    pub iops: Option<f64>,
    /// Net cycles per I/O.
    pub cycles_per_io: Option<f64>,
}

/// Where along an axis the candidate starts to win.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CrossoverFinding {
    /// The numeric axis.
    pub axis: String,
    /// The other axes' values.
    pub at: BTreeMap<String, String>,
    /// The arm.
    pub arm: String,
    /// In which metric.
    pub metric: String,
    /// The value of the axis, in its own unit (bytes for sizes).
    pub value: Option<f64>,
    /// Lower end of its 95 % interval; `null` when it is below the sweep.
    pub low: Option<f64>,
    /// Upper end; `null` when it is above the sweep.
    pub high: Option<f64>,
    /// What was found, in words: "candidate wins below 4096", "baseline wins everywhere"…
    pub words: String,
}

/// cost(b) = c0 + c1 × b.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LineFinding {
    /// The arm.
    pub arm: String,
    /// The other axes' values.
    pub at: BTreeMap<String, String>,
    /// Cycles for each I/O whatever its size.
    pub per_io: crate::stats::Estimate,
    /// Cycles for each byte.
    pub per_byte: crate::stats::Estimate,
    /// The largest distance of a size's cost from the line, as a fraction of that cost.
    pub misfit: f64,
}

/// What this machine can tell apart.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// For each metric: in the cell of the sweep where it tells least.
    pub metrics: BTreeMap<String, NoiseOfMetric>,
}

/// Noise of one metric.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct NoiseOfMetric {
    /// Half of the interval's width, a fraction.
    pub half_width: f64,
    /// Identical arms were called different, in whichever cell.
    pub false_difference: bool,
    /// How long an experiment would be for each of some precisions.
    pub seconds_needed: [TimeNeeded; 3],
}

/// How long an experiment would be for a precision.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeNeeded {
    /// Half of the interval's width, a fraction.
    pub half_width: f64,
    /// How long.
    pub seconds: f64,
}

/// A limit of `--fail-on`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LimitFinding {
    /// As given: `cycles_per_io > +3%`.
    pub limit: String,
    /// The cell in words; empty without a sweep.
    pub cell: String,
    /// The arm.
    pub arm: String,
    /// What became of it.
    pub state: LimitState,
}

/// What became of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitState {
    /// The interval lies on the good side.
    Kept,
    /// The interval holds the limit.
    Undecided,
    /// The interval lies beyond it.
    Exceeded,
}

/// The machine and what it did meanwhile.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Environment {
    /// The machine.
    pub host: Host,
    /// The meter that cycles come from.
    pub meter: Option<String>,
    /// What the machine did without the workload, part of its capacity, 0 to 1.
    pub background_busy_fraction: Option<f64>,
    /// Steal while measuring, part of the capacity, 0 to 1.
    pub steal_fraction: Option<f64>,
    /// Speeds before and after.
    pub canaries: Vec<Canaries>,
    /// A step in what all arms did together.
    pub step: Option<EnvironmentStep>,
}

/// A step in what all arms did together: the machine changed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnvironmentStep {
    /// Rounds before it.
    pub after_round: usize,
    /// How much faster all were after it, a fraction.
    pub change: f64,
}
