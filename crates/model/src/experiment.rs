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

use crate::limit::Limit;
use crate::placement::Place;
use crate::plan::service::Service;
use crate::plan::value::{Quoted, Wrong};
use crate::plan::{Phase, Plan, shell_text};
use crate::record::Selection;
pub use command_rules::{EndSignal, Slices, command_words, hindrance};
pub use draft::{Draft, Origin, Workload};
pub use metric::Metric;
pub use rules::{DraftRules, Rules};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
pub use work_counter::WorkCounter;

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

/// How the machine is booted for each arm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootPlan {
    /// Number of boots of each arm. Boots are the units of every interval.
    pub each: u32,
    /// A shell command that boots the next arm.
    pub hook: Option<String>,
    /// Where and how the experiment was started. `None` until then.
    pub begun: Option<Begun>,
}

/// Where and how an experiment was started. Every boot continues there, independent of its own working directory and
/// flags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// The absolute path of the directory in which it was started. File names in jobs, hooks and test commands are
    /// relative to it.
    pub directory: PathBuf,
    /// Which meters may run.
    pub meters: Selection,
    /// The earlier comparison to show beside it, as given.
    pub stored: Option<PathBuf>,
}

impl BootPlan {
    /// Default number of boots of each arm.
    pub const EACH: u32 = 5;
    /// One boot has no spread. More than 100 is probably a typing error.
    pub const BOOTS: RangeInclusive<u32> = 2..=100;

    /// Checks the plan.
    ///
    /// # Errors
    /// What is out of range, and what was expected.
    pub fn check(&self) -> Result<(), Wrong> {
        let (fewest, most) = (Self::BOOTS.start(), Self::BOOTS.end());
        match self.each {
            each if Self::BOOTS.contains(&each) => Ok(()),
            each => Err(Wrong::new(format!("boots = {each}: expected {fewest} to {most}"))),
        }
    }
}

/// What the page cache contains of the jobs' files when a slice begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// All pages: read in before the first round, and kept in memory.
    Warm,
    /// No pages: dropped before each slice, which ends before it reads anything twice.
    Cold,
    /// Not controlled.
    AsIs,
}

impl Cache {
    /// The condition for each word.
    pub const ALL: [(&str, Self); 3] = [("warm", Self::Warm), ("cold", Self::Cold), ("as-is", Self::AsIs)];

    /// Parses `warm`, `cold` or `as-is`.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let known = Self::ALL.iter().find(|(word, _)| *word == text).map(|(_, cache)| *cache);
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

/// A shell command and the result that means yes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct When {
    /// The shell command.
    pub command: String,
    /// The expected output, trimmed. `None` means that the exit status decides.
    pub prints: Option<String>,
}

impl When {
    /// Parses `COMMAND = TEXT` (the command must print this text), or a command that must succeed. A text that begins
    /// with `test` or `[` is always a command: an equals sign in it belongs to the test.
    ///
    /// # Errors
    /// If it is empty.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Wrong::new("when is empty; expected 'uname -r = 6.9', or a test command"));
        }
        let tests = text.starts_with("test ") || text.starts_with('[');
        let split = text.split_once(" = ").filter(|_| !tests);
        Ok(match split.map(|(command, prints)| (command.trim(), prints.trim())) {
            Some((command, prints)) if !command.is_empty() && !prints.is_empty() => {
                Self { command: command.to_owned(), prints: Some(prints.to_owned()) }
            }
            _ => Self { command: text.to_owned(), prints: None },
        })
    }

    /// Whether a command that ended like this means yes.
    pub fn holds(&self, success: bool, printed: &str) -> bool {
        success && self.prints.as_ref().is_none_or(|prints| printed.trim() == prints)
    }
}

impl fmt::Display for When {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match &self.prints {
            Some(prints) => write!(formatter, "{} = {prints}", self.command),
            None => formatter.write_str(&self.command),
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
    use crate::record::Meter;

    #[test]
    fn old_plans_have_no_start() {
        let plan: BootPlan = serde_json::from_str(r#"{"each":5,"hook":null}"#).unwrap();
        assert_eq!((plan.begun.as_ref(), plan.check()), (None, Ok(())));
        let begun = Begun { directory: "/srv/x".into(), meters: Selection::Only(vec![Meter::Idle]), stored: None };
        let plan = BootPlan { begun: Some(begun), ..plan };
        let again: BootPlan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
        assert_eq!(again, plan);
    }

    #[test]
    fn too_few_and_too_many_boots_are_refused() {
        for each in [0, 1, 101, u32::MAX] {
            let why = BootPlan { each, hook: None, begun: None }.check().unwrap_err().to_string();
            assert!(why.contains(&format!("boots = {each}: expected 2 to 100")), "{why}");
        }
    }

    #[test]
    fn the_words_are_read_and_others_refused() {
        for (word, cache) in Cache::ALL {
            assert_eq!(Cache::parse(word), Ok(cache));
            assert_eq!(serde_json::to_string(&cache).unwrap(), format!("\"{word}\""));
        }
        assert!(Cache::parse("hot").unwrap_err().to_string().contains("expected warm, cold or as-is"));
    }

    #[test]
    fn a_condition_tests_the_output_or_the_exit_status() {
        let when = When::parse(" uname -r = 6.9-patched ").unwrap();
        assert_eq!((when.command.as_str(), when.prints.as_deref()), ("uname -r", Some("6.9-patched")));
        assert!(when.holds(true, "6.9-patched\n") && !when.holds(true, "6.9") && !when.holds(false, "6.9-patched"));
        assert_eq!(when.to_string(), "uname -r = 6.9-patched");
        for command in ["test \"$(uname -r)\" = 6.9", "[ -e /run/patched ]", "grep -q nosmt /proc/cmdline", "x =1"] {
            let when = When::parse(command).unwrap();
            assert_eq!((when.command.as_str(), &when.prints), (command, &None));
            assert!(when.holds(true, "anything") && !when.holds(false, ""));
        }
        assert!(When::parse("  ").is_err());
    }

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
