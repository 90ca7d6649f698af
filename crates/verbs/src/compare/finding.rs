//! All numbers that a report of a comparison may show, computed from a record.
//!
//! This is also the JSON of `compare`, schema `iotoll.compare/1`: fields are added, never renamed. `change`, `low` and
//! `high` are fractions (+0.031 is +3.1 %). `null` means unknown, and `reason` or a warning says why.

use crate::compare::record::CacheCondition;
use model::experiment::{ArmPlan, Axis, Metric, Published, Rules, Work, WorkCounter};
use model::explained::{DividedCost, Explanation, FamilyFinding};
use model::injected::Injected;
use model::kind::Head;
use model::page_cache::CacheState;
use model::placement::CasePlacement;
use model::probe::Kind;
use model::record::Canaries;
use model::scaling::ScalabilityFinding;
use model::stats::{Estimate, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The results of a comparison.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompareFinding {
    /// Where it came from, and how it ended.
    #[serde(flatten)]
    pub head: Head,
    /// Seed of the slice order; the same seed gives the same order.
    pub seed: u64,
    /// Number of rounds that are used.
    pub rounds: usize,
    /// Total length of these rounds, in seconds.
    pub seconds: f64,
    /// Length of a slice, in seconds; `null` for whole executions of a command.
    pub slice_seconds: Option<f64>,
    /// The method in words: slices, rounds, and why the experiment ended.
    pub method: String,
    /// The arms; the first is the baseline.
    pub arms: Vec<ArmFinding>,
    /// The axes of the sweep, in the order in which they were given.
    pub axes: Vec<Axis>,
    /// Names of the metrics that the answer covers: the requested ones. If none of them has a value, the metrics of
    /// whole executions, otherwise all metrics with a value.
    pub targets: Vec<Metric>,
    /// The comparisons whose intervals hold together, those of the targets and all others; `null` in findings of earlier
    /// versions.
    pub families: Option<Families>,
    /// What explaining rounds found.
    #[serde(flatten)]
    pub explanation: Explanation,
    /// What these rounds do not show.
    #[serde(flatten)]
    pub unseen: Unseen,
    /// The comparisons, one for each cell and each arm except the baseline, grouped by cell.
    pub cells: Vec<CellFinding>,
    /// What follows from several cells.
    #[serde(flatten)]
    pub sweep: SweepFinding,
    /// Results of the baseline compared with itself (`--aa`): the resolution of this machine.
    pub noise_floor: Option<NoiseFloor>,
    /// Margin, precision and budget.
    pub rules: Rules,
    /// The machine and its state.
    pub environment: Environment,
    /// Published numbers, as given.
    pub published: Vec<Published>,
    /// The page cache condition; `null` if no job uses the page cache.
    pub cache: Option<CacheFound>,
    /// Where the reads of each case came from, if known; ordered by cell, then arm.
    pub page_cache: Vec<CaseCache>,
    /// The regimes, if the rate of the arms stepped by half or more: the rounds before the step, and those that the
    /// answer uses. Empty if one level describes all rounds.
    pub regimes: Vec<RoundsRegime>,
    /// What counted the I/Os of commands that took turns in slices; `null` otherwise.
    pub work_counter: Option<WorkCounter>,
    /// Largest part of an arm's measured cost that the counter itself takes, estimated; `null` if counting is free or the cost is
    /// unknown.
    pub counting_fraction: Option<f64>,
    /// The CPUs on which each case ran, if two of its threads were busy; ordered by cell, then arm.
    pub placement: Vec<CasePlacement>,
    /// The work of each arm in each cell.
    pub cases: Vec<CasePlan>,
}

model::headed!(CompareFinding);

/// States of the machine of which rounds show nothing, with 95 % confidence. "No difference" holds except for them.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Unseen {
    /// Largest fraction of rounds that may be in such a state, if each round draws its state anew: 1 − 0.05^(1/R), R rounds less those
    /// that an evident correlation takes away.
    pub unseen_fraction: Option<f64>,
    /// The same for a state that lasts for five rounds at a time, which are one draw: 1 − 0.05^(5/R).
    pub unseen_in_spells_fraction: Option<f64>,
}

/// What follows from several cells of a sweep.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SweepFinding {
    /// Crossovers along each numeric axis: where the candidate becomes better than the baseline.
    pub crossovers: Vec<CrossoverFinding>,
    /// Cost of an I/O as a function of its size for each arm: c0 + c1 × bytes.
    pub lines: Vec<LineFinding>,
    /// The rate of each arm as a function of its submitters, if their number was swept over three values or more.
    pub scalability: Vec<ScalabilityFinding>,
}

/// The two families of comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Families {
    /// The target metrics in all cells and arms.
    pub targets: FamilyFinding,
    /// All other metrics in all cells and arms.
    pub others: FamilyFinding,
}

