//! The condition by which a boot of an arm is recognized: `uname -r = 6.9-patched`, or any test command of a shell.

use crate::plan::value::Wrong;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A shell command and the result that means yes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct When {
    /// The shell command.
    pub command: String,
    /// The expected output, trimmed. `None` means that the exit status decides.
    pub prints: Option<String>,
}

impl When {
    /// Parses `COMMAND = TEXT` (the command must print this text), or a command that must succeed. A text that begins
    /// with `test` or `[` is always a command: an equals sign in it belongs to the test.
    ///
    /// # Errors
    /// If it is empty.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Wrong::new("when is empty; expected 'uname -r = 6.9', or a test command"));
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

    /// Whether a command that ended like this means yes.
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
    fn a_condition_tests_the_output_or_the_exit_status() {
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
