//! What to measure in guests: points, each a job on a stack of a kernel.

use model::plan::Phase;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Replicates if nothing else is asked for: five boots give an interval of ±1.24 standard deviations.
pub const REPLICATES: u32 = 5;
/// Most replicates.
pub const MOST_REPLICATES: u32 = 20;
/// Measured I/Os of each job copy without `number_ios`.
pub const IOS: u64 = 1000;
/// Size of a job's files without `size`: small, so that a pass over it is short.
pub const SIZE: &str = "256k";
/// Most points of one plan.
pub const MOST_POINTS: usize = 1000;

/// The axis of modules that replace those of the kernel.
pub const MODULE: &str = "module";
/// The arm of the kernel's own modules.
pub const OWN_MODULES: &str = "stock module";

/// A plan for `iotoll guest run`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GuestPlan {
    /// The title of the report.
    pub title: String,
    /// What is compared with what: `kernel`, `parameters`, `stack` or the name of a sweep; `None` if there is one arm.
    pub compared: Option<String>,
    /// The arms; the first is the baseline.
    pub arms: Vec<String>,
    /// Boots of each guest, each perturbed in another way.
    pub replicates: u32,
    /// Whether instructions are counted by function.
    pub functions: bool,
    /// A change below this fraction does not matter.
    pub margin: f64,
    /// What is measured.
    pub points: Vec<Point>,
    /// Figures that others published, to be shown beside.
    #[serde(default)]
    pub published: Vec<Published>,
}

/// What tells points apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// The job's name.
    pub job: String,
    /// The kernel, as named on the command line.
    pub kernel: String,
    /// The stack.
    pub stack: String,
    /// Kernel parameters beside iotoll's own.
    pub parameters: String,
    /// Values of what is swept.
    pub cell: BTreeMap<String, String>,
}

impl Place {
    /// What every point has, by the names of what can be compared, and the values of what is swept; without what is compared.
    pub fn parts(&self, compared: Option<&str>) -> Vec<(&str, &str)> {
        let Self { job, kernel, stack, parameters, cell } = self;
        let fixed = [("job", job), ("kernel", kernel), ("stack", stack), ("parameters", parameters)].into_iter();
        let all = fixed.chain(cell.iter().map(|(name, value)| (name.as_str(), value)));
        all.filter(|(name, _)| compared != Some(name)).map(|(name, value)| (name, value.as_str())).collect()
    }
}

/// One job on one stack of one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// What tells it from others.
    #[serde(flatten)]
    pub place: Place,
    /// Its number among the arms.
    pub arm: usize,
    /// The jobs, which run together.
    pub phase: Phase,
    /// Sysctls, by names with dots.
    pub sysctls: Vec<(String, String)>,
    /// More mount options.
    pub mount_options: Option<String>,
    /// Modules that replace those of the kernel: `NAME=FILE`, with blanks between; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub module: String,
    /// I/Os of each job copy before the measured part.
    pub warm_up_ios: u64,
    /// Measured I/Os of each job copy.
    pub ios: u64,
}

/// A figure that others published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// What it says.
    pub what: String,
    /// Where it is from.
    pub source: String,
}

impl GuestPlan {
    /// The point that this one is compared with: the same, but of the first arm.
    pub fn baseline_of(&self, point: usize) -> Option<usize> {
        let point = self.points.get(point)?;
        let compared = self.compared.as_deref();
        let same = |other: &Point| other.arm == 0 && other.place.parts(compared) == point.place.parts(compared);
        if point.arm == 0 { None } else { self.points.iter().position(same) }
    }
}
