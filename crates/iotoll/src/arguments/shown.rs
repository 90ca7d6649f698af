//! How a result is shown on standard output.

use super::value;
use clap::{Args, ValueEnum};
use report::{Finding, Format, Ink, PAGE, shell};
use std::ffi::OsString;
use std::path::Path;

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
    pub color: Color,
}

impl Shown {
    /// The same for what has nothing to leave out.
    pub fn in_full(self) -> Self {
        Self { full: true, ..self }
    }

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

/// When a table has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// Where a terminal shows them and nobody asked to have none.
    Auto,
    /// Not at all.
    Never,
    /// Also in a file or a pipe, as for `less -R`.
    Always,
}

impl Color {
    /// The ink for an output that is a terminal or not.
    pub fn ink(self, is_terminal: bool, variable: &dyn Fn(&str) -> Option<OsString>) -> Ink {
        // no-color.org: any value but an empty one.
        let unwanted = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        match self {
            Self::Always => Ink::Colour,
            Self::Auto if is_terminal && !unwanted && !is_dumb(variable) => Ink::Colour,
            Self::Auto | Self::Never => Ink::Plain,
        }
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
        let ink = |color: Color, is_terminal, set: &[(&str, &str)]| {
            let value = |name: &str| set.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into());
            color.ink(is_terminal, &value)
        };
        assert_eq!(ink(Color::Auto, true, &[("TERM", "xterm")]), Ink::Colour);
        assert_eq!(ink(Color::Auto, true, &[("NO_COLOR", "")]), Ink::Colour, "an empty value means nothing");
        for set in [&[("NO_COLOR", "1")], &[("TERM", "dumb")]] {
            assert_eq!(ink(Color::Auto, true, set), Ink::Plain, "{set:?}");
            assert_eq!(ink(Color::Always, false, set), Ink::Colour, "the flag precedes {set:?}");
        }
        assert_eq!(ink(Color::Auto, false, &[]), Ink::Plain);
        assert_eq!(ink(Color::Never, true, &[]), Ink::Plain);
    }
}
