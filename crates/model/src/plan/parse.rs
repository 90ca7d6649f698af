//! Parses job files, or the same options as flags, into a [`Plan`].
//!
//! Three steps: `file` and `flags` split the input into sections of named values, this file applies them to drafts as
//! fio does (defaults, then the `[global]` sections so far, then the job's own options), and `rules` checks each draft as a whole, once all of
//! its options are known. [`Refused`] lists every error, each with a place and an option or section.
//!
//! A contradiction is reported at the option that the user can change to fix it. Where fio silently runs something
//! other than the file says, the job contains what will be run, and a warning says so.

mod error;
mod file;
mod rules;
#[cfg(test)]
mod tests;

use super::job::{JobPlan, Phase, Plan};
use super::options;
use super::value::{Quoted, Wrong};
use crate::unit::Nanos;
use crate::warning::{self, Code, Warning};
pub use error::{ParseError, Place, Refused, Subject};
use std::collections::{BTreeMap, BTreeSet};

/// What the resulting plan depends on besides the text.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// The environment, for `${NAME}` in job files.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// Options, as `name=value` or a bare `name`, that override those of every job.
    pub overrides: &'a [String],
    /// Only the jobs of these sections. Empty: all.
    pub sections: &'a [String],
    /// Unknown options are ignored, with a warning for each; otherwise they refuse the plan.
    pub ignore_unknown: bool,
    /// Whether jobs may write to block devices.
    pub device_writes: bool,
    /// Whether files without a job are accepted, as by fio's --parse-only: their options are for the jobs of others.
    pub without_jobs: bool,
}

/// An empty environment, no overrides, and the safe choices.
impl Default for Settings<'_> {
    fn default() -> Self {
        Self {
            environment: &|_| None,
            overrides: &[],
            sections: &[],
            ignore_unknown: false,
            device_writes: false,
            without_jobs: false,
        }
    }
}

/// Parses a job file. `file_name` is used in messages.
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
        let (sections, errors) = file::read(file_name, text, settings.environment);
        reader.read(sections, errors, file::no_job(file_name, text));
    }
    reader.plan()
}

/// Parses flags such as `--name=a --rw=read --bs 4k`. Options before the first `--name` apply to all jobs.
///
/// # Errors
/// All that is wrong with them.
pub fn flags(arguments: &[String], settings: &Settings) -> Result<Plan, Refused> {
    let mut reader = Reader::new(settings);
    let (sections, error) = match sections(arguments) {
        Ok(sections) => (sections, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    reader.read(sections, error.into_iter().collect(), refuse("name", "missing; each job begins with --name=JOB"));
    reader.plan()
}

/// A named group of options: a section of a file, or the flags from one `--name` to the next.
struct Section {
    /// The name of its job; `None` for all later jobs.
    job: Option<String>,
    place: Place,
    assignments: Vec<Assignment>,
    /// How its name differs from fio's.
    caveat: Option<String>,
}

impl Section {
    /// Like fio, treats every name that begins with `global` as a global section.
    fn new(name: &str, place: Place) -> Self {
        let job = (!name.starts_with("global")).then(|| name.to_owned());
        Self { job, place, assignments: Vec::new(), caveat: None }
    }
}

/// `name=value`, or a bare name.
struct Assignment {
    name: String,
    value: Option<String>,
    place: Place,
}

impl Assignment {
    fn parse(text: &str, place: Place) -> Self {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.trim().to_owned())),
            None => (text, None),
        };
        Self { name: name.trim().to_owned(), value, place }
    }
}

/// A job that later options may still change, with the state that parsing needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Draft {
    /// The job according to the options so far.
    pub job: JobPlan,
    /// When it starts.
    pub start: Start,
    /// Whether it begins a new group.
    pub new_group: bool,
    /// What the current section says about the page cache.
    pub cache: CacheWords,
    /// `filename` was given again and added to the files.
    pub more_files: bool,
    /// Where each option was given last.
    pub places: BTreeMap<&'static str, Place>,
}

/// When a job starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Start {
    /// Together with the job before it.
    #[default]
    Together,
    /// When all jobs before it have ended (`stonewall`).
    AfterPrevious,
}

