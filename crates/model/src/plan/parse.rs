//! Parses job files, or the same options as flags, into a [`Plan`].
//!
//! Three steps: `file` and `flags` split the input into sections of named values, this file applies them to drafts as
//! fio does (defaults, then the `[global]` sections so far, then the job's own options), and `check` turns a draft into
//! a consistent job. [`Refused`] lists every error, each with a place and an option or section.

mod check;
mod error;
mod file;
#[cfg(test)]
mod tests;

use super::draft::{CacheWords, Draft, Origin, Start};
use super::job::{Phase, Plan};
use super::options;
use super::value::{Quoted, Wrong};
use crate::unit::Nanos;
use crate::warning;
use crate::warning::{Code, Warning};
pub use error::{ParseError, Place, Refused, Subject};
use std::collections::BTreeSet;

/// What the resulting plan depends on besides the text.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// The environment, for `${NAME}` in job files.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// The text of a file that a job file includes; `None` if there is no such file.
    pub included: &'a dyn Fn(&str) -> Option<Result<String, String>>,
    /// Options, as `name=value` or a bare `name`, that override those of every job.
    pub overrides: &'a [String],
    /// Only the jobs of these sections. Empty: all.
    pub sections: &'a [String],
    /// What to do with unknown options.
    pub unknown_options: UnknownOptions,
    /// Whether jobs may write to block devices.
    pub device_writes: DeviceWrites,
    /// Whether files without a job are accepted, as by fio's --parse-only: their options are for the jobs of others.
    pub without_jobs: bool,
}

