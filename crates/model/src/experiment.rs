//! What to compare: arms, cells of a sweep, and the rules by which the experiment ends.
//!
//! A [`draft`] is what a user wrote, on the command line or in a TOML file. It is resolved to an [`Experiment`],
//! in which each pair of a cell and an arm (a [`Case`]) has its own complete plan or command. Nothing here does
//! I/O; the same draft is the same experiment everywhere.

mod boot_plan;
mod conditions;
pub mod draft;
pub mod file;
pub mod limit;
pub mod metric;
mod rules;
pub mod setting;
mod when;

pub use boot_plan::{Begun, BootPlan};
pub use conditions::{Around, Cache};
pub use draft::{Draft, Origin, Workload};
pub use limit::Limit;
pub use metric::Metric;
pub use rules::{DraftRules, Rules};
pub use setting::Setting;
pub use when::When;

use crate::placement::Place;
use crate::plan::{Phase, Plan};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What to compare, resolved.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Experiment {
    /// In one line.
    pub title: String,
    /// Two or more; the first is the baseline.
    pub arms: Vec<ArmPlan>,
    /// What is varied besides; empty without a sweep.
    pub axes: Vec<Axis>,
    /// The points of the sweep: one, without axes.
    pub cells: Vec<Cell>,
    /// Every cell under every arm, cell by cell.
    pub cases: Vec<Case>,
    /// When it ends and what counts as a difference.
    pub rules: Rules,
    /// What `--fail-on` asks for.
    pub limits: Vec<Limit>,
    /// Numbers that others published, to stand beside ours.
    pub published: Vec<Published>,
    /// The baseline is compared with itself.
    pub against_itself: bool,
    /// The arms are boots of the machine.
    #[serde(default)]
    pub boots: Option<BootPlan>,
    /// What the page cache is to hold, where it was said; else the files decide.
    #[serde(default)]
    pub cache: Option<Cache>,
    /// Shell commands around it.
    #[serde(default)]
    pub around: Around,
    /// Where the load is to run, where it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// One arm.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmPlan {
    /// `baseline`, `candidate`…
    pub name: String,
    /// Options that it sets in every job, as `name=value`.
    pub options: Vec<String>,
    /// The command that it executes, where the arms are commands.
    pub command: Option<Vec<String>>,
    /// Settings of the system while it runs. What was found before is put back after.
    pub settings: Vec<Setting>,
    /// A shell command that switches something on before it runs.
    pub setup: Option<String>,
    /// A shell command that switches it off again; it runs whatever happened in between.
    pub cleanup: Option<String>,
    /// By which one recognises that this arm is booted.
    #[serde(default)]
    pub when: Option<When>,
}

impl ArmPlan {
    /// Whether something about the system has to be switched for it.
    pub fn is_toggled(&self) -> bool {
        !self.settings.is_empty() || self.setup.is_some() || self.cleanup.is_some()
    }

    /// What distinguishes it, in words.
    pub fn what(&self) -> String {
        let mut parts = Vec::new();
        parts.extend((!self.options.is_empty()).then(|| self.options.join(" ")));
        parts.extend(self.command.as_ref().map(|command| command.join(" ")));
        parts.extend(self.settings.iter().map(ToString::to_string));
        parts.extend(self.setup.as_ref().map(|setup| format!("under `{setup}`")));
        parts.extend(self.when.as_ref().map(|when| format!("booted when {when}")));
        if parts.is_empty() { "as it is".to_owned() } else { parts.join(", ") }
    }
}

/// Something that is varied: an option and its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// The option, or the name in braces that a command holds.
    pub name: String,
    /// Its values, as written.
    pub values: Vec<String>,
}

impl Axis {
    /// The values as numbers, when all of them are and grow: sizes in bytes, depths, percents.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        let number = |value: &String| crate::plan::value::integer(value).ok().map(|number| number as f64);
        let numbers: Vec<f64> = self.values.iter().map(number).collect::<Option<_>>()?;
        let grow = numbers.windows(2).all(|pair| pair.first() < pair.last());
        grow.then_some(numbers)
    }
}

/// A point of the sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// A value for each axis.
    pub values: BTreeMap<String, String>,
}

impl fmt::Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let values: Vec<String> = self.values.iter().map(|(name, value)| format!("{name}={value}")).collect();
        formatter.write_str(&values.join(" "))
    }
}

/// A cell under an arm.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Case {
    /// Index of the cell.
    pub cell: usize,
    /// Index of the arm.
    pub arm: usize,
    /// What is done.
    pub work: Work,
}

/// What a case does.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Our own engines, one phase of jobs.
    Jobs(Plan),
    /// A foreign command.
    Command(Vec<String>),
}

impl Work {
    /// The jobs of our own engines; `None` for a foreign command.
    pub fn phase(&self) -> Option<&Phase> {
        match self {
            Self::Jobs(plan) => plan.phases.first(),
            Self::Command(_) => None,
        }
    }
}

/// A number that somebody published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The point of the sweep it belongs to; empty for all of it.
    #[serde(default)]
    pub cell: BTreeMap<String, String>,
    /// Which metric.
    pub metric: Metric,
    /// The baseline's value.
    pub baseline: Option<f64>,
    /// The candidate's.
    pub candidate: Option<f64>,
    /// The change, as a fraction.
    pub change: Option<f64>,
    /// Where it was published.
    pub source: String,
}

impl Published {
    /// Whether it says something of this point of the sweep.
    pub fn fits(&self, cell: &Cell) -> bool {
        self.cell.iter().all(|(name, value)| cell.values.get(name) == Some(value))
    }
}
