//! Conditions that are the same for all arms: the page cache, and shell commands around the measurement.

use crate::plan::value::{Quoted, Wrong};
use serde::{Deserialize, Serialize};

/// What the page cache contains of the jobs' files when a slice begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Cache {
    /// All pages: read in before the first round, and kept in memory.
    Warm,
    /// No pages: dropped before each slice, which ends before it reads anything twice.
    Cold,
    /// Not controlled.
    AsIs,
}

impl Cache {
    /// The condition for each word.
    pub const ALL: [(&str, Self); 3] = [("warm", Self::Warm), ("cold", Self::Cold), ("as-is", Self::AsIs)];

    /// Parses `warm`, `cold` or `as-is`.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let known = Self::ALL.iter().find(|(word, _)| *word == text).map(|(_, cache)| *cache);
        known.ok_or_else(|| Wrong::new(format!("{}: expected warm, cold or as-is", Quoted(text))))
    }
}

/// Shell commands that run around the measurement. None of them is measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Around {
    /// Once, before anything else.
    pub setup: Option<String>,
    /// Before each execution of a command.
    pub prepare: Option<String>,
    /// Once, after everything else, also after errors.
    pub cleanup: Option<String>,
}

impl Around {
    /// These commands, with missing ones taken from `others`.
    pub fn or(self, others: Self) -> Self {
        Self {
            setup: self.setup.or(others.setup),
            prepare: self.prepare.or(others.prepare),
            cleanup: self.cleanup.or(others.cleanup),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_read_and_others_refused() {
        for (word, cache) in Cache::ALL {
            assert_eq!(Cache::parse(word), Ok(cache));
            assert_eq!(serde_json::to_string(&cache).unwrap(), format!("\"{word}\""));
        }
        assert!(Cache::parse("hot").unwrap_err().to_string().contains("expected warm, cold or as-is"));
    }
}