/// An empty environment, no overrides, and the safe choices.
impl Default for Settings<'_> {
    fn default() -> Self {
        Self {
            environment: &|_| None,
            included: &|_| None,
            overrides: &[],
            sections: &[],
            unknown_options: UnknownOptions::Refuse,
            device_writes: DeviceWrites::Refuse,
            without_jobs: false,
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

/// Parses a job file. `file_name` is used in messages, and to find what it includes.
///
/// # Errors
/// All that is wrong with it.
pub fn job_file(file_name: &str, text: &str, settings: &Settings) -> Result<Plan, Refused> {
    job_files(&[(file_name, text)], settings)
}

/// Parses several job files, each a name and a text. As in fio, the jobs of one file start when those of the file before have ended, and a
/// `[global]` section ends with its file.
///
/// # Errors
/// All that is wrong with them.
pub fn job_files(files: &[(&str, &str)], settings: &Settings) -> Result<Plan, Refused> {
    let mut reader = Reader::new(settings);
    for (file_name, text) in files {
        let mut lines = file::Lines::new(settings);
        lines.read(file_name, text);
        reader.read(lines, file::no_job(text));
    }
    reader.plan()
}

/// Parses flags such as `--name=a --rw=read --bs 4k`. Options before the first `--name` apply to all jobs.
///
/// # Errors
/// All that is wrong with them.
pub fn flags(arguments: &[String], settings: &Settings) -> Result<Plan, Refused> {
    let mut reader = Reader::new(settings);
    let mut lines = file::Lines::new(settings);
    match sections(arguments) {
        Ok(sections) => lines.sections = sections,
        Err(refusal) => lines.refusals.push(refusal),
    }
    reader.read(lines, no_job());
    reader.plan()
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

/// An error before the name of the file is added.
struct Refusal {
    origin: Origin,
    subject: Subject,
    wrong: Wrong,
}

impl Refusal {
    fn option(name: &str, origin: Origin, wrong: Wrong) -> Self {
        Self { origin, subject: Subject::Option(name.to_owned()), wrong }
    }

    /// With the name of its file.
    fn placed(self, files: &[String]) -> ParseError {
        let place = match self.origin {
            Origin::Line { file, line } => Place::Line { file: files.get(file).cloned().unwrap_or_default(), line },
            Origin::Flag => Place::Flag,
            Origin::Override => Place::Override,
        };
        let Wrong { reason: message, suggestion, unsupported } = self.wrong;
        ParseError { place, subject: self.subject, message, suggestion, unsupported }
    }
}

/// Applies sections in order.
struct Reader<'a> {
    settings: &'a Settings<'a>,
    overrides: Vec<Assignment>,
    plan: Plan,
    /// The group of the last job.
    group: u32,
    /// The sections of jobs.
    names: BTreeSet<String>,
    errors: Vec<ParseError>,
    /// The error of the first input that has no job, in case no other has one.
    no_job: Option<ParseError>,
}

impl<'a> Reader<'a> {
    fn new(settings: &'a Settings<'a>) -> Self {
        let overrides = settings.overrides.iter().map(|text| Assignment::parse(text, Origin::Override)).collect();
        Self {
            settings,
            overrides,
            plan: Plan::default(),
            group: 0,
            names: BTreeSet::new(),
            errors: Vec::new(),
            no_job: None,
        }
    }

    fn plan(mut self) -> Result<Plan, Refused> {
        for name in self.settings.sections.iter().filter(|name| !self.names.contains(*name)) {
            let why = format!("no job has the section {}; give a name as it stands in the brackets", Quoted(name));
            self.errors.push(Refusal::option("section", Origin::Flag, Wrong::new(why)).placed(&[]));
        }
        if self.errors.is_empty() && self.plan.phases.is_empty() && !self.settings.without_jobs {
            self.errors.extend(self.no_job);
        }
        let plan = self.plan;
        match Refused::of(self.errors) {
            Some(refused) => Err(refused),
            None => Ok(plan),
        }
    }

    /// Adds the jobs of one input. `no_job` is the error if it has none.
    fn read(&mut self, lines: file::Lines, no_job: Refusal) {
        let file::Lines { sections, refusals, names, .. } = lines;
        let is_broken = !refusals.is_empty();
        self.errors.extend(refusals.into_iter().map(|refusal| refusal.placed(&names)));
        let mut global = Draft::default();
        global.job.target.allow_device_write = self.settings.device_writes == DeviceWrites::Allow;
        // As in fio, a file after another one begins when the other has ended.
        let mut begins = !self.plan.phases.is_empty();
        let mut any = false;
        for section in sections {
            match section.kind {
                Kind::Global => {
                    self.apply(&section.assignments, &mut global, &names);
                }
                Kind::Job(ref name) if !self.settings.sections.is_empty() && !self.settings.sections.contains(name) => {
                    any = true;
                }
                Kind::Job(name) => {
                    any = true;
                    self.names.insert(name.clone());
                    self.plan.warnings.extend(section.caveat.map(|caveat| Warning::new(Code::OptionDiffers, caveat)));
                    let found = self.job(name, (&section.assignments, section.origin), &global, &names);
                    let Some((start, job)) = found else { continue };
                    let later = start == Start::AfterPrevious && !self.plan.phases.is_empty();
                    if later && job.together.start_delay > Nanos(0) {
                        let message = format!(
                            "job {}: startdelay counts from the end of the jobs before it (stonewall); fio counts from the start of the run",
                            Quoted(&job.name)
                        );
                        self.plan.warnings.push(Warning::new(Code::OptionDiffers, message));
                    }
                    match self.plan.phases.last_mut() {
                        Some(phase) if start == Start::Together && !std::mem::take(&mut begins) => phase.jobs.push(job),
                        _ => self.plan.phases.push(Phase { jobs: vec![job] }),
                    }
                    begins = false;
                }
            }
        }
        if !any && !is_broken {
            self.no_job.get_or_insert(no_job.placed(&names));
        }
    }

    /// The job of a section, unless something is wrong with it.
    fn job(
        &mut self,
        name: String,
        (assignments, origin): (&[Assignment], Origin),
        global: &Draft,
        files: &[String],
    ) -> Option<(Start, super::job::JobPlan)> {
        if name.chars().any(char::is_control) {
            // The name is used for threads, files and lines of a report, and none of them can contain a NUL.
            let wrong = Wrong::new("a job's name must not contain control characters; use letters, digits, - and _");
            let refusal = Refusal { origin, subject: Subject::Section(name), wrong };
            self.errors.push(refusal.placed(files));
            return None;
        }
        let before = self.errors.len();
        let mut draft = global.clone();
        draft.job.name.clone_from(&name);
        self.apply(assignments, &mut draft, files);
        let overrides = std::mem::take(&mut self.overrides);
        self.apply(&overrides, &mut draft, files);
        self.overrides = overrides;
        // As in fio, `name` within a section names the job, but not its files.
        draft.job.target.section = (draft.job.name != name).then_some(name);
        let (start, new_group) = (draft.start, draft.new_group);
        if self.errors.len() > before {
            // What is missing may stand in the lines that were refused.
            return None;
        }
        match check::job(draft, origin, &mut self.plan.warnings) {
            Ok(mut job) => {
                self.group = if start == Start::AfterPrevious { 0 } else { self.group + u32::from(new_group) };
                job.together.group = self.group;
                Some((start, job))
            }
            Err(refusal) => {
                self.errors.push(refusal.placed(files));
                None
            }
        }
    }

    /// Applies the options of one section to `draft`.
    fn apply(&mut self, section: &[Assignment], draft: &mut Draft, files: &[String]) {
        draft.cache = CacheWords::default();
        draft.replaced = false;
        for Assignment { name, value, origin } in section {
            let error = |wrong| Refusal::option(name, *origin, wrong).placed(files);
            let Some(option) = options::find(name) else {
                let error = error(options::unknown(name));
                match self.settings.unknown_options {
                    UnknownOptions::Refuse => self.errors.push(error),
                    // An option of all jobs is applied once for each job, but reported once.
                    UnknownOptions::Ignore => {
                        warning::add_once(
                            &mut self.plan.warnings,
                            Warning::new(Code::OptionIgnored, error.to_string()),
                        );
                    }
                }
                continue;
            };
            draft.begin(option.name, *origin);
            if let Err(wrong) = option.apply(draft, value.as_deref()) {
                self.errors.push(error(wrong));
                continue;
            }
            draft.note(option.name, *origin);
            let contradiction = check::cache_words(draft);
            if contradiction.is_some() {
                // It is said once.
                draft.cache = CacheWords::default();
            }
            let differs = value.as_deref().and_then(|value| option.unlike_fio(value));
            let caveats = [(Code::OptionIgnored, contradiction), (Code::OptionDiffers, differs)];
            for (code, what) in caveats.into_iter().filter_map(|(code, what)| Some((code, what?))) {
                let what = error(Wrong::new(what)).to_string();
                warning::add_once(&mut self.plan.warnings, Warning::new(code, what));
            }
        }
    }
}

/// Splits flags into sections, one for each `--name`.
fn sections(arguments: &[String]) -> Result<Vec<Section>, Refusal> {
    let (mut sections, mut section) = (Vec::new(), Section::new(Kind::Global, Origin::Flag));
    let mut rest = arguments.iter().map(String::as_str).peekable();
    while let Some(argument) = rest.next() {
        let Some(flag) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else {
            return Err(stray(argument));
        };
        let mut assignment = Assignment::parse(flag, Origin::Flag);
        if assignment.value.is_none() && takes_the_next(&assignment.name) {
            assignment.value = rest.next_if(|next| !next.starts_with("--")).map(str::to_owned);
        }
        if assignment.name != "name" {
            section.assignments.push(assignment);
            continue;
        }
        let name = assignment.value.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| refuse("name", "it needs a value, for example --name=job1"))?;
        sections.push(std::mem::replace(&mut section, Section::new(Kind::of(&name), Origin::Flag)));
    }
    sections.push(section);
    Ok(sections)
}

/// A switch takes a value only after `=`, as in fio.
fn takes_the_next(name: &str) -> bool {
    options::find(name).is_none_or(|option| option.takes_value())
}

/// The error for flags without a job.
fn no_job() -> Refusal {
    refuse("name", "missing; each job begins with --name=JOB")
}

fn stray(argument: &str) -> Refusal {
    Refusal {
        origin: Origin::Flag,
        subject: Subject::Argument(argument.to_owned()),
        wrong: Wrong::new("not an option; expected --option=value"),
    }
}

fn refuse(option: &str, reason: &str) -> Refusal {
    Refusal::option(option, Origin::Flag, Wrong::new(reason))
}
