//! The formats of a report, a row of the table for each, and the kinds of findings, an implementation of [`Finding`] for each.

use crate::document::Document;
use crate::{Ink, compare, cost, csv, doctor, html, json, mail, markdown, terminal};
use model::comparison::CompareFinding;
use model::doctor::Diagnosis;
use model::finding::RunFinding;
use serde::Serialize;

/// What can be reported. Its JSON is its own; everything else is made from its document.
pub trait Finding: Serialize {
    /// The finding as a document.
    fn document(&self) -> Document;
}

impl Finding for RunFinding {
    fn document(&self) -> Document {
        cost::document(self)
    }
}

impl Finding for CompareFinding {
    fn document(&self) -> Document {
        compare::document(self)
    }
}

impl Finding for Diagnosis {
    fn document(&self) -> Document {
        doctor::document(self)
    }
}

/// How a finding is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// To read on a terminal.
    Table,
    /// Every number, for scripts.
    Json,
    /// 72 columns of plain text, to paste into a patch thread.
    Mail,
    /// GitHub's tables, for a pull request or an issue.
    Markdown,
    /// A line for each number or change, for a spreadsheet.
    Csv,
    /// One file for a browser, with charts and without network.
    Html,
}

/// How a document becomes text. Only the terminal's heeds ink and width.
type Render = fn(&Document, Ink, usize) -> String;

struct Row {
    format: Format,
    name: &'static str,
    /// `None`: the serialized finding.
    render: Option<Render>,
}

/// In the order in which help lists them.
static TABLE: [Row; 6] = [
    Row { format: Format::Table, name: "table", render: Some(terminal::terminal) },
    Row { format: Format::Json, name: "json", render: None },
    Row { format: Format::Mail, name: "mail", render: Some(|document, _, _| mail::mail(document)) },
    Row { format: Format::Markdown, name: "markdown", render: Some(|document, _, _| markdown::markdown(document)) },
    Row { format: Format::Csv, name: "csv", render: Some(|document, _, _| csv::csv(document)) },
    Row { format: Format::Html, name: "html", render: Some(|document, _, _| html::html(document)) },
];

impl Format {
    /// Every format.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.format)
    }

    /// The word for it on the command line.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// A finding in this format.
    pub fn render(self, finding: &impl Finding, ink: Ink, columns: usize) -> String {
        match self.row().render {
            Some(render) => render(&finding.document(), ink, columns),
            None => json::json(finding),
        }
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

    #[test]
    fn every_format_has_its_row() {
        for format in [Format::Table, Format::Json, Format::Mail, Format::Markdown, Format::Csv, Format::Html] {
            assert_eq!(format.row().format, format);
        }
        let names: Vec<&str> = Format::all().map(Format::name).collect();
        assert_eq!(names, ["table", "json", "mail", "markdown", "csv", "html"]);
    }

    fn renders(format: Format, name: &str, finding: &impl Finding) {
        let text = format.render(finding, Ink::Plain, 100);
        assert!(text.ends_with('\n') && text.len() > 1, "{name} as {}", format.name());
    }

    #[test]
    fn every_format_renders_every_kind() {
        for format in Format::all() {
            cost::fixture::all().iter().for_each(|(name, finding)| renders(format, name, finding));
            compare::fixture::all().iter().for_each(|(name, finding)| renders(format, name, finding));
            renders(format, "doctor", &doctor::fixture());
        }
    }
}
