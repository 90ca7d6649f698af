//! Where an experiment was written: a refusal says so, and names what mends it in that language.

use super::DraftError;
use crate::plan::ParseError;
use crate::plan::parse::{Place, Subject};
use crate::plan::value::Quoted;
use std::fmt;

/// Where a draft was written: a refusal begins with it, and says what mends it in its language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// As flags.
    #[default]
    CommandLine,
    /// In the experiment file of this name.
    File(String),
}

impl Origin {
    /// What is written there.
    pub(super) fn says<'a>(&self, as_flags: &'a str, in_file: &'a str) -> &'a str {
        match self {
            Self::CommandLine => as_flags,
            Self::File(_) => in_file,
        }
    }

    /// A refusal of what was written there.
    pub(super) fn refuses(&self, error: DraftError) -> DraftError {
        match (self, error) {
            // It names the job file itself.
            (_, DraftError::Job(error @ ParseError { place: Place::Line { .. }, .. })) => DraftError::Job(error),
            // An arm's option, or a sweep's: as a flag it has dashes, in a file it has none.
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
