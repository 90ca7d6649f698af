//! How the jobs of a run depend on each other, and when one of them is steady.

use crate::unit::Nanos;
use serde::{Deserialize, Serialize};

/// What a job waits for, what ends with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Together {
    /// `wait_for`: the job starts when the one of this name has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_for: Option<String>,
    /// Its group, counted within its phase: `new_group` begins another one.
    pub group: u32,
    /// `exitall`: others end with the job.
    pub exit_all: bool,
    /// `exit_what`: which they are.
    pub exit_what: Ends,
    /// `steadystate`: the job ends when it is steady.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyState>,
}

impl Together {
    /// The option by which a job depends on others or ends by itself, if it has one: a comparison, a recording or a guest decides when a job
    /// runs.
    pub fn first_option(&self) -> Option<&'static str> {
        let given = [
            ("wait_for", self.wait_for.is_some()),
            ("exitall", self.exit_all),
            ("steadystate", self.steady.is_some_and(|steady| steady.duration.0 > 0)),
        ];
        given.into_iter().find_map(|(name, given)| given.then_some(name))
    }
}

/// What ends when a job with `exitall` ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Ends {
    /// All jobs of its group.
    #[default]
    Group,
    /// All jobs of its phase.
    Phase,
    /// The run: no phase follows.
    Run,
}

/// When a job is steady, as fio decides it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SteadyState {
    /// What is looked at, once a second.
    pub of: SteadyMetric,
    /// Whether the slope of the regression line decides, or the largest deviation from the mean.
    pub by_slope: bool,
    /// The largest slope per second or deviation.
    pub limit: f64,
    /// Whether the limit is in percent of the mean.
    pub in_percent: bool,
    /// `steadystate_duration`: the time that is looked at; 0 means that the job does not end so.
    pub duration: Nanos,
    /// `steadystate_ramp_time`: the time before that.
    pub ramp: Nanos,
}

impl SteadyState {
    /// fio's default: `iops_slope:0.01%`.
    pub const USUAL: Self = Self {
        of: SteadyMetric::Iops,
        by_slope: true,
        limit: 0.01,
        in_percent: true,
        duration: Nanos(0),
        ramp: Nanos(0),
    };

    /// Whether it has the criterion and the limit of fio's default.
    pub(crate) fn has_usual_criterion(&self) -> bool {
        Self { duration: self.duration, ramp: self.ramp, ..Self::USUAL } == *self
    }
}

/// What has to be steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SteadyMetric {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bytes,
}
