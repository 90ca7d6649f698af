//! All numbers that a report of guests may show.
//!
//! This is also the JSON of `guest run`, schema `iotoll.guest/1`: fields are added, never renamed. Instructions are those that
//! an emulated CPU executed. `change`, `low` and `high` of a change are fractions. `null` means unknown.

use super::plan::{MODULE, OWN_MODULES, Place, Published};
use super::record::KernelIdentity;
use model::kind::Head;
use model::stats::{Estimate, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The unit of every count.
pub const UNIT: &str = "instructions, emulated";

/// Instructions that an emulated CPU executed for one I/O, a mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstructionsPerIo(pub f64);

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

model::headed!(GuestFinding);

/// One job on one stack of one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointFinding {
    /// What tells it from others.
    #[serde(flatten)]
    pub place: Place,
    /// The arm's name.
    pub arm: String,
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
    /// Against the baseline; `null` for the baseline itself.
    pub change: Option<ChangeFinding>,
    /// Against the stored measurement, if it has this point: its kernel of the same name, or its baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_stored: Option<ChangeFinding>,
}

impl GuestFinding {
    /// The name of an arm: of a path only its end, if that distinguishes the arms.
    pub fn arm_name(&self, arm: &str) -> String {
        let end = |path: &str| path.trim_end_matches('/').rsplit('/').next().unwrap_or(path).to_owned();
        let alike = self.arms.iter().filter(|other| end(other) == end(arm)).count();
        if alike > 1 { arm.to_owned() } else { end(arm) }
    }

    /// What distinguishes a point from others of its arm; its job in any case if `with_job`.
    pub fn parts(&self, point: &PointFinding, with_job: bool) -> Vec<String> {
        let (Place { job, kernel, stack, parameters, cell }, compared) = (&point.place, self.compared.as_deref());
        let places = || self.points.iter().map(|point| &point.place);
        let mut parts = Vec::new();
        if with_job || places().any(|other| other.job != *job) {
            parts.push(job.clone());
        }
        // A job on one stack is named well enough by its own name.
        if compared != Some("stack") && places().any(|other| other.job == *job && other.stack != *stack) {
            parts.push(stack.clone());
        }
        if compared != Some("kernel") && places().any(|other| other.kernel != *kernel) {
            parts.push(self.arm_name(kernel));
        }
        let differ = !parameters.is_empty() && places().any(|other| other.parameters != *parameters);
        if compared != Some("parameters") && differ {
            parts.push(parameters.clone());
        }
        let swept = cell.iter().filter(|(name, _)| compared != Some(name.as_str()));
        // A mount option is named itself.
        let named = |(name, value): (&String, &String)| match name.as_str() {
            "mount" => value.clone(),
            MODULE if value.is_empty() => OWN_MODULES.to_owned(),
            MODULE => self.arm_name(value),
            name => format!("{}={value}", axis(name)),
        };
        parts.extend(swept.map(named));
        parts
    }

    /// The name of a point: with its job, and its arm if there are several.
    pub fn name(&self, point: &PointFinding) -> String {
        let arm = self.compared.as_ref().map(|_| self.arm_name(&point.arm));
        self.parts(point, true).into_iter().chain(arm).collect::<Vec<_>>().join(", ")
    }
}

/// The name of a sweep without what precedes it: "rdma_max_inline_write" of "sysctl:sunrpc.rdma_max_inline_write".
pub fn axis(name: &str) -> &str {
    name.rsplit([':', '.']).next().unwrap_or(name)
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
