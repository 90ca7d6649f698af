//! Where an experiment was written. An error names that place and suggests a fix in its language.

use super::DraftError;
use crate::plan::parse::Place;
use std::fmt;

/// Where a draft was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// As flags.
    #[default]
    CommandLine,
    /// In the experiment file of this name.
    File(String),
}

impl Origin {
    /// Picks the text for this origin.
    pub(super) fn says<'a>(&self, as_flags: &'a str, in_file: &'a str) -> &'a str {
        match self {
            Self::CommandLine => as_flags,
            Self::File(_) => in_file,
        }
    }

    /// Adds this origin to an error.
    pub(super) fn refuses(&self, error: DraftError) -> DraftError {
        match (self, error) {
            (_, DraftError::Job(refused)) => DraftError::Job(refused.placed(|place| match (self, place) {
                // A line of a job file names it itself.
                (_, line @ Place::Line { .. }) => line,
                (Self::CommandLine, _) => Place::Verb(self.to_string()),
                // Shows an option of an arm or a sweep without dashes.
                (Self::File(name), _) => Place::Experiment(name.clone()),
            })),
            (_, error) => DraftError::Wrong(format!("{self}: {error}")),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::CommandLine => "compare",
            Self::File(name) => name,
        })
    }
}
