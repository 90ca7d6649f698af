//! Parses a job file, or the same options as flags, into a [`Plan`].
//!
//! Three steps: `file` and `flags` split the input into sections of named values, this file applies them to drafts as
//! fio does (defaults, then the `[global]` sections so far, then the job's own options), and `check` turns a draft into
//! a consistent job. Every error is a [`ParseError`], which names a place and an option or section.

mod check;
mod error;
mod file;
mod flags;
mod keywords;

use super::draft::{CacheWords, Draft, Origin, Start};
use super::job::{Phase, Plan};
use super::options;
use super::value::Wrong;
use crate::warning::{self, Code, Warning};

pub use error::{ParseError, Place, Subject};
pub use keywords::KEYWORDS;

#[cfg(test)]
mod tests;

/// What the resulting plan depends on besides the text.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// The environment, for `${NAME}` in job files, and the values of fio's keywords, such as `$pagesize`, under their
    /// names ([`KEYWORDS`]).
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// Options, as `name=value` or a bare `name`, that override those of every job.
    pub overrides: &'a [String],
    /// What to do with unknown options.
    pub unknown_options: UnknownOptions,
    /// Whether jobs may write to block devices.
    pub device_writes: DeviceWrites,
}

/// An empty environment, no overrides, and the safe choices.
impl Default for Settings<'_> {
    fn default() -> Self {
        Self {
            environment: &|_| None,
            overrides: &[],
            unknown_options: UnknownOptions::Refuse,
            device_writes: DeviceWrites::Refuse,
        }
    }
}

/// What to do with unknown options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownOptions {
    /// Refuse the plan.
    Refuse,
    /// Ignore them, with a warning for each.
    Ignore,
}

/// Whether jobs may write to block devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceWrites {
    /// Refuse: a job that would write to a device fails.
    Refuse,
    Allow,
}

/// Parses a job file. `file_name` is used in messages only.
pub fn job_file(file_name: &str, text: &str, settings: &Settings) -> Result<Plan, ParseError> {
    let reader = Reader { file_name, settings };
    reader.plan(file::sections(text, settings.environment), file::no_job(text))
}

/// Parses flags such as `--name=a --rw=read --bs 4k`. Options before the first `--name` apply to all jobs.
pub fn flags(arguments: &[String], settings: &Settings) -> Result<Plan, ParseError> {
    let reader = Reader { file_name: "", settings };
    reader.plan(flags::sections(arguments), flags::no_job())
}

/// A named group of options: a section of a file, or the flags from one `--name` to the next.
struct Section {
    kind: Kind,
    origin: Origin,
    assignments: Vec<Assignment>,
    /// How its name differs from fio's.
    caveat: Option<String>,
}

impl Section {
    fn new(kind: Kind, origin: Origin) -> Self {
        Self { kind, origin, assignments: Vec::new(), caveat: None }
    }
}

/// What the options of a section apply to.
enum Kind {
    /// All later jobs.
    Global,
    /// The job of this name.
    Job(String),
}

impl Kind {
    /// The kind of a section called `name`. Like fio, treats every name that begins with `global` as a global section.
    fn of(name: &str) -> Self {
        if name.starts_with("global") { Self::Global } else { Self::Job(name.to_owned()) }
    }
}

/// `name=value`, or a bare name.
struct Assignment {
    name: String,
    value: Option<String>,
    origin: Origin,
}

impl Assignment {
    fn parse(text: &str, origin: Origin) -> Self {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.trim().to_owned())),
            None => (text, None),
        };
        Self { name: name.trim().to_owned(), value, origin }
    }
}

/// An error before the name of the input is added.
struct Refusal {
    origin: Origin,
    subject: Subject,
    wrong: Wrong,
}

impl Refusal {
    fn option(name: &str, origin: Origin, wrong: Wrong) -> Self {
        Self { origin, subject: Subject::Option(name.to_owned()), wrong }
    }
}

