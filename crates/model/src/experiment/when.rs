//! By which one recognises that an arm is booted: `uname -r = 6.9-patched`, or any test command of a shell.

use crate::plan::value::Wrong;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A command, and how it says yes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct When {
    /// What a shell runs.
    pub command: String,
    /// What it prints then, without the space around it; `None` when its exit status says it.
    pub prints: Option<String>,
}

impl When {
    /// Reads `COMMAND = TEXT` (it prints this text), or a command that succeeds. What begins with `test` or `[` is a
    /// command in any case: an equals sign in it is its own.
    ///
    /// # Errors
    /// In words, when there is nothing in it.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Wrong::new("when: there is nothing in it; expected 'uname -r = 6.9', or a test command"));
        }
        let tests = text.starts_with("test ") || text.starts_with('[');
        let split = text.split_once(" = ").filter(|_| !tests);
        Ok(match split.map(|(command, prints)| (command.trim(), prints.trim())) {
            Some((command, prints)) if !command.is_empty() && !prints.is_empty() => {
                Self { command: command.to_owned(), prints: Some(prints.to_owned()) }
            }
            _ => Self { command: text.to_owned(), prints: None },
        })
    }

    /// Whether a command that ended so says yes.
    pub fn holds(&self, success: bool, printed: &str) -> bool {
        success && self.prints.as_ref().is_none_or(|prints| printed.trim() == prints)
    }
}

impl fmt::Display for When {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match &self.prints {
            Some(prints) => write!(formatter, "{} = {prints}", self.command),
            None => formatter.write_str(&self.command),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_says_yes_by_what_it_prints_or_by_its_status() {
        let when = When::parse(" uname -r = 6.9-patched ").unwrap();
        assert_eq!((when.command.as_str(), when.prints.as_deref()), ("uname -r", Some("6.9-patched")));
        assert!(when.holds(true, "6.9-patched\n") && !when.holds(true, "6.9") && !when.holds(false, "6.9-patched"));
        assert_eq!(when.to_string(), "uname -r = 6.9-patched");
        for command in ["test \"$(uname -r)\" = 6.9", "[ -e /run/patched ]", "grep -q nosmt /proc/cmdline", "x =1"] {
            let when = When::parse(command).unwrap();
            assert_eq!((when.command.as_str(), &when.prints), (command, &None));
            assert!(when.holds(true, "anything") && !when.holds(false, ""));
        }
        assert!(When::parse("  ").is_err());
    }
}
