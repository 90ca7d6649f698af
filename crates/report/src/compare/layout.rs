//! Grids and labelled texts on a page of characters: what the terminal and the mail have in common.

use super::section::{Body, Fact, Grid, Section};
use crate::page::{Page, Tone, width};
use crate::table::{Cell, Column, Table};

/// Labels are not made wider than this for the sake of one long name.
const WIDEST_LABEL: usize = 30;

/// A section: the title, its body moved in by `indent`, its remarks.
pub fn section(page: Page, indent: &str, section: &Section) -> String {
    let mut lines = match &section.body {
        Body::Grid(grid) => vec![self::grid(page, indent, &section.title, grid)],
        Body::Facts(facts) => vec![page.paint(Tone::Strong, &section.title), labelled(page, indent, facts)],
    };
    // There may be nothing but remarks.
    lines.retain(|line| !line.is_empty());
    lines.extend(section.notes.iter().map(|note| page.wrap_toned(Tone::Faint, indent, note)));
    lines.join("\n")
}

/// The title stands at the head of the first column, as in the cost sheet.
fn grid(page: Page, indent: &str, title: &str, grid: &Grid) -> String {
    let columns = grid.heads.iter().enumerate().map(|(index, head)| {
        let column = match (index, head.is_number) {
            (0, _) => Column::text(title),
            (_, true) => Column::number(&head.text),
            (_, false) => Column::text(&head.text),
        };
        if head.is_spare { column.spare(0) } else { column }
    });
    let mut table = Table::new(columns.collect());
    for row in &grid.rows {
        let cells = row.iter().enumerate().map(|(index, field)| {
            let indent = if index == 0 { indent } else { "" };
            Cell::new(field.tone, format!("{indent}{}", field.text))
        });
        table.row(cells.collect());
    }
    table.render(page)
}

/// Labels of one width, each with its text.
pub fn labelled(page: Page, indent: &str, facts: &[Fact]) -> String {
    let label = |fact: &Fact| page.cut(&page.spell(&format!("{indent}{}", fact.label)), WIDEST_LABEL);
    let room = facts.iter().map(|fact| width(&label(fact))).max().unwrap_or(0) + 2;
    let lines = facts.iter().map(|fact| page.labelled(Tone::Plain, &label(fact), room, &fact.text));
    lines.collect::<Vec<_>>().join("\n")
}
