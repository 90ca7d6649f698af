//! What guests counted, before anything is computed from it.

use super::plan::GuestPlan;
use crate::envelope::Envelope;
use crate::record::{Host, Outcome};
use crate::warning::Warning;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A measurement of guests, as far as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct GuestRecord {
    /// What is known before the first guest.
    pub header: Header,
    /// What each guest counted.
    pub measured: Vec<Measured>,
    /// How it ended; `None` if it was cut off.
    pub end: Option<End>,
}

/// What is known before the first guest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The first line of the record.
    #[serde(skip)]
    pub envelope: Envelope,
    /// What was planned.
    pub plan: GuestPlan,
    /// The emulator: "QEMU 7.2.22".
    pub emulator: String,
    /// The emulated CPU, as QEMU's option names it.
    pub cpu: String,
    /// Memory of a guest in MiB.
    pub memory_mib: u32,
    /// The kernels, by the names in the plan.
    pub kernels: BTreeMap<String, KernelIdentity>,
    /// Hashes of the modules that replace those of the kernels, by `NAME=FILE`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub modules: BTreeMap<String, String>,
    /// The machine that emulates, which no count depends on.
    pub host: Host,
}

/// Which kernel it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelIdentity {
    /// `uname -r`.
    pub release: String,
    /// Hash of the image.
    pub hash: String,
}

/// What one guest counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Number of the point in the plan.
    pub point: usize,
    /// Number of the replicate, from 0.
    pub replicate: u32,
    /// I/Os in the measured part.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Nanoseconds of the guest's clock: one an instruction, and the idle time.
    pub clock_nanos: u64,
    /// The instructions.
    pub instructions: InstructionCount,
    /// Increases of the counters that show the path.
    pub counters: BTreeMap<String, i64>,
    /// Hash of everything that the guest was made of.
    pub guest: String,
}

/// Instructions of one measured part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstructionCount {
    /// All.
    pub total: u64,
    /// Of programs, not of the kernel.
    pub programs: u64,
    /// Repetitions of string instructions, each counted as one.
    pub string: u64,
    /// Instructions that lock memory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub locked: u64,
    /// By function. They sum to the total. Empty if functions were not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FunctionCount>,
}

impl InstructionCount {
    /// Those of the kernel.
    pub fn kernel(&self) -> u64 {
        self.total.saturating_sub(self.programs)
    }
}

/// Instructions in one function, without those that it called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCount {
    /// Its symbol.
    pub name: String,
    /// Its module; `None` if it is in the kernel image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The file of the program that it belongs to; `None` if it is of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Instructions.
    pub count: u64,
    /// How often it was entered: executions of its first instruction, also by a jump. 0 if that repeats itself, because its repetitions count
    /// as executions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub entries: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// The outcome.
    pub outcome: Outcome,
    /// Caveats of measuring.
    pub warnings: Vec<Warning>,
    /// Wall time.
    pub seconds: f64,
}
