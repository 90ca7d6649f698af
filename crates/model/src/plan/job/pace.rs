//! What slows a job down on purpose, beyond `rate_iops` and `thinktime`.

use super::{Each, Rates};
use crate::unit::Nanos;
use serde::{Deserialize, Serialize};

/// Rates in bytes, least rates, and how pauses between I/Os are made. With fio's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pace {
    /// `rate`: bytes per second of each direction; 0 means no limit.
    pub bytes: Rates,
    /// `rate_min`: the job ends if a direction moves fewer bytes per second.
    pub least_bytes: Rates,
    /// `rate_iops_min`: the job ends if a direction does fewer I/Os per second.
    pub least_ios: Rates,
    /// `rate_cycle`: the time over which the least rates are judged.
    pub cycle: Nanos,
    /// `rate_process`: the times between I/Os.
    pub process: RateProcess,
    /// `rate_ignore_thinktime`: what a pause delayed is not caught up.
    pub ignores_thinking: bool,
    /// `thinktime_blocks`: I/Os between pauses. `None`: 1, or any number with `thinktime_iotime`.
    pub think_blocks: Option<u32>,
    /// `thinktime_iotime`: the longest time from one pause to the next; 0 means no limit.
    pub think_io_time: Nanos,
    /// `thinktime_spin`: the first part of each pause, in which the CPU is kept busy.
    pub think_spin: Nanos,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            bytes: Rates::default(),
            least_bytes: Rates::default(),
            least_ios: Rates::default(),
            cycle: Nanos(1_000_000_000),
            process: RateProcess::Linear,
            ignores_thinking: false,
            think_blocks: None,
            think_io_time: Nanos(0),
            think_spin: Nanos(0),
        }
    }
}

/// The limit of the latency of a job's I/Os. With fio's default: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyPlan {
    /// `max_latency`: an I/O that takes longer ends the job with an error; 0 means no limit.
    pub most: Each<Nanos>,
}

/// The times between the I/Os of a job with a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RateProcess {
    /// All equal.
    #[default]
    Linear,
    /// Exponentially distributed: a Poisson process.
    Poisson,
}
