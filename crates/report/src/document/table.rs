//! Tables: columns that say how they are aligned, drawn and spared, and rows of cells.

use super::{Span, Tone};

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

/// How cells are shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draw {
    /// By their text.
    Text,
    /// By their text, which is a verdict.
    Verdict,
    /// As a bar: their raw number is a part of 1.
    Bar,
    /// As an interval on this scale.
    Interval(Scale),
}

/// The scale on which all intervals of a column are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Its ends, finite and rising.
    pub span: Span,
    /// For changes: the stretch around 0 that does not matter. Other scales have no mark.
    pub margin: Option<f64>,
}

/// The head of a column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its text.
    pub head: String,
    /// Where its cells stand.
    pub align: Align,
    /// Whether it can be left out.
    pub need: Need,
    /// How its cells are shown.
    pub draw: Draw,
    /// Whether its head gives way to the table's title where there is no room for both.
    pub gives_way: bool,
}

impl Column {
    /// The column that names the rows.
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

    /// A column of drawings, which goes first where there is no room.
    pub fn drawing(draw: Draw) -> Self {
        Self { draw, ..Self::text("").spare(0) }
    }

    /// The same column, left out at need.
    pub fn spare(self, rank: u8) -> Self {
        Self { need: Need::Spare(rank), ..self }
    }

    /// Whether its cells are drawn and have no text.
    pub fn is_drawn(&self) -> bool {
        matches!(self.draw, Draw::Bar | Draw::Interval(_))
    }
}

/// A value and the ends of its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// The ends, where they are known.
    pub ends: Option<(f64, f64)>,
}

/// What a cell holds beside its text.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Raw {
    /// Nothing.
    #[default]
    None,
    /// A number, in the unit that its row or column names.
    Number(f64),
    /// A number with its interval, to be drawn.
    Interval(Interval),
}

/// One field.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// Its text.
    pub text: String,
    /// The same in whole words, for where there is room.
    pub in_full: Option<String>,
    /// How it looks.
    pub tone: Tone,
    /// Its number.
    pub raw: Raw,
}

impl Cell {
    /// A field in a tone.
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { text: text.into(), tone, ..Self::default() }
    }

    /// A field that is drawn.
    pub fn drawn(tone: Tone, raw: Raw) -> Self {
        Self { tone, raw, ..Self::default() }
    }

    /// A number for programs; what is unknown is an empty field.
    pub fn number(value: Option<f64>) -> Self {
        let raw = value.filter(|value| value.is_finite()).map_or(Raw::None, Raw::Number);
        Self { raw, ..Self::default() }
    }

    /// The same with whole words for where there is room.
    pub fn in_full(self, text: impl Into<String>) -> Self {
        Self { in_full: Some(text.into()), ..self }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(Tone::Plain, text)
    }
}

/// One line.
#[derive(Clone, Debug)]
pub enum Row {
    /// A field for each column. A line below another one says more of the same: it is moved in by so many levels.
    Cells(usize, Vec<Cell>),
    /// Text in place of all columns but the first: why there are no numbers.
    Note(Cell, String),
}

/// Rows under heads.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The heads.
    pub columns: Vec<Column>,
    /// So many columns name a row. Rows that share the first name are a group where there are several.
    pub keys: usize,
    /// The lines.
    pub rows: Vec<Row>,
}

impl Table {
    /// A table without rows; its first column names them.
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns, keys: 1, rows: Vec::new() }
    }

    /// Adds a line of cells, one per column.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(Row::Cells(0, cells));
    }

    /// Adds a line that says more of the one above.
    pub fn sub_row(&mut self, cells: Vec<Cell>) {
        self.rows.push(Row::Cells(1, cells));
    }

    /// Adds a line that says why there are no numbers.
    pub fn note(&mut self, label: Cell, text: impl Into<String>) {
        self.rows.push(Row::Note(label, text.into()));
    }

    /// The names of a row, where it has cells.
    pub fn names<'a>(&self, row: &'a Row) -> &'a [Cell] {
        match row {
            Row::Cells(_, cells) => cells.get(..self.keys).unwrap_or(cells),
            Row::Note(..) => &[],
        }
    }

    /// Whether each row opens a group: its first name is not that of the row above.
    pub fn opens_group(&self) -> Vec<bool> {
        let first = |row| self.names(row).first().map(|cell| cell.text.as_str());
        let pairs = self.rows.iter().zip(self.rows.iter().skip(1));
        let opens = pairs.map(|(above, row)| self.keys > 1 && first(above) != first(row));
        std::iter::once(false).chain(opens).collect()
    }
}
