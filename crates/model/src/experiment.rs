//! What to compare: arms, cells of a sweep, and the rules by which the experiment ends.
//!
//! A [`draft`] is what a user wrote, on the command line or in a TOML file. It is resolved to an [`Experiment`],
//! in which each pair of a cell and an arm (a [`Case`]) has its own complete plan or command. Nothing here does
//! I/O; the same draft is the same experiment everywhere.

pub mod draft;
pub mod file;
pub mod limit;
pub mod metric;
pub mod setting;
mod when;

pub use draft::{Draft, Workload};
pub use limit::Limit;
pub use metric::Metric;
pub use setting::Setting;
pub use when::When;

use crate::plan::{Phase, Plan};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

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
}

/// How a machine is booted for each arm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootPlan {
    /// Boots of each arm: the units of every interval.
    pub each: u32,
    /// A shell command that boots the arm that is next.
    pub hook: Option<String>,
}

impl BootPlan {
    /// Boots of each arm unless it is said.
    pub const EACH: u32 = 5;
    /// One boot has no spread; more than these are surely a slip of the hand.
    pub const BOOTS: RangeInclusive<u32> = 2..=100;
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
    pub enter: Option<String>,
    /// A shell command that switches it off again; it runs whatever happened in between.
    pub leave: Option<String>,
    /// By which one recognises that this arm is booted.
    #[serde(default)]
    pub when: Option<When>,
}

impl ArmPlan {
    /// Whether something about the system has to be switched for it.
    pub fn is_toggled(&self) -> bool {
        !self.settings.is_empty() || self.enter.is_some() || self.leave.is_some()
    }

    /// What distinguishes it, in words.
    pub fn what(&self) -> String {
        let mut parts = Vec::new();
        parts.extend((!self.options.is_empty()).then(|| self.options.join(" ")));
        parts.extend(self.command.as_ref().map(|command| command.join(" ")));
        parts.extend(self.settings.iter().map(ToString::to_string));
        parts.extend(self.enter.as_ref().map(|enter| format!("under `{enter}`")));
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

/// When an experiment ends and what counts as a difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// Metrics that must reach the precision before the budget ends.
    pub targets: Vec<Metric>,
    /// A change below this is of no interest, as a fraction.
    pub margin: f64,
    /// Half-width of the interval at which the experiment may end, as a fraction.
    pub precision: f64,
    /// Seconds of measuring in all, at most.
    pub budget_seconds: f64,
    /// Seconds that one command, worker or toggle is waited for before it counts as hanging; see [`Rules::patience`].
    #[serde(default)]
    pub patience_seconds: Option<f64>,
}

impl Rules {
    /// METHOD.md: the margin is 3 % and the precision a third of it.
    pub const MARGIN: f64 = 0.03;
    /// Seconds.
    pub const BUDGET: f64 = 60.0;
    /// Seconds that a budget or patience may be: less holds too few rounds, more is surely a slip of the hand.
    pub const TIMES: RangeInclusive<f64> = 1.0..=86_400.0;

    /// Seconds that one command, worker or toggle is waited for. Unless it was said, twice the budget and a minute: a sync
    /// of what was written in a second may take a slow disk that minute.
    pub fn patience(&self) -> f64 {
        self.patience_seconds.unwrap_or(60.0 + 2.0 * self.budget_seconds)
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            targets: vec![Metric::CyclesPerIo, Metric::Iops],
            margin: Self::MARGIN,
            precision: Self::MARGIN / 3.0,
            budget_seconds: Self::BUDGET,
            patience_seconds: None,
        }
    }
}

/// A number that somebody published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
