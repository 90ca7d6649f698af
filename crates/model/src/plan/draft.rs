//! A job while its options are being read.

use super::job::JobPlan;
use std::collections::BTreeMap;

/// A job that may still be changed by a later option, with what only its reading needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Draft {
    /// What the options so far make of it.
    pub job: JobPlan,
    /// What it waits for.
    pub start: Start,
    /// What the section being read says of the page cache.
    pub cache: CacheWords,
    origins: BTreeMap<&'static str, Origin>,
}

/// What a job waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Start {
    /// Nothing: it starts with the job before it.
    #[default]
    Together,
    /// All jobs before it (`stonewall`).
    AfterPrevious,
}

/// `direct` and `buffered` of one section. They are one setting with two names: across sections the
/// later one wins, as in fio, but one section that says both must not contradict itself.
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
    /// On this line of the job file.
    Line(usize),
    /// As a flag.
    Flag,
    /// As an override of every job.
    Override,
}

impl Draft {
    /// Remembers where `option` was given last.
    pub(crate) fn note(&mut self, option: &'static str, origin: Origin) {
        self.origins.insert(option, origin);
    }

    /// Where `option` was given last, if it was given.
    pub(crate) fn origin(&self, option: &str) -> Option<Origin> {
        self.origins.get(option).copied()
    }
}
