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
