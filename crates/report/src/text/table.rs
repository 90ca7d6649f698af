//! Aligned columns that always fit the page.
//!
//! A table that is too wide first shortens its first column, then moves shared names of rows above them, then omits the
//! columns that it can spare, the least needed first. Cells carry their tone, so widths are those of the bare text.

use super::drawing;
use super::{Page, width};
use crate::document::{Align, Cell, Column, Draw, Need, Row, Table, Tone};

/// Blanks between columns.
const GAP: usize = 2;
/// The first column is not shortened below this fraction of the page.
const LEAST_FIRST: usize = 3;
/// A header that is wider than its cells is cut to this width.
const WIDEST_HEAD: usize = 14;

/// A line of the layout.
enum Line {
    Cells(Vec<(Tone, String)>),
    /// Text in place of all columns but the first.
    Note(String, String),
    /// An empty line, between groups.
    Gap,
    /// A separate line, independent of the width of the first column.
    Title(String),
}

/// The lines, joined; empty without rows. The title replaces the header of the first column if that allows it,
/// otherwise it is above the table.
pub fn table(page: Page, title: &str, table: &Table) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let mut laid = Grid::new(page, title, table, false);
    if table.keys > 1 && laid.needed() > page.columns() {
        laid = Grid::new(page, title, table, true);
    }
    laid.render()
}

/// A table in this page's characters.
struct Grid {
    page: Page,
    title: String,
    columns: Vec<Column>,
    lines: Vec<Line>,
}

impl Grid {
    /// `stacked`: all names of a row but the last are above the rows that share them.
    fn new(page: Page, title: &str, table: &Table, stacked: bool) -> Self {
        let left_out = if stacked { table.keys - 1 } else { 0 };
        // A page that cannot draw omits columns of drawings.
        let is_shown = |column: &Column| page.can_draw() || !column.is_drawn();
        let shown = table.columns.iter().skip(left_out).filter(|column| is_shown(column));
        let mut columns: Vec<Column> = shown.cloned().collect();
        let gives_way = columns.first().is_some_and(|first| first.gives_way);
        for column in &mut columns {
            let head = match column.draw {
                Draw::Interval(scale) => drawing::head(scale),
                Draw::Text | Draw::Verdict | Draw::Bar | Draw::Diverging => page.spell(&column.head),
            };
            column.head = if column.align == Align::Right { page.cut(&head, WIDEST_HEAD) } else { head };
        }
        let indent = if gives_way && !title.is_empty() { page.indent() } else { "" };
        let title = page.spell(title);
        let title = match columns.first_mut() {
            Some(first) if gives_way => {
                first.head = title;
                String::new()
            }
            _ => title,
        };
        let mut grid = Self { page, title, columns, lines: Vec::new() };
        let mut above: Vec<String> = Vec::new();
        for (row, opens) in table.rows.iter().zip(table.opens_group()) {
            let names = table.names(row);
            match row {
                Row::Cells(level, cells) => {
                    let shared: Vec<String> = names
                        .iter()
                        .take(left_out)
                        .zip(&table.columns)
                        .map(|(name, of)| format!("{}={}", of.head, name.text))
                        .collect();
                    if stacked && *level == 0 && shared != above {
                        grid.lines.push(Line::Title(page.spell(&shared.join(" "))));
                        above = shared;
                    } else if opens && !stacked {
                        grid.lines.push(Line::Gap);
                    }
                    let indent = format!("{indent}{}", "  ".repeat(*level));
                    let cells = cells.iter().zip(&table.columns).skip(left_out).filter(|(_, column)| is_shown(column));
                    grid.cells(&indent, cells.map(|(cell, _)| cell));
                }
                Row::Note(label, text) => {
                    grid.lines.push(Line::Note(page.spell(&format!("{indent}{}", label.text)), text.clone()));
                }
            }
        }
        grid
    }

