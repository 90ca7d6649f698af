//! A job while its options are being parsed.

use super::job::JobPlan;
use std::collections::BTreeMap;

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
    /// Whether `filename` of this section, which applies to every job, has replaced the job's own.
    pub replaced: bool,
    /// `filename` was given again and added to the files.
    pub more_files: bool,
    origins: BTreeMap<&'static str, Origin>,
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

/// Where an option was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// On this line of a job file, which is that of this index.
    Line {
        file: usize,
        line: usize,
    },
    Flag,
    /// As an override for every job.
    Override,
}

impl Draft {
    /// Prepares for `option`. As in fio, another `filename` adds to the files; as an override for every job it replaces
    /// them.
    pub(crate) fn begin(&mut self, option: &'static str, origin: Origin) {
        if option != "filename" {
            return;
        }
        if origin == Origin::Override && !std::mem::replace(&mut self.replaced, true) {
            self.job.target.files.clear();
        }
        self.more_files = !self.job.target.files.is_empty();
    }

    /// Records where `option` was given last.
    pub(crate) fn note(&mut self, option: &'static str, origin: Origin) {
        self.origins.insert(option, origin);
    }

    /// Whether `option` was given.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.origins.contains_key(option)
    }

    /// Where `option` was given last, if at all.
    pub(crate) fn origin(&self, option: &str) -> Option<Origin> {
        self.origins.get(option).copied()
    }
}