/// The work of an arm in a cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CasePlan {
    /// The cell: option and value.
    pub cell: BTreeMap<String, String>,
    /// Name of the arm.
    pub arm: String,
    /// Its jobs with all options resolved, or the words of its command.
    pub plan: Work,
}

/// An arm.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArmFinding {
    /// Name of the arm: `baseline`, `candidate`…
    pub name: String,
    /// What distinguishes it, in words.
    pub what: String,
    /// The arm as it was declared.
    pub plan: ArmPlan,
    /// Busy work added to each I/O (`inject_ns`): the mean over rounds and cells; `null` if there is none.
    pub injected_ns: Option<Injected>,
}

/// The page cache condition of the comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheFound {
    /// State of the files' pages when a slice begins.
    pub condition: CacheCondition,
    /// Why this condition was used, in words.
    pub reason: String,
    /// Fraction of the files in memory just before the first round, 0 to 1.
    pub resident_before_fraction: Option<f64>,
}

/// Where the reads of a case came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseCache {
    /// The cell: option and value.
    pub cell: BTreeMap<String, String>,
    /// Name of the arm.
    pub arm: String,
    /// State of the page cache.
    pub state: CacheState,
    /// Fraction of the bytes read that storage delivered, 0 to 1.
    pub reads_from_storage_fraction: Option<f64>,
}

/// Rounds in which the rate had one level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundsRegime {
    /// The first round, from 1.
    pub first_round: usize,
    /// The last round.
    pub last_round: usize,
    /// Whether the answer uses these rounds.
    pub counted: bool,
    /// I/Os per second of all arms together.
    pub iops: Option<f64>,
    /// Cycles of the whole machine per I/O, net of the background, all arms together.
    pub cycles_per_io: Option<f64>,
    /// Fraction of the bytes read that storage delivered, 0 to 1.
    pub from_storage_fraction: Option<f64>,
}

/// The comparison of an arm with the baseline in one cell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CellFinding {
    /// The cell: option and value; empty without a sweep.
    pub cell: BTreeMap<String, String>,
    /// Name of the arm that is compared with the baseline.
    pub arm: String,
    /// The metrics by name, see [`model::experiment::Metric`].
    pub metrics: BTreeMap<String, MetricFinding>,
    /// Latency percentiles of the arm and the baseline.
    pub shift: Vec<ShiftPoint>,
    /// All used slices of both arms, in order of time.
    pub slices: Vec<SlicePoint>,
    /// The probes (`--probe`); empty if none were requested.
    pub probes: Vec<ProbeComparison>,
    /// Its cost, divided.
    #[serde(flatten)]
    pub cost: DividedCost,
}

/// A probe while either arm ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeComparison {
    /// Name of the probe, as typed.
    pub name: String,
    /// What it reads, in words.
    pub meaning: String,
    /// Its unit; empty if unknown.
    pub unit: String,
    /// `counter` (only grows) or `gauge`.
    pub kind: Kind,
    /// Counters: growth per I/O, net of the background; `null` if the number of I/Os is unknown.
    pub per_io: Option<BothArms>,
    /// Counters: growth per second, including the background.
    pub per_second: Option<BothArms>,
    /// Gauges: mean over time.
    pub mean: Option<BothArms>,
    /// Why values are missing; `null` if none are.
    pub reason: Option<String>,
}

impl ProbeComparison {
    /// Removes every change.
    pub(crate) fn withhold(&mut self) {
        for arms in [&mut self.per_io, &mut self.per_second, &mut self.mean].into_iter().flatten() {
            arms.change = None;
        }
    }
}

/// A value in both arms, in the probe's unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BothArms {
    /// The baseline's value.
    pub baseline: Estimate,
    /// The arm's value.
    pub candidate: Estimate,
    /// The change, as a fraction: candidate ÷ baseline − 1; `null` if a value is 0 or less, or there are too few rounds.
    pub change: Option<Estimate>,
}

/// A metric of a comparison.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MetricFinding {
    /// The baseline's value, in the metric's unit.
    pub baseline: Option<f64>,
    /// The arm's value, in the metric's unit.
    pub candidate: Option<f64>,
    /// The change, as a fraction: candidate ÷ baseline − 1.
    pub change: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// Confidence of this interval, 0 to 1: the intervals of its family hold together with 95 % (`families`).
    pub confidence: Option<f64>,
    /// Minimum detectable effect: the change, as a fraction, that such an experiment detects with 80 % probability.
    pub mde80: Option<f64>,
    /// Whether the change is detected: the interval excludes 0.
    pub detected: bool,
    /// The verdict, according to the requested margin: what the interval says.
    pub verdict: Verdict,
    /// Two-sided p-value, multiplied by the number of comparisons of the family (Bonferroni).
    pub p_value: Option<f64>,
    /// The change in a typical round (Hodges–Lehmann), which does not weight rare stalls.
    pub typical: Option<Estimate>,
    /// Whether the ratio of sums and the typical round disagree: either rare slow parts changed, or only the others
    /// did.
    pub shape_changed: bool,
    /// For `inconclusive`: total measuring time that would give a verdict, in seconds.
    pub seconds_to_decide: Option<f64>,
    /// Number of independent units that the interval is based on.
    pub units: usize,
    /// Correlation of consecutive rounds, if it is evident; the interval contains it; `null` otherwise.
    pub correlation: Option<f64>,
    /// Why there is no value; `null` if there is one.
    pub reason: Option<String>,
    /// The comparison with the stored baseline; `null` without a stored record, if that has no such cell or metric, and
    /// for percentiles.
    pub stored: Option<AgainstStored>,
}

