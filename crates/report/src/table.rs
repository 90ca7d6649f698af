//! Aligned columns that always fit the page.
//!
//! A table that is too wide first shortens its first column, then leaves out the columns that it can
//! spare, the least needed first. Cells carry their tone, so widths are those of the bare text.

use crate::page::{Page, Tone, width};

/// Blanks between columns.
const GAP: usize = 2;
/// The first column is not shortened below this part of the page.
const LEAST_FIRST: usize = 3;

/// Where a cell's text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Names.
    Left,
    /// Numbers.
    Right,
}

/// Whether a column can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It cannot, as long as anything else can.
    Must,
    /// It can; the lowest goes first.
    Spare(u8),
}

/// The head of a column.
#[derive(Clone, Debug)]
pub struct Column {
    head: String,
    align: Align,
    need: Need,
}

impl Column {
    /// A column of names.
    pub fn text(head: impl Into<String>) -> Self {
        Self { head: head.into(), align: Align::Left, need: Need::Must }
    }

    /// A column of numbers.
    pub fn number(head: impl Into<String>) -> Self {
        Self { head: head.into(), align: Align::Right, need: Need::Must }
    }

    /// The same column, left out at need.
    pub fn spare(self, rank: u8) -> Self {
        Self { need: Need::Spare(rank), ..self }
    }
}

/// One field.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// A field in a tone.
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { text: text.into(), tone }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(Tone::Plain, text)
    }
}

/// One line, or a few.
#[derive(Clone, Debug)]
enum Row {
    Cells(Vec<Cell>),
    /// Text in place of all columns but the first: why there are no numbers.
    Note(Cell, String),
    /// An empty line, between groups.
    Gap,
    /// A line of its own, however long the names in the first column are.
    Title(String),
}

/// Rows under heads; the first head is the title.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a line of cells, one per column.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(Row::Cells(cells));
    }

    /// Adds a line that says why there are no numbers.
    pub fn note(&mut self, label: Cell, text: impl Into<String>) {
        self.rows.push(Row::Note(label, text.into()));
    }

    /// Adds an empty line.
    pub fn gap(&mut self) {
        self.rows.push(Row::Gap);
    }

    /// Adds a line above a group.
    pub fn title(&mut self, text: impl Into<String>) {
        self.rows.push(Row::Title(text.into()));
    }

    /// The lines, joined; nothing when there are no rows.
    pub fn render(mut self, page: Page) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        self.spell(page);
        let widths = self.fit(page.columns());
        let mut lines = vec![self.heads(page, &widths)];
        for row in &self.rows {
            match row {
                Row::Cells(cells) => lines.push(line(page, &self.columns, &widths, cells)),
                Row::Note(label, text) => {
                    let first = widths.first().copied().flatten().unwrap_or(0);
                    let label = padded(&page.cut(&label.text, first), first + GAP);
                    lines.push(page.wrap_toned(Tone::Faint, &label, text));
                }
                Row::Gap => lines.push(String::new()),
                Row::Title(text) => lines.push(page.paint(Tone::Strong, page.cut(text, page.columns()).trim_end())),
            }
        }
        lines.join("\n")
    }

    fn spell(&mut self, page: Page) {
        for column in &mut self.columns {
            column.head = page.spell(&column.head);
        }
        for row in &mut self.rows {
            match row {
                Row::Cells(cells) => cells.iter_mut().for_each(|cell| cell.text = page.spell(&cell.text)),
                Row::Note(label, _) => label.text = page.spell(&label.text),
                Row::Title(text) => *text = page.spell(text),
                Row::Gap => {}
            }
        }
    }

    /// The width of every column, `None` for those left out.
    fn fit(&self, room: usize) -> Vec<Option<usize>> {
        let mut widths: Vec<_> = (0..self.columns.len()).map(|index| Some(self.natural(index))).collect();
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
        widths
    }

    fn natural(&self, index: usize) -> usize {
        let head = self.columns.get(index).map_or(0, |column| width(&column.head));
        let cells = self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => cells.get(index),
            Row::Note(label, _) => (index == 0).then_some(label),
            Row::Gap | Row::Title(_) => None,
        });
        cells.map(|cell| width(&cell.text)).fold(head, usize::max)
    }

    fn heads(&self, page: Page, widths: &[Option<usize>]) -> String {
        let heads = self.columns.iter().enumerate();
        let tone = |index| if index == 0 { Tone::Strong } else { Tone::Faint };
        let heads: Vec<_> = heads.map(|(index, column)| Cell::new(tone(index), column.head.clone())).collect();
        line(page, &self.columns, widths, &heads)
    }
}

