//! The formats of a report: a row of the table for each. A new one is its own file, a name here and a row; the command
//! line and its help list what the table has.

use crate::compare;
use crate::ink::Ink;
use model::comparison::CompareFinding;
use model::finding::RunFinding;

/// How a finding is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// The cost sheet, or the answer and the tables of changes: to read on a terminal.
    Table,
    /// Every number, for scripts.
    Json,
    /// 72 columns of plain text, to paste into a patch thread.
    Mail,
    /// GitHub's tables, for a pull request or an issue.
    Markdown,
    /// A line for each cell, arm and metric, for a spreadsheet.
    Csv,
}

/// How a finding becomes text. Formats for machines and mails heed neither ink nor width.
type Render<F> = fn(&F, Ink, usize) -> String;

struct Row {
    format: Format,
    name: &'static str,
    /// `None`: it is of comparisons only.
    run: Option<Render<RunFinding>>,
    compare: Render<CompareFinding>,
}

/// In the order in which help lists them.
static TABLE: [Row; 5] = [
    Row { format: Format::Table, name: "table", run: Some(crate::terminal), compare: compare::terminal },
    Row {
        format: Format::Json,
        name: "json",
        run: Some(|finding, _, _| crate::json(finding)),
        compare: |finding, _, _| crate::json(finding),
    },
    Row {
        format: Format::Mail,
        name: "mail",
        run: Some(|finding, _, _| crate::mail(finding)),
        compare: |finding, _, _| compare::mail(finding),
    },
    Row { format: Format::Markdown, name: "markdown", run: None, compare: |finding, _, _| compare::markdown(finding) },
    Row { format: Format::Csv, name: "csv", run: None, compare: |finding, _, _| compare::csv(finding) },
];

impl Format {
    /// Every format; a comparison has all of them.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.format)
    }

    /// Those of a run.
    pub fn of_runs() -> impl Iterator<Item = Self> {
        Self::all().filter(|format| format.is_of_runs())
    }

    /// Whether a run can be written in it.
    pub fn is_of_runs(self) -> bool {
        self.row().run.is_some()
    }

    /// The word for it on the command line.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// A run in this format, where it is [one of theirs](Self::is_of_runs).
    pub fn render(self, finding: &RunFinding, ink: Ink, columns: usize) -> Option<String> {
        self.row().run.map(|render| render(finding, ink, columns))
    }

    /// A comparison in this format.
    pub fn render_comparison(self, finding: &CompareFinding, ink: Ink, columns: usize) -> String {
        (self.row().compare)(finding, ink, columns)
    }

    fn row(self) -> &'static Row {
        // Every format has its row, so the first stands in for none; a test holds the table to that.
        let [first, ..] = &TABLE;
        TABLE.iter().find(|row| row.format == self).unwrap_or(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_format_has_its_row() {
        for format in [Format::Table, Format::Json, Format::Mail, Format::Markdown, Format::Csv] {
            assert_eq!(format.row().format, format);
        }
        let names: Vec<&str> = Format::all().map(Format::name).collect();
        assert_eq!(names, ["table", "json", "mail", "markdown", "csv"]);
        let names: Vec<&str> = Format::of_runs().map(Format::name).collect();
        assert_eq!(names, ["table", "json", "mail"]);
    }

    #[test]
    fn every_format_renders() {
        for format in Format::all() {
            for (name, finding) in fixture::all() {
                let text = format.render(&finding, Ink::Plain, 100);
                assert_eq!(text.is_some(), format.is_of_runs());
                assert!(text.is_none_or(|text| text.ends_with('\n')), "{name} as {}", format.name());
            }
            for (name, finding) in compare::fixture::all() {
                let text = format.render_comparison(&finding, Ink::Plain, 100);
                assert!(text.ends_with('\n'), "{name} as {}", format.name());
            }
        }
    }
}
