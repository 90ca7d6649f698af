//! Limits of the latency of a job's I/Os: one that ends it, and one that its queue depth follows.

use super::Each;
use crate::unit::Nanos;
use serde::{Deserialize, Serialize};

/// With fio's defaults: no limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyPlan {
    /// `max_latency`: an I/O that takes longer ends the job with an error; 0 means no limit.
    pub most: Each<Nanos>,
    /// `latency_target`: the job looks for the highest queue depth whose latencies are within it; 0 means that the depth stays.
    pub target: Nanos,
    /// `latency_window`: for how long each depth is tried.
    pub window: Nanos,
    /// `latency_percentile`: the percentage of I/Os that must be within the target. 100 by default.
    pub percentile: f64,
    /// `latency_run`: go on looking until something else ends the job.
    pub goes_on: bool,
}

impl Default for LatencyPlan {
    fn default() -> Self {
        Self { most: Each::default(), target: Nanos(0), window: Nanos(0), percentile: 100.0, goes_on: false }
    }
}

impl LatencyPlan {
    /// Whether no option of these is given.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the depth follows a target.
    pub fn has_target(&self) -> bool {
        self.target > Nanos(0)
    }
}
