//! Why a plan was refused, in one line.

use crate::plan::value::Quoted;
use std::fmt::{self, Display};

/// Why a plan was refused. Displayed as one line: the place, the option or section, what is wrong, and a suggestion if
/// a similar word is valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    /// Where the error is.
    pub place: Place,
    /// What was refused.
    pub subject: Subject,
    /// The reason, and what was expected.
    pub message: String,
    /// The word that was probably meant.
    pub suggestion: Option<String>,
}

/// Where an error is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a job file.
    Line {
        /// The file, as the caller named it.
        file: String,
        /// The line, from 1.
        line: usize,
    },
    /// Among the flags.
    Flag,
    /// Among the overrides that apply to every job.
    Override,
}

/// What was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Option(String),
    Section(String),
    /// A word on the command line that is not an option.
    Argument(String),
}

impl Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = match &self.subject {
            Subject::Option(name) => ("option", name),
            Subject::Section(name) => ("section", name),
            Subject::Argument(name) => ("argument", name),
        };
        match (&self.place, &self.subject) {
            (Place::Line { file, line }, _) => {
                write!(f, "{}:{line}: {kind} {}", OneLine(file), Quoted(name))
            }
            (Place::Flag | Place::Override, Subject::Option(_)) => {
                write!(f, "{kind} {}", Quoted(&format!("--{name}")))
            }
            (Place::Flag | Place::Override, _) => write!(f, "{kind} {}", Quoted(name)),
        }?;
        write!(f, ": {}", self.message)?;
        match &self.suggestion {
            Some(word) => write!(f, "; did you mean {}?", Quoted(word)),
            None => Ok(()),
        }
    }
}

/// A file name with control characters escaped, so that it stays on one line.
struct OneLine<'a>(&'a str);

impl Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| {
            if character.is_control() { write!(f, "{}", character.escape_debug()) } else { write!(f, "{character}") }
        })
    }
}