impl MetricFinding {
    /// A metric without a value, only with a reason.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::default() }
    }
}

/// A metric relative to the stored baseline: (1 + total) = (1 + `change`) · (1 + environment), where `change` is the
/// metric's own. The intervals of all three have the metric's `confidence`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgainstStored {
    /// The stored baseline's value, in the metric's unit.
    pub baseline: f64,
    /// The baseline now ÷ the stored one − 1: everything but the change, such as the kernel or other guests.
    pub environment: Estimate,
    /// The arm now ÷ the stored baseline − 1: the total change.
    pub total: Estimate,
}

/// One latency percentile.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ShiftPoint {
    /// The percentile, in percent.
    pub percent: f64,
    /// The baseline's latency, in nanoseconds.
    pub baseline_ns: f64,
    /// The other arm's latency, in nanoseconds.
    pub candidate_ns: f64,
    /// The change; `null` if there were too few I/Os for an interval.
    pub change: Option<Estimate>,
}

/// A slice.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SlicePoint {
    /// Middle of the slice, in seconds from the start of the experiment.
    pub seconds: f64,
    /// Index of its round, from 0.
    pub round: usize,
    /// Whether it is a slice of the baseline.
    pub baseline: bool,
    /// I/Os done in it. Those of a command that reports its own total are scaled to that, so they need not be a whole number.
    pub ios: Option<f64>,
    /// Wall time of these I/Os, in seconds.
    pub wall_seconds: Option<f64>,
    /// I/Os per second: `ios` ÷ `wall_seconds`.
    pub iops: Option<f64>,
    /// Cycles of the whole machine per I/O, net of the background. Those of an arm's slices, each weighted by its `ios`, give the
    /// arm's cost.
    pub cycles_per_io: Option<f64>,
}

/// A crossover: where along an axis the candidate becomes better than the baseline.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CrossoverFinding {
    /// Name of the numeric axis.
    pub axis: String,
    /// The values of the other axes.
    pub at: BTreeMap<String, String>,
    /// Name of the arm.
    pub arm: String,
    /// Name of the metric.
    pub metric: String,
    /// The value of the axis at the crossover, in its unit (bytes for sizes).
    pub value: Option<f64>,
    /// Lower end of its 95 % interval; over axes without a law of costs, the last value at which the arm below it is better.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval; over axes without a law of costs, the first value at which the arm above it is better.
    pub high: Option<f64>,
    /// The result in words: "candidate is better above it, baseline below it", "none: baseline is better at every bs where
    /// a difference was detected"…
    pub words: String,
}

/// The fitted cost of an I/O of b bytes: cost(b) = c0 + c1 × b.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LineFinding {
    /// Name of the arm.
    pub arm: String,
    /// The values of the other axes.
    pub at: BTreeMap<String, String>,
    /// Cycles per I/O, independent of its size (c0).
    pub per_io: Estimate,
    /// Cycles per byte (c1).
    pub per_byte: Estimate,
    /// Maximum deviation of a measured cost from the line, as a fraction of that cost.
    pub misfit: f64,
}

/// The resolution of this machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// The noise of each metric, by name; in a sweep, that of the least sensitive cell.
    pub metrics: BTreeMap<String, NoiseOfMetric>,
}

/// The noise of a metric.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct NoiseOfMetric {
    /// Half-width of the interval, as a fraction, with the confidence of the metric's family.
    pub half_width: f64,
    /// Whether identical arms were reported as different, in any cell.
    pub false_difference: bool,
    /// Measuring time needed for several precisions.
    pub seconds_needed: [TimeNeeded; 3],
}

/// The measuring time needed for a precision.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeNeeded {
    /// Half-width of the interval, as a fraction.
    pub half_width: f64,
    /// Measuring time, in seconds.
    pub seconds: f64,
}

/// The machine and its state during the experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Environment {
    /// Name of the meter of the cycles.
    pub meter: Option<String>,
    /// Busy fraction of the machine without the workload, 0 to 1.
    pub background_busy_fraction: Option<f64>,
    /// Stolen time as a fraction of the machine's capacity, 0 to 1.
    pub steal_fraction: Option<f64>,
    /// Speeds of canary operations before and after.
    pub canaries: Vec<Canaries>,
}
