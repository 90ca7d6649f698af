//! The formats of a comparison: a row of the table for each. A new one is its own file and one row here.

use crate::ink::Ink;
use model::comparison::CompareFinding;

/// How a comparison is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompareFormat {
    /// The answer and the tables.
    Table,
    /// For scripts.
    Json,
    /// For a patch thread.
    Mail,
    /// For a pull request.
    Markdown,
    /// For a spreadsheet.
    Csv,
}

struct Row {
    format: CompareFormat,
    name: &'static str,
    about: &'static str,
    render: fn(&CompareFinding, Ink, usize) -> String,
}

const TABLE: [Row; 5] = [
    Row {
        format: CompareFormat::Table,
        name: "table",
        about: "the answer and the tables, to read on a terminal",
        render: super::terminal,
    },
    Row {
        format: CompareFormat::Json,
        name: "json",
        about: "every number, for scripts",
        render: |finding, _, _| super::json(finding),
    },
    Row {
        format: CompareFormat::Mail,
        name: "mail",
        about: "72 columns of plain text, to paste into a patch thread",
        render: |finding, _, _| super::mail(finding),
    },
    Row {
        format: CompareFormat::Markdown,
        name: "markdown",
        about: "GitHub's tables, for a pull request or an issue",
        render: |finding, _, _| super::markdown(finding),
    },
    Row {
        format: CompareFormat::Csv,
        name: "csv",
        about: "a line for each cell, arm and metric, for a spreadsheet",
        render: |finding, _, _| super::csv(finding),
    },
];

impl CompareFormat {
    /// Every format, in the order in which help lists them.
    pub const ALL: [Self; 5] = [Self::Table, Self::Json, Self::Mail, Self::Markdown, Self::Csv];

    /// The format that `name` stands for.
    pub fn parse(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.format)
    }

    /// The word for it on the command line.
    pub fn name(self) -> &'static str {
        self.row().map_or("", |row| row.name)
    }

    /// What it is, for help.
    pub fn about(self) -> &'static str {
        self.row().map_or("", |row| row.about)
    }

    /// `finding` in this format. Only the table heeds ink and width.
    pub fn render(self, finding: &CompareFinding, ink: Ink, columns: usize) -> String {
        self.row().map_or_else(String::new, |row| (row.render)(finding, ink, columns))
    }

    fn row(self) -> Option<&'static Row> {
        TABLE.iter().find(|row| row.format == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture;

    #[test]
    fn every_format_has_its_row_and_renders() {
        assert_eq!(CompareFormat::ALL.len(), TABLE.len());
        for format in CompareFormat::ALL {
            assert_eq!(CompareFormat::parse(format.name()), Some(format));
            assert!(!format.about().is_empty());
            for (name, finding) in fixture::all() {
                assert!(format.render(&finding, Ink::Plain, 100).ends_with('\n'), "{name} as {}", format.name());
            }
        }
        assert_eq!(CompareFormat::parse("Table"), None);
    }
}
