//! What to compare: arms, the cells of a sweep, and the rules that end the experiment.
//!
//! A [`draft`] is what a user wrote, on the command line or in a TOML file. It is resolved into an [`Experiment`], in
//! which each pair of a cell and an arm (a [`Case`]) has its own complete plan or command. This module does no I/O: the
//! same draft gives the same experiment everywhere.

mod boot_plan;
mod command_rules;
mod conditions;
pub mod draft;
pub mod file;
pub mod metric;
mod rules;
pub mod setting;
mod when;
pub mod work_counter;

pub use boot_plan::{Begun, BootPlan};
pub use command_rules::{CommandRules, DraftCommandRules, EndSignal, Slices, command_words};
pub use conditions::{Around, Cache};
pub use draft::{Draft, Origin, Workload};
pub use metric::Metric;
pub use rules::{DraftRules, Rules};
pub use setting::Setting;
pub use when::When;
pub use work_counter::WorkCounter;

use crate::limit::Limit;
use crate::placement::Place;
use crate::plan::service::Service;
use crate::plan::shell_text;
use crate::plan::{Phase, Plan};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A resolved experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Experiment {
    /// A one-line title.
    pub title: String,
    /// Two or more arms; the first is the baseline.
    pub arms: Vec<ArmPlan>,
    /// The axes of the sweep. Empty without a sweep.
    pub axes: Vec<Axis>,
    /// The points of the sweep. One cell without axes.
    pub cells: Vec<Cell>,
    /// Every cell under every arm, grouped by cell.
    pub cases: Vec<Case>,
    /// When the experiment ends and what counts as a difference.
    pub rules: Rules,
    /// The limits of `--fail-on`.
    pub limits: Vec<Limit>,
    /// Published numbers to show beside the measured ones.
    pub published: Vec<Published>,
    /// Whether the baseline is compared with itself.
    pub against_itself: bool,
    /// How the machine is booted for each arm, if arms are boots.
    pub boots: Option<BootPlan>,
    /// The requested page cache condition. `None` means that the files decide.
    pub cache: Option<Cache>,
    /// Shell commands that run around the measurement.
    pub around: Around,
    /// The requested placement of the load, if any.
    pub place: Option<Place>,
    /// Servers that it starts.
    pub services: Vec<Service>,
    /// How commands are measured.
    pub commands: CommandRules,
}

/// One arm.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArmPlan {
    /// `baseline`, `candidate`…
    pub name: String,
    /// Options that it overrides in every job, as `name=value`.
    pub options: Vec<String>,
    /// The command that it executes, if arms are commands.
    pub command: Option<Vec<String>>,
    /// System settings that are applied while it runs. The previous values are restored afterwards.
    pub settings: Vec<Setting>,
    /// A shell command that runs before the arm, to switch something on.
    pub setup: Option<String>,
    /// A shell command that undoes `setup`. It always runs.
    pub cleanup: Option<String>,
    /// The condition by which a boot of this arm is recognized.
    pub when: Option<When>,
    /// Whether its settings need a fresh process: then a command is not sliced.
    pub fresh: bool,
}

impl ArmPlan {
    /// Whether system settings or shell commands have to be applied for it.
    pub fn is_toggled(&self) -> bool {
        !self.settings.is_empty() || self.setup.is_some() || self.cleanup.is_some()
    }

    /// What distinguishes this arm from the others of `arms`, in words: without options that all of them have, such as
    /// the URI of a common service.
    pub fn what(&self, arms: &[Self]) -> String {
        let differ = arms.iter().any(|arm| arm.options != self.options);
        let is_own = |option: &&String| !differ || arms.iter().any(|arm| !arm.options.contains(option));
        let options: Vec<&str> = self.options.iter().filter(is_own).map(String::as_str).collect();
        let mut parts = Vec::new();
        parts.extend((!options.is_empty()).then(|| options.join(" ")));
        parts.extend(self.command.as_ref().map(|command| command.join(" ")));
        parts.extend(self.settings.iter().map(ToString::to_string));
        parts.extend(self.setup.as_ref().map(|setup| format!("setup `{setup}`")));
        parts.extend(self.when.as_ref().map(|when| format!("booted when {when}")));
        if parts.is_empty() { "unchanged".to_owned() } else { parts.join(", ") }
    }
}

