//! The limit of the latency of a job's I/Os.

use super::Each;
use crate::unit::Nanos;
use serde::{Deserialize, Serialize};

/// With fio's default: no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyPlan {
    /// `max_latency`: an I/O that takes longer ends the job with an error; 0 means no limit.
    pub most: Each<Nanos>,
}
