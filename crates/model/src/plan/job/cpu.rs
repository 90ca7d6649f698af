//! How engine `cpuio` uses a CPU.

use crate::unit::Nanos;
use serde::{Deserialize, Serialize};

/// The options of engine `cpuio`, with fio's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuPlan {
    /// `cpuload`: the share of the CPU in percent; 0 means not given.
    pub load: u8,
    /// `cpuchunks`: the time of each I/O.
    pub chunk: Nanos,
    /// `cpumode=qsort`: it sorts numbers.
    pub sorts: bool,
}

impl Default for CpuPlan {
    fn default() -> Self {
        Self { load: 0, chunk: Nanos::from_millis(50), sorts: false }
    }
}

impl CpuPlan {
    /// The time between two I/Os.
    pub fn pause(self) -> Nanos {
        let load = u64::from(self.load.clamp(1, 100));
        Nanos(self.chunk.0.saturating_mul(100 - load) / load)
    }
}