/// One axis of a sweep: an option and its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Axis {
    /// The option, or the placeholder name of a command.
    pub name: String,
    /// Its values, as written.
    pub values: Vec<String>,
}

impl Axis {
    /// The values as numbers, if all of them are numbers in ascending order: sizes in bytes, depths, percentages.
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
    /// One value for each axis.
    pub values: BTreeMap<String, String>,
}

impl Cell {
    /// Replaces each `{name}` in the words of a command by the value of that name. A script that a word gives to a shell
    /// is a shell command.
    ///
    /// # Errors
    /// When a value cannot be quoted.
    pub fn fill_in_all(&self, words: &[String]) -> Result<Vec<String>, String> {
        let filled = words.iter().enumerate().map(|(place, word)| match shell_text::is_script(words, place) {
            true => self.fill_in_shell(word),
            false => self.fill_in(word, |value, _| Ok(value.to_owned())),
        });
        filled.collect()
    }

    /// The same for a shell command: each value is quoted for the place where it stands.
    ///
    /// # Errors
    /// As above.
    pub fn fill_in_shell(&self, command: &str) -> Result<String, String> {
        self.fill_in(command, shell_text::quoted)
    }

    /// `written` is given the value and the text before it.
    fn fill_in(&self, text: &str, written: fn(&str, &str) -> Result<String, String>) -> Result<String, String> {
        let (mut filled, mut rest) = (String::with_capacity(text.len()), text);
        loop {
            let found = self.values.iter().filter_map(|(name, value)| {
                let (before, after) = rest.split_once(&format!("{{{name}}}"))?;
                Some((before, name, value, after))
            });
            let Some((before, name, value, after)) = found.min_by_key(|(before, ..)| before.len()) else {
                return Ok(filled + rest);
            };
            filled += before;
            filled += &written(value, &filled).map_err(|why| format!("{{{name}}}: {why}"))?;
            rest = after;
        }
    }
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
    /// What it runs.
    pub work: Work,
}

/// What a case runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Work {
    /// Jobs of iotoll's own engines, in one phase.
    Jobs(Plan),
    /// A foreign command.
    Command(Vec<String>),
}

impl Work {
    /// The phase of jobs. `None` for a foreign command.
    pub fn phase(&self) -> Option<&Phase> {
        match self {
            Self::Jobs(plan) => plan.phases.first(),
            Self::Command(_) => None,
        }
    }
}

/// A published number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Published {
    /// The point of the sweep that it belongs to. Empty means every point.
    #[serde(default)]
    pub cell: BTreeMap<String, String>,
    /// Name of the arm that the candidate's value belongs to; `null` if there is only one candidate.
    pub arm: Option<String>,
    /// The metric.
    pub metric: Metric,
    /// The baseline's value.
    pub baseline: Option<f64>,
    /// The candidate's value.
    pub candidate: Option<f64>,
    /// The change, as a fraction.
    pub change: Option<f64>,
    /// The source.
    pub source: String,
}

impl Published {
    /// Computes a change that the source gives only as two values.
    fn with_change(self) -> Self {
        let values = self.baseline.zip(self.candidate).filter(|(baseline, _)| *baseline > 0.0);
        let change = self.change.or(values.map(|(baseline, candidate)| candidate / baseline - 1.0));
        Self { change, ..self }
    }

    /// Whether it belongs to this point of the sweep.
    pub fn fits(&self, cell: &Cell) -> bool {
        self.cell.iter().all(|(name, value)| cell.values.get(name) == Some(value))
    }
}
