//! How a result is shown on standard output, where it is saved, and what it is judged by.

use super::value;
use clap::{Args, ColorChoice};
use report::{Ink, shell};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use verbs::format::PAGE;
use verbs::{Finding, Format};

/// The flags of every verb that prints a result.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Result")]
pub struct Shown {
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = value::format(), hide_possible_values = true,
        help = format!("Output format: {}", value::formats()))]
    pub format: Format,
    /// Show all of a table [default: one screen, which says where the rest is]
    #[arg(long)]
    pub full: bool,
    /// Colour a table: auto (on a terminal, unless NO_COLOR is set or TERM is dumb), never, always
    #[arg(long, value_name = "auto|never|always", default_value = "auto", hide_possible_values = true)]
    pub color: ColorChoice,
}

impl Shown {
    /// Whether the result is one screen, whose last line says where all is saved.
    pub fn is_glance(self) -> bool {
        !self.full && self.format == Format::Table
    }

    /// A finding as it is asked for; `folder` has its record.
    pub fn render(self, finding: &dyn Finding, ink: Ink, columns: usize, folder: Option<&Path>) -> String {
        if !self.is_glance() {
            return self.format.render(finding, ink, columns);
        }
        let rest = match folder.map(|folder| shell::quoted(&folder.display().to_string())) {
            Some(folder) => format!("The rest: iotoll report --full {folder}, or {PAGE} there"),
            None => "The rest: --full".to_owned(),
        };
        self.format.glance(finding, ink, columns, &rest)
    }
}

/// How results are printed and saved.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Result")]
pub struct Output {
    #[command(flatten)]
    pub shown: Shown,
    /// Save the record and report.html in this folder [default: iotoll-runs/TIME-NAME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Do not save the record
    #[arg(long, conflicts_with = "out")]
    pub no_save: bool,
    /// Print no progress and no notes
    #[arg(long)]
    pub quiet: bool,
}

/// What a result is judged by: an earlier record of the same kind, and limits.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Result")]
pub struct Earlier {
    /// Compare with an earlier record (its folder, or record.jsonl), and report what differs between then and now
    #[arg(long, value_name = "DIR")]
    pub stored: Option<PathBuf>,
    /// Exit with 3 if this limit is exceeded for sure, with 4 if that is undecided: 'METRIC > 30k' on a value, 'METRIC > +3%' on its
    /// change since --stored (of guests, else against the first arm); an unknown METRIC lists all
    #[arg(long, value_name = "LIMIT")]
    pub fail_on: Vec<String>,
}

/// The ink for an output that is a terminal or not.
pub fn ink(color: ColorChoice, is_terminal: bool, variable: &dyn Fn(&str) -> Option<OsString>) -> Ink {
    // no-color.org: any value but an empty one.
    let unwanted = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    match color {
        ColorChoice::Always => Ink::Colour,
        ColorChoice::Auto if is_terminal && !unwanted && !is_dumb(variable) => Ink::Colour,
        ColorChoice::Auto | ColorChoice::Never => Ink::Plain,
    }
}

/// Whether the terminal says that it knows no escape sequences: an editor's shell, a serial console.
pub fn is_dumb(variable: &dyn Fn(&str) -> Option<OsString>) -> bool {
    variable("TERM").is_some_and(|value| value == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_that_show_them() {
        let ink = |color: ColorChoice, is_terminal, set: &[(&str, &str)]| {
            let value = |name: &str| set.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into());
            super::ink(color, is_terminal, &value)
        };
        assert_eq!(ink(ColorChoice::Auto, true, &[("TERM", "xterm")]), Ink::Colour);
        assert_eq!(ink(ColorChoice::Auto, true, &[("NO_COLOR", "")]), Ink::Colour, "an empty value means nothing");
        for set in [&[("NO_COLOR", "1")], &[("TERM", "dumb")]] {
            assert_eq!(ink(ColorChoice::Auto, true, set), Ink::Plain, "{set:?}");
            assert_eq!(ink(ColorChoice::Always, false, set), Ink::Colour, "the flag precedes {set:?}");
        }
        assert_eq!(ink(ColorChoice::Auto, false, &[]), Ink::Plain);
        assert_eq!(ink(ColorChoice::Never, true, &[]), Ink::Plain);
    }
}
