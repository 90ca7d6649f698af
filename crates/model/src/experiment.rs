//! What to compare: arms, the cells of a sweep, and the rules that end the experiment.
//!
//! A [`draft`] is what a user wrote, on the command line or in a TOML file. It is resolved into an [`Experiment`], in
//! which each pair of a cell and an arm (a [`Case`]) has its own complete plan or command. This module does no I/O: the
//! same draft gives the same experiment everywhere.

mod command_rules;
pub mod draft;
pub mod file;
pub mod metric;
mod rules;
pub mod work_counter;

use crate::placement::Place;
use crate::plan::service::Service;
use crate::plan::value::{Quoted, Wrong};
use crate::plan::{Phase, Plan, shell_text};
pub use command_rules::{EndSignal, Slices, command_words, hindrance};
pub use draft::{Draft, Origin, Workload};
pub use metric::Metric;
pub use rules::{DraftRules, Rules};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
pub use work_counter::WorkCounter;

/// The comparison that is furthest from the wanted precision.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    pub metric: Metric,
    /// The change so far: candidate ÷ baseline − 1.
    pub change: f64,
    /// The half-width that the stopping rule uses, as a fraction.
    pub half_width: f64,
    /// The half-width at which the experiment ends, as a fraction.
    pub wanted: f64,
    /// Whether every comparison is precise enough.
    pub precise: bool,
}

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
    /// Published numbers to show beside the measured ones.
    pub published: Vec<Published>,
    /// Whether the baseline is compared with itself.
    pub against_itself: bool,
    /// The requested page cache condition. `None` means that the files decide.
    pub cache: Option<CacheCondition>,
    /// Shell commands that run around the measurement.
    pub around: Around,
    /// The requested placement of the load, if any.
    pub place: Option<Place>,
    /// Servers that it starts.
    pub services: Vec<Service>,
}

/// One arm.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
        if parts.is_empty() { "unchanged".to_owned() } else { parts.join(", ") }
    }
}

/// One axis of a sweep: an option and its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

/// "arm 'candidate', bs=4k".
pub fn arm_at(arm: &str, cell: &BTreeMap<String, String>) -> String {
    let place = Cell { values: cell.clone() }.to_string();
    if place.is_empty() { format!("arm '{arm}'") } else { format!("arm '{arm}', {place}") }
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

/// The state of the pages of the jobs' files when a slice begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheCondition {
    /// All in memory: read in before the first round, and kept there.
    Warm,
    /// None in memory: dropped before each slice, which ends before it reads anything twice.
    Cold,
    /// Not controlled.
    #[serde(alias = "as-is")]
    AsIs,
    /// Dropped once before the first round, then not controlled (`invalidate=1`).
    DroppedOnce,
    /// Differs by arm: `invalidate=1` drops the pages before each slice, `invalidate=0` reads them in before it.
    ByArm,
}

impl CacheCondition {
    /// Parses a condition that may be asked for.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let known = [("warm", Self::Warm), ("cold", Self::Cold), ("as-is", Self::AsIs)];
        let known = known.into_iter().find(|(word, _)| *word == text).map(|(_, condition)| condition);
        known.ok_or_else(|| Wrong::new(format!("{}: expected warm, cold or as-is", Quoted(text))))
    }
}

/// Shell commands that run around the measurement. None of them is measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Around {
    /// Once, before anything else.
    pub setup: Option<String>,
    /// Before each execution of a command.
    pub prepare: Option<String>,
    /// Once, after everything else, also after errors.
    pub cleanup: Option<String>,
}

impl Around {
    /// These commands, with missing ones taken from `others`.
    pub fn or(self, others: Self) -> Self {
        Self {
            setup: self.setup.or(others.setup),
            prepare: self.prepare.or(others.prepare),
            cleanup: self.cleanup.or(others.cleanup),
        }
    }
}

/// A kernel file and the value to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The name as written: `sysctl:net.ipv4.tcp_autocorking`, `file:/sys/…`.
    pub name: String,
    /// The path of the file.
    pub path: PathBuf,
    /// The value to write.
    pub value: String,
}

/// Longest value, in bytes: the kernel takes a setting in one page.
const LONGEST: usize = 4096;

impl Setting {
    /// Parses `sysctl:NAME=VALUE` or `file:PATH=VALUE`.
    ///
    /// # Errors
    /// If it is neither.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let expected = || Wrong::new(format!("'{text}': expected sysctl:NAME=VALUE or file:/sys/…=VALUE"));
        let (name, value) = text.split_once('=').ok_or_else(expected)?;
        let path = match name.split_once(':') {
            Some(("sysctl", key)) if is_key(key) => Path::new("/proc/sys").join(key.replace('.', "/")),
            Some(("file", path)) if path.starts_with('/') => PathBuf::from(path),
            _ => return Err(expected()),
        };
        if value.is_empty() {
            return Err(Wrong::new(format!("'{text}': the value after = is missing")));
        }
        if value.len() > LONGEST {
            return Err(Wrong::new(format!(
                "{name}: the value has {} bytes, and a setting at most {LONGEST}",
                value.len()
            )));
        }
        Ok(Self { name: name.to_owned(), path, value: value.to_owned() })
    }
}

/// Accepts the names of sysctl: words separated by dots or slashes. `..` is refused because it would leave /proc/sys.
fn is_key(key: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    !key.is_empty() && key.chars().all(plain) && !key.starts_with(['/', '.']) && !key.contains("..")
}

impl fmt::Display for Setting {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}={}", self.name, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysctls_and_files() {
        let sysctl = Setting::parse("sysctl:vm.dirty_ratio=10").unwrap();
        assert_eq!((sysctl.path.as_path(), sysctl.value.as_str()), (Path::new("/proc/sys/vm/dirty_ratio"), "10"));
        let file = Setting::parse("file:/sys/block/vda/queue/scheduler=none").unwrap();
        assert_eq!(file.path, Path::new("/sys/block/vda/queue/scheduler"));
        assert_eq!(file.to_string(), "file:/sys/block/vda/queue/scheduler=none");
    }

    #[test]
    fn invalid_settings_are_refused() {
        for wrong in ["", "vm.swappiness=1", "sysctl:../etc/passwd=1", "sysctl:=1", "file:relative=1", "sysctl:a"] {
            assert!(Setting::parse(wrong).unwrap_err().to_string().contains("expected sysctl:"), "{wrong}");
        }
        assert!(Setting::parse("sysctl:a.b=").unwrap_err().to_string().contains("is missing"));
        let long = |bytes| Setting::parse(&format!("sysctl:a.b={}", "1".repeat(bytes)));
        assert!(long(4096).is_ok() && long(4097).unwrap_err().to_string().contains("at most 4096"));
    }
}
