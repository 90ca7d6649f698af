//! The formats of a report: a row of the table for each. A new one is its own file and one row here.

use crate::ink::Ink;
use model::finding::RunFinding;

/// How a finding is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// The cost sheet.
    Table,
    /// For scripts.
    Json,
    /// For a patch thread.
    Mail,
}

struct Row {
    format: Format,
    name: &'static str,
    about: &'static str,
    render: fn(&RunFinding, Ink, usize) -> String,
}

const TABLE: [Row; 3] = [
    Row { format: Format::Table, name: "table", about: "a cost sheet to read on a terminal", render: crate::terminal },
    Row {
        format: Format::Json,
        name: "json",
        about: "every number, for scripts",
        render: |finding, _, _| crate::json(finding),
    },
    Row {
        format: Format::Mail,
        name: "mail",
        about: "72 columns of plain text, to paste into a patch thread",
        render: |finding, _, _| crate::mail(finding),
    },
];

impl Format {
    /// Every format, in the order in which help lists them.
    pub const ALL: [Self; 3] = [Self::Table, Self::Json, Self::Mail];

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

    /// `finding` in this format. Those for machines and mails heed neither ink nor width.
    pub fn render(self, finding: &RunFinding, ink: Ink, columns: usize) -> String {
        self.row().map_or_else(String::new, |row| (row.render)(finding, ink, columns))
    }

    fn row(self) -> Option<&'static Row> {
        TABLE.iter().find(|row| row.format == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_format_has_its_row_and_renders() {
        assert_eq!(Format::ALL.len(), TABLE.len());
        for format in Format::ALL {
            assert_eq!(Format::parse(format.name()), Some(format));
            assert!(!format.about().is_empty());
            for (name, finding) in fixture::all() {
                assert!(format.render(&finding, Ink::Plain, 100).ends_with('\n'), "{name} as {}", format.name());
            }
        }
        assert_eq!(Format::parse("Table"), None);
    }
}
