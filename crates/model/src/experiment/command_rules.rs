//! How commands are measured: in slices or as whole executions, what counts their I/Os, and how they are ended.
//!
//! Flags and experiment files use the same parsers here.

use super::{ArmPlan, Rules};
use crate::plan::value::{Quoted, Wrong};
use serde::{Deserialize, Serialize};

/// Whether commands take turns in slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slices {
    /// If every command lives long enough, and something counts what it does.
    #[default]
    Auto,
    /// Never: each slice is a whole execution.
    Off,
    /// Always, with slices of this many seconds.
    Of(f64),
}

impl Slices {
    /// Range of the length, seconds. In shorter slices the switch from one command to another weighs too much; longer
    /// ones leave too few in a round.
    pub const LENGTHS: std::ops::RangeInclusive<f64> = 0.005..=10.0;

    /// Parses `auto`, `off` or a length: `50ms`.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        match text.trim() {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            text => match Rules::parse_slice(text) {
                Ok(seconds) if Self::LENGTHS.contains(&seconds) => Ok(Self::Of(seconds)),
                _ => Err(Wrong::new(format!("{}: expected auto, off, or a time from 5ms to 10s", Quoted(text)))),
            },
        }
    }
}

/// The signal that ends a command so that it reports what it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndSignal {
    Hup = 1,
    /// At which fio, iperf3 and dd report.
    #[default]
    Int = 2,
    Quit = 3,
    /// The command does not report.
    Kill = 9,
    Usr1 = 10,
    Usr2 = 12,
    Term = 15,
}

impl EndSignal {
    const ALL: [Self; 7] = [Self::Int, Self::Term, Self::Hup, Self::Quit, Self::Usr1, Self::Usr2, Self::Kill];

    /// Parses `INT` or `SIGINT`, in any case.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let name = format!("SIG{}", text.trim().to_ascii_uppercase().trim_start_matches("SIG"));
        let names = Self::ALL.map(|signal| signal.name().replace("SIG", "")).join(", ");
        let known = Self::ALL.into_iter().find(|signal| signal.name() == name);
        known.ok_or_else(|| Wrong::new(format!("{}: expected one of {names}", Quoted(text))))
    }

    /// Its name, `SIGINT`.
    pub fn name(self) -> String {
        format!("SIG{self:?}").to_ascii_uppercase()
    }
}

/// Why an experiment on commands cannot be sliced, before anything is started; `None` if it can.
pub fn hindrance(arms: &[ArmPlan], prepared: bool) -> Option<String> {
    if let Some(arm) = arms.iter().find(|arm| arm.setup.is_some() || arm.cleanup.is_some()) {
        return Some(format!(
            "the setup and cleanup of arm '{}' are shell commands, which take too long to run around each slice",
            arm.name
        ));
    }
    prepared.then(|| "prepare runs before each whole execution".to_owned())
}

/// The words of a command line. A shell runs it if its operators stand between the words, as in `yes | head -c 1g`.
///
/// # Errors
/// When a quote is not closed.
pub fn command_words(text: &str) -> Result<Vec<String>, shell_words::ParseError> {
    let words = shell_words::split(text)?;
    // 2>&1, too.
    let begins =
        |word: &String| word.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(['|', '&', ';', '<', '>']);
    let needs_shell = words.iter().any(|word| begins(word) || word.ends_with(';'));
    Ok(if needs_shell { ["sh", "-c", text].map(str::to_owned).to_vec() } else { words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_runs_a_line_with_its_operators() {
        for line in ["yes | head -c 1g", "a 2>&1", "a; b", "a && b >f", "grep '|' f"] {
            assert_eq!(command_words(line).unwrap(), ["sh", "-c", line]);
        }
        assert_eq!(command_words("curl 'a b' http://h/?a=1&b=2").unwrap(), ["curl", "a b", "http://h/?a=1&b=2"]);
        assert_eq!(command_words("sh -c 'a | b' 3").unwrap(), ["sh", "-c", "a | b", "3"]);
        assert!(command_words("a 'b").is_err());
    }

    #[test]
    fn slices_are_auto_off_or_a_length() {
        assert_eq!(Slices::parse("auto"), Ok(Slices::Auto));
        assert_eq!(Slices::parse("off"), Ok(Slices::Off));
        assert_eq!(Slices::parse("50ms"), Ok(Slices::Of(0.05)));
        for text in ["", "on", "1ms", "11s", "-5ms"] {
            assert!(Slices::parse(text).unwrap_err().to_string().contains("auto, off, or a time"), "{text}");
        }
    }

    #[test]
    fn signals_are_read_with_and_without_their_prefix() {
        for signal in EndSignal::ALL {
            assert_eq!(EndSignal::parse(&signal.name()), Ok(signal));
        }
        assert_eq!((EndSignal::parse("INT"), EndSignal::parse("sigusr1")), (Ok(EndSignal::Int), Ok(EndSignal::Usr1)));
        assert!(EndSignal::parse("STOP").unwrap_err().to_string().contains("expected one of INT"));
    }

    #[test]
    fn what_must_run_around_a_whole_execution_hinders() {
        let arm = |arm: ArmPlan| ArmPlan { name: "x".to_owned(), ..arm };
        let plain = arm(ArmPlan::default());
        assert_eq!(hindrance(std::slice::from_ref(&plain), false), None);
        assert!(hindrance(std::slice::from_ref(&plain), true).is_some());
        let shell = arm(ArmPlan { setup: Some("true".to_owned()), ..ArmPlan::default() });
        assert!(hindrance(&[plain, shell], false).is_some_and(|why| why.contains("'x'")));
    }
}
