//! All numbers that a report of a recording may show.
//!
//! This is also the JSON of `ftq`, schema `iotoll.ftq/1`: fields are added, never renamed. `null` means unknown.

use super::record::RecorderCost;
use model::kind::Head;
use serde::{Deserialize, Serialize};

/// The results of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FtqFinding {
    /// Where it came from, and how it ended.
    #[serde(flatten)]
    pub head: Head,
    /// Where its amount was read, in words.
    pub counted_by: String,
    /// What is counted: `bytes` or `steps`.
    pub unit: String,
    /// Time between two deadlines.
    pub quantum_seconds: f64,
    /// Deadlines that passed.
    pub quanta: u64,
    /// Readings that were taken.
    pub readings: u64,
    /// Readings that span more than one quantum.
    pub late: u64,
    /// Quanta that the longest of them spans.
    pub longest_span: u64,
    /// Bytes that the worker did; `null` if it computed.
    pub bytes: Option<u64>,
    /// Amount in the unit.
    pub amount: u64,
    /// Length of the recording.
    pub seconds: f64,
    /// Amount per second.
    pub amount_per_second: f64,
    /// The levels of the rate, in the order of time, if it stepped; empty if it has one.
    pub levels: Vec<Level>,
    /// What the recorder itself cost.
    pub recorder: RecorderCost,
    /// What the worker lost against its own typical quantum.
    pub noise: Noise,
    /// Periods of stalls, strongest first: the longest stall.
    pub periodic: Vec<Periodic>,
    /// Stalls that are no period's, longest first; at most 20.
    pub stalls: Vec<Stall>,
    /// Stalls in all.
    pub stall_count: u64,
    /// The probes.
    pub probes: Vec<ProbeFinding>,
    /// What changed against the recording that it was compared with (`--stored`).
    pub against: Option<PeriodChanges>,
    /// What is drawn.
    #[serde(skip)]
    pub pictures: Pictures,
}

model::headed!(FtqFinding);

/// A part of the recording in which the rate stayed at one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// When it began, since the recording began.
    pub begin_seconds: f64,
    /// When it ended.
    pub end_seconds: f64,
    /// Amount per second.
    pub amount_per_second: f64,
}

/// Noise: what the worker lost against its own typical quantum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Amount of a quantum without noise: the 95th percentile of the quanta; if the rate stepped, the mean over the levels.
    pub undisturbed_per_quantum: f64,
    /// Mean amount divided by the undisturbed one, at most 1; if the rate stepped, each level by its own, weighted by time. `null` if a quantum holds so few I/Os that their number is noise,
    /// or nearly all work is done in few quanta.
    pub available_fraction: Option<f64>,
    /// Time lost in all; `null` for the same reason.
    pub lost_seconds: Option<f64>,
    /// Longest stall.
    pub longest_stall_seconds: Option<f64>,
}

/// Stalls that repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Periodic {
    /// The period.
    pub period_seconds: f64,
    /// Time that the worker loses in each period.
    pub stall_seconds: f64,
    /// Part of the amount that is lost in the quanta of the stall: 1 is a standstill.
    pub depth: f64,
    /// Probability that a series without any period shows one as strong anywhere.
    pub false_alarm: f64,
    /// Where in the period the stall begins, as a part of it from 0 to 1, from the start of the recording.
    pub phase: f64,
    /// Periods in which the stall was seen, and periods in all.
    pub seen: u64,
    /// Periods in the recording.
    pub of: u64,
    /// The probe that moves with it; `null` if none does.
    pub probe: Option<String>,
    /// All probes that move with it, strongest first.
    pub labels: Vec<Label>,
    /// One plain sentence: "every 5.00 s the writer stops for 180 ms while dirty pages fall by 41,000".
    pub sentence: String,
}

/// A probe that moves with stalls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Label {
    /// The probe.
    pub probe: String,
    /// What it changes by in a stall, on average: the increase of a counter; of a gauge the change of its level from
    /// begin to end, or in the stall against before and after, whichever shows the stalls better.
    pub change: f64,
    /// How many times more often than chance it moves with the stalls.
    pub times_chance: f64,
    /// Probability that chance moves it as much, corrected for all probes.
    pub false_alarm: f64,
    /// What it does, in words: "dirty pages fall by 41,000".
    pub words: String,
}

/// One stall.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// When it began, since the recording began.
    pub at_seconds: f64,
    /// How long it lasted.
    pub seconds: f64,
    /// Time that the worker lost in it.
    pub lost_seconds: f64,
    /// Probes that moved with it, strongest first.
    pub labels: Vec<Label>,
}

/// A probe over the whole recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeFinding {
    /// Its name.
    pub name: String,
    /// What it reads.
    pub meaning: String,
    /// Its unit.
    pub unit: String,
    /// Increase per second (counter), or mean level (gauge); `null` if it was never read.
    pub mean: Option<f64>,
    /// Least rate of a reading, or level. Of a counter of time, the least increase between two readings: the kernel adds a wait when it
    /// ends, which may be longer than a quantum.
    pub least: Option<f64>,
    /// Greatest.
    pub greatest: Option<f64>,
    /// Whether it is a counter.
    pub counter: bool,
    /// When it could no longer be read, since the recording began.
    pub lost_at_seconds: Option<f64>,
}

/// Periods against those of an earlier recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeriodChanges {
    /// Periods that only this recording has.
    pub appeared: Vec<f64>,
    /// Periods that only the earlier one has.
    pub went: Vec<f64>,
    /// Periods of both: this recording's, and the earlier one's.
    pub kept: Vec<KeptPeriod>,
}

/// A period of two recordings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptPeriod {
    /// Of this recording.
    pub period_seconds: f64,
    /// Of the earlier one.
    pub stored_period_seconds: f64,
    /// Time lost in each, of this recording.
    pub stall_seconds: f64,
    /// The same of the earlier one.
    pub stored_stall_seconds: f64,
}

/// What a report draws; not in the JSON.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pictures {
    /// The readings: time in seconds of the end of each, and the quanta that it spans.
    pub seconds: Vec<f64>,
    /// Quanta that each reading spans; 1 is in time.
    pub spans: Vec<u32>,
    /// Amount per quantum: the increase since the reading before, divided by the quanta between.
    pub amount_per_quantum: Vec<f64>,
    /// By probe, in the order of the finding: counters per quantum, gauges as they are.
    pub probes: Vec<Vec<Option<f64>>>,
}
