//! Tables: columns with alignment, drawing and priority, and rows of cells.

use super::{Span, Tone};
use crate::number::MISSING;

/// The alignment of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Left, for names.
    Left,
    /// Right, for numbers.
    Right,
}

/// Whether a column may be omitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Only if no other column can be omitted.
    Must,
    /// Yes; the lowest number first.
    Spare(u8),
}

/// How cells are shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draw {
    Text,
    Verdict,
    /// As a bar: the raw number is a fraction of 1.
    Bar,
    /// As a bar from the middle to either side: the raw number is a fraction between -1 and 1.
    Diverging,
    Interval(Scale),
}

/// The common scale of all intervals of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Its ends, finite and ascending.
    pub span: Span,
    /// For changes: the margin around 0. Other scales have none.
    pub margin: Option<f64>,
}

#[derive(Clone, Debug)]
pub struct Column {
    /// The text of its header.
    pub head: String,
    /// The alignment of its cells.
    pub align: Align,
    /// Whether it may be omitted.
    pub need: Need,
    /// How its cells are shown.
    pub draw: Draw,
    /// Whether the table's title replaces its header if there is no room for both.
    pub gives_way: bool,
}

impl Column {
    /// The column with the names of the rows.
    pub fn rows(head: impl Into<String>) -> Self {
        Self { gives_way: true, ..Self::text(head) }
    }

    /// A column of names.
    pub fn text(head: impl Into<String>) -> Self {
        Self { head: head.into(), align: Align::Left, need: Need::Must, draw: Draw::Text, gives_way: false }
    }

    /// A column of numbers.
    pub fn number(head: impl Into<String>) -> Self {
        Self { align: Align::Right, ..Self::text(head) }
    }

    /// A column of verdicts.
    pub fn verdict(head: impl Into<String>) -> Self {
        Self { draw: Draw::Verdict, ..Self::text(head) }
    }

    /// A column of drawings, which is omitted first.
    pub fn drawing(draw: Draw) -> Self {
        Self { draw, ..Self::text("").spare(0) }
    }

    /// The same column, omitted if needed.
    pub fn spare(self, rank: u8) -> Self {
        Self { need: Need::Spare(rank), ..self }
    }

    /// Whether its cells are drawings without text.
    pub fn is_drawn(&self) -> bool {
        matches!(self.draw, Draw::Bar | Draw::Diverging | Draw::Interval(_))
    }
}

/// A value and the ends of its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    pub value: f64,
    /// The ends, if known.
    pub ends: Option<(f64, f64)>,
}

/// The raw value of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Raw {
    /// Nothing.
    #[default]
    None,
    /// A number, in the unit of its row or column.
    Number(f64),
    /// A number with its interval, for drawings.
    Interval(Interval),
}

#[derive(Clone, Debug, Default)]
pub struct Cell {
    pub text: String,
    /// The long form of the text, for formats with more room.
    pub in_full: Option<String>,
    pub tone: Tone,
    /// Its raw value.
    pub raw: Raw,
}

impl Cell {
    /// A cell with a tone.
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { text: text.into(), tone, ..Self::default() }
    }

    /// A cell with a drawing.
    pub fn drawn(tone: Tone, raw: Raw) -> Self {
        Self { tone, raw, ..Self::default() }
    }

    /// A number for programs. An unknown value is an empty field.
    pub fn number(value: Option<f64>) -> Self {
        let raw = value.filter(|value| value.is_finite()).map_or(Raw::None, Raw::Number);
        Self { raw, ..Self::default() }
    }

    /// Adds a long form for formats with more room.
    pub fn in_full(self, text: impl Into<String>) -> Self {
        Self { in_full: Some(text.into()), ..self }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(Tone::Plain, text)
    }
}

#[derive(Clone, Debug)]
pub enum Row {
    /// One cell for each column. A row with more details about the one above is indented by this number of levels.
    Cells(usize, Vec<Cell>),
    /// Text instead of all columns but the first: why there are no numbers.
    Note(Cell, String),
}

