//! A job while its options are being parsed.

use super::job::JobPlan;
use super::parse::Place;
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
    /// `filename` was given again and added to the files.
    pub more_files: bool,
    /// Where each option was given last.
    places: BTreeMap<&'static str, Place>,
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

impl Draft {
    /// Records where `option` was given last.
    pub(crate) fn note(&mut self, option: &'static str, place: &Place) {
        self.places.insert(option, place.clone());
    }

    /// Whether `option` was given.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.places.contains_key(option)
    }

    /// Where `option` was given last, if at all.
    pub(crate) fn place(&self, option: &str) -> Option<&Place> {
        self.places.get(option)
    }
}
