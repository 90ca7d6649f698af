//! Where an experiment was written. An error names that place and suggests a fix in its language.

use super::DraftError;
use crate::plan::ParseError;
use crate::plan::parse::{Place, Subject};
use crate::plan::value::Quoted;
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
            // It names the job file itself.
            (_, DraftError::Job(error @ ParseError { place: Place::Line { .. }, .. })) => DraftError::Job(error),
            // Shows an option of an arm or a sweep without dashes, unless it was given as a flag.
            (
                Self::File(_),
                DraftError::Job(ParseError { subject: Subject::Option(name), message, suggestion, .. }),
            ) => {
                let meant = suggestion.map(|word| format!("; did you mean {}?", Quoted(&word))).unwrap_or_default();
                DraftError::Wrong(format!("{self}: option {}: {message}{meant}", Quoted(&name)))
            }
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