/// `direct` and `buffered` of one section. They are one setting with two names: the later one wins, as in fio, but
/// within one section a contradiction has a caveat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheWords {
    /// `direct`.
    pub direct: Option<bool>,
    /// `buffered`.
    pub buffered: Option<bool>,
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
        let overrides = settings.overrides.iter().map(|text| Assignment::parse(text, Place::Override)).collect();
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
            self.errors.push(refuse("section", why));
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
    fn read(&mut self, sections: Vec<Section>, errors: Vec<ParseError>, no_job: ParseError) {
        let is_broken = !errors.is_empty();
        self.errors.extend(errors);
        let mut global = Draft::default();
        global.job.target.allow_device_write = self.settings.device_writes;
        // As in fio, a file after another one begins when the other has ended.
        let mut begins = !self.plan.phases.is_empty();
        let mut any = false;
        for Section { job, place, assignments, caveat } in sections {
            let Some(name) = job else {
                self.apply(&assignments, &mut global);
                continue;
            };
            any = true;
            if !self.settings.sections.is_empty() && !self.settings.sections.contains(&name) {
                continue;
            }
            self.names.insert(name.clone());
            self.plan.warnings.extend(caveat.map(|caveat| Warning::new(Code::OptionDiffers, caveat)));
            let Some((start, job)) = self.job(name, &assignments, &place, &global) else { continue };
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
        if !any && !is_broken {
            self.no_job.get_or_insert(no_job);
        }
    }

    /// The job of a section, unless something is wrong with it.
    fn job(
        &mut self,
        name: String,
        assignments: &[Assignment],
        place: &Place,
        global: &Draft,
    ) -> Option<(Start, JobPlan)> {
        if name.chars().any(char::is_control) {
            // The name is used for threads, files and lines of a report, and none of them can contain a NUL.
            let wrong = Wrong::new("a job's name must not contain control characters; use letters, digits, - and _");
            self.errors.push(ParseError { place: place.clone(), kind: Subject::Section, name, wrong });
            return None;
        }
        let before = self.errors.len();
        let mut draft = global.clone();
        draft.job.name.clone_from(&name);
        self.apply(assignments, &mut draft);
        let overrides = std::mem::take(&mut self.overrides);
        // As in fio, another `filename` adds to the files; as an override for every job it replaces them.
        if overrides.iter().any(|it| it.name == "filename") {
            draft.job.target.files.clear();
        }
        self.apply(&overrides, &mut draft);
        self.overrides = overrides;
        // As in fio, `name` within a section names the job, but not its files.
        draft.job.target.section = (draft.job.name != name).then_some(name);
        let (start, new_group) = (draft.start, draft.new_group);
        if self.errors.len() > before {
            // What is missing may stand in the lines that were refused.
            return None;
        }
        match rules::checked(draft, place, &mut self.plan.warnings) {
            Ok(mut job) => {
                self.group = if start == Start::AfterPrevious { 0 } else { self.group + u32::from(new_group) };
                job.together.group = self.group;
                Some((start, job))
            }
            Err(error) => {
                self.errors.push(error);
                None
            }
        }
    }

    /// Applies the options of one section to `draft`.
    fn apply(&mut self, section: &[Assignment], draft: &mut Draft) {
        draft.cache = CacheWords::default();
        for Assignment { name, value, place } in section {
            let error = |wrong| ParseError::option(name, place, wrong);
            let Some(option) = options::find(name) else {
                let error = error(options::unknown(name));
                if self.settings.ignore_unknown {
                    // An option of all jobs is applied once for each job, but reported once.
                    let ignored = Warning::new(Code::OptionIgnored, error.to_string());
                    warning::add_once(&mut self.plan.warnings, ignored);
                } else {
                    self.errors.push(error);
                }
                continue;
            };
            if let Err(wrong) = option.apply(draft, value.as_deref()) {
                self.errors.push(error(wrong));
                continue;
            }
            draft.places.insert(option.name, place.clone());
            let contradiction = cache_words(draft);
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
fn sections(arguments: &[String]) -> Result<Vec<Section>, ParseError> {
    let (mut sections, mut section) = (Vec::new(), Section::new("global", Place::Flag));
    let (stray, options) = files_and_options(arguments);
    if let Some(stray) = stray.first() {
        let wrong = Wrong::new("not an option; expected --option=value");
        return Err(ParseError { place: Place::Flag, kind: Subject::Argument, name: (*stray).to_owned(), wrong });
    }
    for assignment in options.iter().map(|option| Assignment::parse(option, Place::Flag)) {
        if assignment.name != "name" {
            section.assignments.push(assignment);
            continue;
        }
        let name = assignment.value.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| refuse("name", "it needs a value, for example --name=job1"))?;
        sections.push(std::mem::replace(&mut section, Section::new(&name, Place::Flag)));
    }
    sections.push(section);
    Ok(sections)
}

/// Job files, and options as `name=value` or a bare `name`. A word that is neither an option nor an option's value is a
/// job file; so is `-`, standard input. As in fio, a switch takes a value only after `=`.
pub fn files_and_options(words: &[String]) -> (Vec<&str>, Vec<String>) {
    let (mut files, mut found) = (Vec::new(), Vec::new());
    let mut rest = words.iter().map(String::as_str).peekable();
    while let Some(word) = rest.next() {
        if !word.starts_with('-') || word == "-" {
            files.push(word);
            continue;
        }
        let option = word.trim_start_matches('-');
        let complete = option.contains('=') || options::is_switch(option);
        let value = rest.next_if(|next| !complete && !next.starts_with("--"));
        found.push(value.map_or_else(|| option.to_owned(), |value| format!("{option}={value}")));
    }
    (files, found)
}

/// The error of a flag.
fn refuse(option: &str, reason: impl Into<String>) -> ParseError {
    ParseError::option(option, &Place::Flag, Wrong::new(reason))
}

/// What `direct=1` with `buffered=1`, or `direct=0` with `buffered=0`, in one section mean.
fn cache_words(draft: &Draft) -> Option<String> {
    let CacheWords { direct: Some(direct), buffered: Some(buffered) } = draft.cache else { return None };
    let (value, outcome) = (u8::from(direct), u8::from(draft.job.direct));
    (direct == buffered).then(|| {
        format!(
            "direct={value} and buffered={value} contradict each other; as in fio the later one wins: direct={outcome}"
        )
    })
}