/// Rows with a header.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub columns: Vec<Column>,
    /// Number of columns that name a row. If there are several, rows with the same first name form a group.
    pub keys: usize,
    pub rows: Vec<Row>,
}

impl Table {
    /// A table without rows. Its first column names the rows.
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns, keys: 1, rows: Vec::new() }
    }

    /// Adds a row of cells, one for each column.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(Row::Cells(0, cells));
    }

    /// Adds a row with more details about the one above.
    pub fn sub_row(&mut self, cells: Vec<Cell>) {
        self.rows.push(Row::Cells(1, cells));
    }

    /// Adds a row with the reason why there are no numbers.
    pub fn note(&mut self, label: Cell, text: impl Into<String>) {
        self.rows.push(Row::Note(label, text.into()));
    }

    /// Takes out the rows whose cells are all missing, and returns their names. A row with more details below it stays.
    pub(super) fn take_blank_rows(&mut self) -> Vec<String> {
        let level = |row: &Row| if let Row::Cells(level, _) = row { *level } else { 0 };
        let mut kept: Vec<Row> = Vec::new();
        let mut names = Vec::new();
        // From the end, so that the details of a row are decided before the row.
        for row in std::mem::take(&mut self.rows).into_iter().rev() {
            let has_details = kept.last().is_some_and(|below| level(below) > level(&row));
            if has_details || !self.is_blank(&row) {
                kept.push(row);
            } else {
                let texts = self.names(&row).iter().map(|cell| cell.text.as_str());
                names.push(texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" "));
            }
        }
        kept.reverse();
        names.reverse();
        self.rows = kept;
        names
    }

    /// Whether a row has dashes and nothing else besides its names.
    fn is_blank(&self, row: &Row) -> bool {
        let Row::Cells(_, cells) = row else { return false };
        let mut values = cells.iter().skip(self.keys);
        let is_missing = |cell: &Cell| cell.text == MISSING;
        let is_nothing = |cell: &Cell| cell.text.is_empty() && cell.raw == Raw::None;
        values.clone().any(is_missing) && values.all(|cell| is_missing(cell) || is_nothing(cell))
    }

    /// The names of a row, if it has cells.
    pub fn names<'a>(&self, row: &'a Row) -> &'a [Cell] {
        match row {
            Row::Cells(_, cells) => cells.get(..self.keys).unwrap_or(cells),
            Row::Note(..) => &[],
        }
    }

    /// Whether each row starts a group: its first name differs from that of the row above.
    pub fn opens_group(&self) -> Vec<bool> {
        let first = |row| self.names(row).first().map(|cell| cell.text.as_str());
        let pairs = self.rows.iter().zip(self.rows.iter().skip(1));
        let opens = pairs.map(|(above, row)| self.keys > 1 && first(above) != first(row));
        std::iter::once(false).chain(opens).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_dashes_is_taken_out_and_named() {
        let mut table = Table::new(["", "mean", "p99"].map(Column::text).to_vec());
        table.row(["read", "1 µs", MISSING].map(Cell::from).to_vec());
        table.row(["write", MISSING, ""].map(Cell::from).to_vec());
        table.row(["trim", MISSING, MISSING].map(Cell::from).to_vec());
        table.sub_row(["round trip", "2 µs", MISSING].map(Cell::from).to_vec());
        table.sub_row(["delivery", MISSING, MISSING].map(Cell::from).to_vec());
        table.row(["total", "", ""].map(Cell::from).to_vec());
        assert_eq!(table.take_blank_rows(), ["write", "delivery"]);
        let names: Vec<&str> = table.rows.iter().map(|row| table.names(row)[0].text.as_str()).collect();
        assert_eq!(names, ["read", "trim", "round trip", "total"], "a row with details stays");
    }
}