/// Applies sections in order.
struct Reader<'a> {
    file_name: &'a str,
    settings: &'a Settings<'a>,
}

impl Reader<'_> {
    fn plan(&self, sections: Result<Vec<Section>, Refusal>, no_job: Refusal) -> Result<Plan, ParseError> {
        let resolve = |sections| self.resolve(sections, no_job);
        sections.and_then(resolve).map_err(|refusal| self.error(refusal))
    }

    fn resolve(&self, sections: Vec<Section>, no_job: Refusal) -> Result<Plan, Refusal> {
        let overrides: Vec<_> =
            self.settings.overrides.iter().map(|text| Assignment::parse(text, Origin::Override)).collect();
        let mut plan = Plan::default();
        let mut global = Draft::default();
        global.job.allow_device_write = self.settings.device_writes == DeviceWrites::Allow;
        for section in sections {
            let Kind::Job(name) = section.kind else {
                self.apply(&section.assignments, &mut global, &mut plan.warnings)?;
                continue;
            };
            if name.chars().any(char::is_control) {
                // The name is used for threads, files and lines of a report, and none of them can contain a NUL.
                let wrong =
                    Wrong::new("a job's name must not contain control characters; use letters, digits, - and _");
                return Err(Refusal { origin: section.origin, subject: Subject::Section(name), wrong });
            }
            plan.warnings.extend(section.caveat.map(|caveat| Warning::new(Code::OptionDiffers, caveat)));
            let mut draft = global.clone();
            draft.job.name.clone_from(&name);
            self.apply(&section.assignments, &mut draft, &mut plan.warnings)?;
            self.apply(&overrides, &mut draft, &mut plan.warnings)?;
            // As in fio, `name` within a section names the job, but not its files.
            draft.job.section = (draft.job.name != name).then_some(name);
            let start = draft.start;
            let job = check::job(draft, section.origin, &mut plan.warnings)?;
            match plan.phases.last_mut() {
                Some(phase) if start == Start::Together => phase.jobs.push(job),
                _ => plan.phases.push(Phase { jobs: vec![job] }),
            }
        }
        if plan.phases.is_empty() { Err(no_job) } else { Ok(plan) }
    }

    /// Applies the options of one section to `draft`.
    fn apply(&self, section: &[Assignment], draft: &mut Draft, warnings: &mut Vec<Warning>) -> Result<(), Refusal> {
        draft.cache = CacheWords::default();
        draft.replaced = false;
        for Assignment { name, value, origin } in section {
            let refuse = |wrong| Refusal::option(name, *origin, wrong);
            if let Some(option) = options::find(name) {
                draft.begin(option.name, *origin);
                option.apply(draft, value.as_deref()).and_then(|()| check::cache_words(draft)).map_err(refuse)?;
                draft.note(option.name, *origin);
                let unlike = value.as_deref().and_then(|value| option.unlike_fio(value));
                let place = |what| self.error(Refusal::option(name, *origin, Wrong::new(what))).to_string();
                if let Some(what) = unlike {
                    warning::add_once(warnings, Warning::new(Code::OptionDiffers, place(what)));
                }
                continue;
            }
            let refusal = refuse(options::unknown(name));
            if self.settings.unknown_options != UnknownOptions::Ignore {
                return Err(refusal);
            }
            // An option of all jobs is applied once for each job, but reported once.
            warning::add_once(warnings, Warning::new(Code::OptionIgnored, self.error(refusal).to_string()));
        }
        Ok(())
    }

    fn error(&self, refusal: Refusal) -> ParseError {
        let place = match refusal.origin {
            Origin::Line(line) => Place::Line { file: self.file_name.to_owned(), line },
            Origin::Flag => Place::Flag,
            Origin::Override => Place::Override,
        };
        let Wrong { reason: message, suggestion } = refusal.wrong;
        ParseError { place, subject: refusal.subject, message, suggestion }
    }
}
