//! All numbers that a report of guests may show.
//!
//! This is also the JSON of `guest run`, schema `iotoll.guest/1`: fields are added, never renamed. Instructions are those that
//! an emulated CPU executed. `change`, `low` and `high` of a change are fractions. `null` means unknown.

use super::InstructionsPerIo;
use super::plan::Published;
use super::record::KernelIdentity;
use crate::kind::Head;
use crate::stats::{Estimate, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The unit of every count.
pub const UNIT: &str = "instructions, emulated";

/// The results of guests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuestFinding {
    /// Where it came from, and how it ended.
    #[serde(flatten)]
    pub head: Head,
    /// The unit of every count: `instructions, emulated`.
    pub unit: String,
    /// The emulator and its version.
    pub emulator: String,
    /// The emulated CPU.
    pub cpu: String,
    /// Memory of a guest, in MiB.
    pub memory_mib: u32,
    /// The kernels, by the names on the command line.
    pub kernels: BTreeMap<String, KernelIdentity>,
    /// Hashes of the modules that replaced those of the kernels, by `NAME=FILE`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub modules: BTreeMap<String, String>,
    /// What is compared: `kernel`, `parameters`, `stack` or the name of a sweep; `null` with one arm.
    pub compared: Option<String>,
    /// The arms; the first is the baseline.
    pub arms: Vec<String>,
    /// A change below this fraction does not matter.
    pub margin: f64,
    /// The points, arm by arm within each cell.
    pub points: Vec<PointFinding>,
    /// Hashes of everything that a guest was made of (kernel, modules, programs, parameters, emulator), by point and replicate.
    pub hashes: BTreeMap<String, String>,
    /// Figures that others published.
    pub published: Vec<Published>,
    /// Wall time of the measurement, in seconds; `null` if it was cut off.
    pub seconds: Option<f64>,
}

/// One job on one stack of one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointFinding {
    /// The job's name.
    pub job: String,
    /// The arm's name.
    pub arm: String,
    /// The kernel, as named on the command line.
    pub kernel: String,
    /// The stack.
    pub stack: String,
    /// Kernel parameters beside iotoll's own.
    pub parameters: String,
    /// Values of what is swept.
    pub cell: BTreeMap<String, String>,
    /// Measured I/Os of one replicate.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Replicates that were measured, each a boot with a layout of its own.
    pub replicates: usize,
    /// Instructions of the whole guest for one I/O: mean and 95 % interval over the replicates. `null` if none was measured.
    pub instructions_per_io: Option<Estimate>,
    /// Instructions of the kernel.
    pub kernel_instructions_per_io: Option<InstructionsPerIo>,
    /// Instructions of programs: the load generator, and servers outside the kernel.
    pub program_instructions_per_io: Option<InstructionsPerIo>,
    /// Repetitions of string instructions, which are in the total, each as one.
    pub string_repetitions_per_io: Option<InstructionsPerIo>,
    /// Instructions that lock memory, which are in the total, each as one. What they cost when CPUs contend is not in any count. A
    /// kernel on one CPU has none unless it is booted with `noreplace-smp`; programs have theirs.
    pub locked_instructions_per_io: Option<InstructionsPerIo>,
    /// Instructions for one byte, of I/Os that have bytes.
    pub instructions_per_byte: Option<f64>,
    /// Part of the guest's clock during which it executed nothing.
    pub idle_fraction: Option<f64>,
    /// Increases of the kernel counters that show the path, in the first replicate.
    pub path_proof: BTreeMap<String, i64>,
    /// By function, the most expensive first: means over the replicates. Empty without `--by-function`.
    pub functions: Vec<FunctionFinding>,
    /// By chain of calls. Empty without `--chains`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<ChainFinding>,
    /// Against the baseline; `null` for the baseline itself.
    pub change: Option<ChangeFinding>,
    /// Against the stored measurement, if it has this point: its kernel of the same name, or its baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_stored: Option<ChangeFinding>,
}

impl PointFinding {
    /// What every point has, by the names of what can be compared, and the values of what is swept; without what is compared.
    pub fn parts(&self, compared: Option<&str>) -> Vec<(&str, &str)> {
        let Self { job, kernel, stack, parameters, cell, .. } = self;
        let fixed = [("job", job), ("kernel", kernel), ("stack", stack), ("parameters", parameters)].into_iter();
        let all = fixed.chain(cell.iter().map(|(name, value)| (name.as_str(), value)));
        all.filter(|(name, _)| compared != Some(name)).map(|(name, value)| (name, value.as_str())).collect()
    }
}

/// Instructions of one function, without those that it called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionFinding {
    /// Its name, without the suffixes that compilers add to clones.
    pub name: String,
    /// Its module; `null` if it is in the kernel image.
    pub module: Option<String>,
    /// The file of the program that it belongs to; `null` if it is of the kernel.
    pub program: Option<String>,
    /// Its subsystem, by the beginning of its name; `null` if it has none.
    pub subsystem: Option<String>,
    /// Instructions per I/O.
    pub instructions_per_io: f64,
    /// Calls per I/O, jumps from other functions included. Calls that the compiler inlined are none. 0 too for a function whose first
    /// instruction repeats itself, and in records of versions that did not count calls.
    #[serde(default)]
    pub calls_per_io: f64,
    /// Calls per I/O in the baseline; `null` for the baseline itself.
    #[serde(default)]
    pub baseline_calls_per_io: Option<f64>,
    /// Against the baseline, in instructions per I/O; `null` for the baseline itself.
    pub change: Option<f64>,
    /// The chains of calls that lead to most of it, outermost first. Empty without `--chains`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub called_from: Vec<String>,
}

/// Instructions at the end of one chain of calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainFinding {
    /// The functions, outermost first, with semicolons between.
    pub calls: String,
    /// Instructions per I/O.
    pub instructions_per_io: f64,
}

/// The difference to the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeFinding {
    /// As a fraction, with its 95 % interval over replicates.
    pub change: Estimate,
    /// In instructions per I/O.
    pub difference: f64,
    /// The verdict: fewer instructions are better.
    pub verdict: Verdict,
    /// Whether the replicates of the two arms do not overlap, so that it is not a difference of layouts. False with one
    /// replicate, which shows no spread.
    pub beyond_layouts: bool,
    /// Subsystems and ungrouped functions, the largest move first. Their moves sum to the difference. Empty without
    /// `--by-function`.
    pub moved: Vec<MoveFinding>,
}

/// A subsystem or a function that moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveFinding {
    /// Its name.
    pub name: String,
    /// Instructions per I/O in the baseline.
    pub baseline: f64,
    /// Instructions per I/O in the candidate.
    pub candidate: f64,
}

impl MoveFinding {
    /// The move.
    pub fn difference(&self) -> f64 {
        self.candidate - self.baseline
    }
}
