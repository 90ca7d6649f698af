//! How an invalid text is shown, and numbers in the form in which users type them.

use super::POWERS_OF_1024;
use std::fmt::{self, Display, Write};

/// Why a text is not a valid value. The caller adds what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Wrong {
    /// What is wrong with the text, in one line.
    pub reason: String,
    /// The word that was probably meant.
    pub suggestion: Option<String>,
    /// For an option of fio that is not supported: what it changes.
    pub unsupported: Option<Effect>,
}

/// What an option changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Which I/O is done, or how.
    Work,
    /// Only reports, logs, or the surroundings of the job.
    None,
}

impl Wrong {
    /// An error without a suggestion.
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), suggestion: None, unsupported: None }
    }

    /// An error of the form "'TEXT' IS".
    pub(crate) fn because(text: &str, is: impl Display) -> Self {
        Self::new(format!("{} {is}", Quoted(text)))
    }
}

/// A text of the user in quotes, shortened and on one line.
pub(crate) struct Quoted<'a>(pub &'a str);

/// Long enough to recognize a text.
const QUOTED_CHARACTERS: usize = 60;

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut characters = self.0.chars();
        f.write_char('\'')?;
        for character in characters.by_ref().take(QUOTED_CHARACTERS) {
            match character {
                '\'' | '"' | '\\' => f.write_char(character)?,
                _ => character.escape_debug().try_for_each(|escaped| f.write_char(escaped))?,
            }
        }
        f.write_str(if characters.next().is_some() { "…'" } else { "'" })
    }
}

/// A number in its shortest form: `1g` for 1073741824.
pub(crate) struct Short(pub u64);

impl Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |(_, factor): &&(&str, u64)| self.0 >= *factor && self.0.is_multiple_of(*factor);
        match POWERS_OF_1024.iter().rfind(whole) {
            Some((suffix, factor)) => write!(f, "{}{suffix}", self.0 / factor),
            None => write!(f, "{}", self.0),
        }
    }
}