    fn cells<'a>(&mut self, indent: &str, cells: impl Iterator<Item = &'a Cell>) {
        let cells = cells.zip(&self.columns).enumerate().map(|(place, (cell, column))| {
            let indent = if place == 0 { indent } else { "" };
            let drawn = drawing::draw(column.draw, cell.raw);
            (cell.tone, drawn.unwrap_or_else(|| self.page.spell(&format!("{indent}{}", cell.text))))
        });
        self.lines.push(Line::Cells(cells.collect()));
    }

    fn render(&self) -> String {
        let page = self.page;
        let widths = self.fit(page.columns());
        let mut lines = Vec::new();
        if !self.title.trim().is_empty() {
            lines.push(page.wrap_toned(Tone::Strong, "", &self.title));
        }
        lines.push(self.heads(&widths));
        for line in &self.lines {
            match line {
                Line::Cells(cells) => lines.push(self.line(&widths, cells)),
                Line::Note(label, text) => {
                    // Where all other columns are omitted, the first may be as wide as the page.
                    let first = widths.first().copied().flatten().unwrap_or(0).min(page.columns() / 2);
                    let label = padded(&page.cut(label, first), first + GAP);
                    lines.push(page.wrap_toned(Tone::Faint, &label, text));
                }
                Line::Gap => lines.push(String::new()),
                Line::Title(text) => lines.push(page.paint(Tone::Strong, page.cut(text, page.columns()).trim_end())),
            }
        }
        lines.join("\n")
    }

    /// The width of every column; `None` for omitted ones.
    fn fit(&self, room: usize) -> Vec<Option<usize>> {
        let mut widths = self.natural();
        let excess = total(&widths).saturating_sub(room);
        if let Some(Some(first)) = widths.first_mut() {
            *first = (*first).min(first.saturating_sub(excess).max(room / LEAST_FIRST));
        }
        while total(&widths) > room {
            let spare =
                self.columns.iter().enumerate().filter(|(index, _)| matches!(widths.get(*index), Some(Some(_))));
            let spare = spare.skip(1).min_by_key(|(index, column)| match column.need {
                Need::Spare(rank) => (rank, 0),
                Need::Must => (u8::MAX, usize::MAX - index),
            });
            match spare.map(|(index, _)| index).and_then(|index| widths.get_mut(index)) {
                Some(width) => *width = None,
                None => break,
            }
        }
        // What was omitted may leave room for the first column.
        let free = room.saturating_sub(total(&widths));
        if let (Some(Some(first)), Some(Some(natural))) = (widths.first_mut(), self.natural().first()) {
            *first = (*natural).min(*first + free);
        }
        widths
    }

    /// The width of all columns except drawings.
    fn needed(&self) -> usize {
        let widths = self.natural().into_iter().zip(&self.columns);
        total(&widths.filter(|(_, column)| !column.is_drawn()).map(|(width, _)| width).collect::<Vec<_>>())
    }

    /// The width of each column if there is enough room.
    fn natural(&self) -> Vec<Option<usize>> {
        let of = |(index, column): (usize, &Column)| {
            let cells = self.lines.iter().filter_map(|line| match line {
                Line::Cells(cells) => cells.get(index).map(|(_, text)| text),
                Line::Note(label, _) => (index == 0).then_some(label),
                Line::Gap | Line::Title(_) => None,
            });
            Some(cells.map(|text| width(text)).fold(width(&column.head), usize::max))
        };
        self.columns.iter().enumerate().map(of).collect()
    }

    fn heads(&self, widths: &[Option<usize>]) -> String {
        let tone = |index| if index == 0 { Tone::Strong } else { Tone::Faint };
        let heads = self.columns.iter().enumerate();
        let heads: Vec<_> = heads.map(|(index, column)| (tone(index), column.head.clone())).collect();
        self.line(widths, &heads)
    }

    fn line(&self, widths: &[Option<usize>], cells: &[(Tone, String)]) -> String {
        let mut line = String::new();
        let mut owed = 0;
        for ((column, room), (tone, text)) in self.columns.iter().zip(widths).zip(cells) {
            let Some(room) = *room else { continue };
            let text = self.page.cut(text, room);
            let blank = room.saturating_sub(width(&text));
            let (before, after) = if column.align == Align::Right { (blank, 0) } else { (0, blank) };
            // Blanks are only written before further text, so that no line ends with a blank.
            if !text.is_empty() {
                line.push_str(&" ".repeat(owed + before));
                line.push_str(&self.page.paint(*tone, &text));
                owed = after + GAP;
            } else {
                owed += room + GAP;
            }
        }
        line
    }
}

fn total(widths: &[Option<usize>]) -> usize {
    let shown: Vec<_> = widths.iter().flatten().collect();
    shown.iter().copied().sum::<usize>() + GAP * shown.len().saturating_sub(1)
}

fn padded(text: &str, room: usize) -> String {
    text.to_owned() + &" ".repeat(room.saturating_sub(width(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Ink;

    fn meters() -> Table {
        let mut table = Table::new(vec![
            Column::rows("meter"),
            Column::number("kcycles/IO"),
            Column::text("interval").spare(1),
            Column::number("watched").spare(2),
        ]);
        table.row(vec!["idle".into(), Cell::new(Tone::Strong, "6.91"), "[6.84, 6.98]".into(), "9.60 s".into()]);
        table.row(vec!["読み".into(), "12.3".into(), "".into(), "".into()]);
        table.note("pmu".into(), "the hypervisor offers no cycle counter to this machine, so that it cannot be read");
        table
    }

    #[test]
    fn columns_are_aligned_and_notes_wrapped() {
        insta::assert_snapshot!(table(Page::terminal(Ink::Plain, 60), "Meters", &meters()), @r"
        Meters  kcycles/IO  interval      watched
          idle        6.91  [6.84, 6.98]   9.60 s
          読み        12.3
          pmu   the hypervisor offers no cycle counter to this
                machine, so that it cannot be read
        ");
    }

    #[test]
    fn colour_does_not_move_a_column() {
        let coloured = table(Page::terminal(Ink::Colour, 60), "Meters", &meters());
        let plain = table(Page::terminal(Ink::Plain, 60), "Meters", &meters());
        let widths = |text: &str| text.lines().map(width).collect::<Vec<_>>();
        assert_eq!(widths(&coloured), widths(&plain));
    }

    #[test]
    fn spare_columns_are_omitted_first() {
        let wide = "x".repeat(50);
        let mut jobs = Table::new(vec![
            Column::text("Jobs"),
            Column::number("a").spare(2),
            Column::number("b").spare(1),
            Column::number("c"),
        ]);
        jobs.row(vec!["name".into(), "1".into(), wide.as_str().into(), "3".into()]);
        let text = table(Page::terminal(Ink::Plain, 60), "", &jobs);
        assert!(!text.contains(&wide) && text.contains('1') && text.contains('3'), "{text}");
    }

    #[test]
    fn every_table_is_made_to_fit() {
        let mut jobs = Table::new(vec![Column::text("Jobs"), Column::number("a"), Column::number("b")]);
        jobs.row(vec!["n".repeat(200).into(), "1".repeat(50).into(), "2".repeat(50).into()]);
        let text = table(Page::terminal(Ink::Plain, 60), "", &jobs);
        assert!(text.lines().all(|line| width(line) <= 60), "{text}");
    }
}