fn total(widths: &[Option<usize>]) -> usize {
    let shown: Vec<_> = widths.iter().flatten().collect();
    shown.iter().copied().sum::<usize>() + GAP * shown.len().saturating_sub(1)
}

fn line(page: Page, columns: &[Column], widths: &[Option<usize>], cells: &[Cell]) -> String {
    let mut line = String::new();
    let mut owed = 0;
    for ((column, room), cell) in columns.iter().zip(widths).zip(cells) {
        let Some(room) = *room else { continue };
        let text = page.cut(&cell.text, room);
        let blank = room.saturating_sub(width(&text));
        let (before, after) = if column.align == Align::Right { (blank, 0) } else { (0, blank) };
        // Blanks are owed until something follows them, so that no line ends in any.
        if !text.is_empty() {
            line.push_str(&" ".repeat(owed + before));
            line.push_str(&page.paint(cell.tone, &text));
            owed = after + GAP;
        } else {
            owed += room + GAP;
        }
    }
    line
}

fn padded(text: &str, room: usize) -> String {
    text.to_owned() + &" ".repeat(room.saturating_sub(width(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ink::Ink;

    fn table() -> Table {
        let mut table = Table::new(vec![
            Column::text("Meters"),
            Column::number("kcycles/IO"),
            Column::text("interval").spare(1),
            Column::number("watched").spare(2),
        ]);
        table.row(vec!["  idle".into(), Cell::new(Tone::Strong, "6.91"), "[6.84, 6.98]".into(), "9.60 s".into()]);
        table.row(vec!["  読み".into(), "12.3".into(), "".into(), "".into()]);
        table.note("  pmu".into(), "the hypervisor offers no cycle counter to this machine, so that it cannot be read");
        table
    }

    #[test]
    fn columns_are_aligned_and_notes_wrapped() {
        insta::assert_snapshot!(table().render(Page::terminal(Ink::Plain, 60)), @r"
        Meters  kcycles/IO  interval      watched
          idle        6.91  [6.84, 6.98]   9.60 s
          読み        12.3
          pmu   the hypervisor offers no cycle counter to this
                machine, so that it cannot be read
        ");
    }

    #[test]
    fn colour_does_not_move_a_column() {
        let coloured = table().render(Page::terminal(Ink::Colour, 60));
        let plain = table().render(Page::terminal(Ink::Plain, 60));
        let widths = |text: &str| text.lines().map(width).collect::<Vec<_>>();
        assert_eq!(widths(&coloured), widths(&plain));
    }

    #[test]
    fn what_can_be_spared_goes_first() {
        let wide = "x".repeat(50);
        let mut table = Table::new(vec![
            Column::text("Jobs"),
            Column::number("a").spare(2),
            Column::number("b").spare(1),
            Column::number("c"),
        ]);
        table.row(vec!["name".into(), "1".into(), wide.as_str().into(), "3".into()]);
        let text = table.render(Page::terminal(Ink::Plain, 60));
        assert!(!text.contains(&wide) && text.contains('1') && text.contains('3'), "{text}");
    }

    #[test]
    fn a_table_that_cannot_fit_still_does() {
        let mut table = Table::new(vec![Column::text("Jobs"), Column::number("a"), Column::number("b")]);
        table.row(vec!["n".repeat(200).into(), "1".repeat(50).into(), "2".repeat(50).into()]);
        let text = table.render(Page::terminal(Ink::Plain, 60));
        assert!(text.lines().all(|line| width(line) <= 60), "{text}");
    }
}
