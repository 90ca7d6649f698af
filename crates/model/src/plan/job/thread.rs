//! The thread that does a job's I/O: its CPUs, its priorities, its memory.

use super::is_default;
use crate::unit::Bytes;
use serde::{Deserialize, Serialize};

/// What a worker sets for its thread before it opens its engine. With fio's defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadPlan {
    /// `cpus_allowed_policy=split`: the threads take turns among the CPUs of `cpus_allowed`, one for each.
    pub one_cpu_each: bool,
    /// `numa_cpu_nodes`: the CPUs of these NUMA nodes.
    pub nodes: Vec<u32>,
    /// `numa_mem_policy`.
    pub memory: MemoryPolicy,
    /// `nice`.
    pub nice: i8,
    /// `prioclass` and `prio`: class and level of the I/O priority, as ioprio_set(2) has them; `None` leaves it.
    pub io_priority: Option<(u8, u8)>,
    /// `lockmem`: bytes of memory that each thread takes away from the machine.
    #[serde(skip_serializing_if = "is_default")]
    pub locked: Bytes,
    /// `mem=mmaphuge`: the buffers are in huge pages.
    pub huge_pages: bool,
}

/// The nodes whose memory a thread gets, as set_mempolicy(2) has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MemoryPolicy {
    /// As before.
    #[default]
    Default,
    /// The node of the CPU that asks.
    Local,
    /// This one, or others when it is full.
    Prefer(u32),
    /// Only these.
    Bind(Vec<u32>),
    /// These in turn.
    Interleave(Vec<u32>),
}
