//! Why a plan was refused: all that is wrong with it, a line each.

use crate::plan::value::{Effect, Quoted, Wrong};
use std::fmt::{self, Display};

/// All that is wrong with a plan, in the order of the text. Displayed as a line for each, without control characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Refused(Vec<ParseError>);

impl Refused {
    /// `None` without an error. What is wrong in several jobs in the same way is said once.
    pub(super) fn of(errors: Vec<ParseError>) -> Option<Self> {
        let mut refused = Self(Vec::new());
        for error in errors {
            if !refused.0.contains(&error) {
                refused.0.push(error);
            }
        }
        (!refused.0.is_empty()).then_some(refused)
    }

    /// All of them.
    pub fn errors(&self) -> impl Iterator<Item = &ParseError> {
        self.0.iter()
    }

    /// Changes the place of each.
    pub(crate) fn placed(mut self, place: impl Fn(Place) -> Place) -> Self {
        for error in &mut self.0 {
            let old = std::mem::replace(&mut error.place, Place::Flag);
            error.place = place(old);
        }
        self
    }

    /// What to do where a job uses options or engines of fio that iotoll does not have; `None` if that is not the cause.
    pub fn advice(&self) -> Option<String> {
        let unsupported = || self.errors().filter(|error| error.wrong.unsupported.is_some());
        unsupported().next()?;
        let harmless = unsupported().filter(|error| error.wrong.unsupported == Some(Effect::None)).count();
        let all = self.errors().count();
        let leave_out = match harmless {
            0 => String::new(),
            _ if harmless == all => "no I/O depends on it, so --ignore-unknown runs the job without; ".to_owned(),
            _ => format!("no I/O depends on {harmless} of these {all} lines, which say so; "),
        };
        Some(format!("{leave_out}to measure fio itself with this job: iotoll cost -- fio …"))
    }
}

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, error) in self.0.iter().enumerate() {
            let before = if number > 0 { "\n" } else { "" };
            write!(f, "{before}{error}")?;
        }
        Ok(())
    }
}

/// One thing that is wrong with a plan. Displayed as one line: the place, the option or section, what is wrong, and a suggestion if
/// a similar word is valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    /// Where the error is.
    pub place: Place,
    /// What was refused: an option, a section, or an argument that is no option.
    pub kind: Subject,
    pub name: String,
    /// The reason, and what was expected.
    pub wrong: Wrong,
}

impl ParseError {
    pub(super) fn option(name: &str, place: &Place, wrong: Wrong) -> Self {
        Self { place: place.clone(), kind: Subject::Option, name: name.to_owned(), wrong }
    }
}

/// The kinds of what is refused, by the words that name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Option,
    Section,
    Argument,
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
    /// Among the flags of this verb.
    Verb(String),
    /// In an experiment file of this name.
    Experiment(String),
}

impl Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, kind, name, wrong } = self;
        let flag = *kind == Subject::Option && matches!(place, Place::Flag | Place::Override | Place::Verb(_));
        match place {
            Place::Line { file, line } => write!(f, "{}:{line}: ", OneLine(file))?,
            Place::Flag | Place::Override => {}
            Place::Verb(within) | Place::Experiment(within) => write!(f, "{}: ", OneLine(within))?,
        }
        let (kind, dashes) = (format!("{kind:?}").to_lowercase(), if flag { "--" } else { "" });
        write!(f, "{kind} {}: {wrong}", Quoted(&format!("{dashes}{name}")))?;
        match &wrong.suggestion {
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
