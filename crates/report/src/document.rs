//! The document: what a report says, before anything decides how it looks.
//!
//! A kind's own function makes one from a finding; each renderer lays it out and knows no kind. It holds data only: texts with
//! their tones, tables of cells, charts of points.

pub mod chart;
mod span;
mod table;

pub use chart::{Axis, Chart, Mark, Point, Series};
pub use span::Span;
pub use table::{Align, Cell, Column, Draw, Interval, Need, Raw, Row, Scale, Table};

use model::warning::Warning;

/// How a text is meant, from which a renderer makes a colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Text.
    #[default]
    Plain,
    /// What to see first.
    Strong,
    /// What to read last.
    Faint,
    /// The workload's own, better, or in order.
    Own,
    /// What others did, or what to look at.
    Notice,
    /// Worse, or failed.
    Bad,
}

/// Which readers a part of the document is for. A renderer says which one it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audience(u8);

impl Audience {
    /// Reads on the screen of the machine that was measured.
    pub const SCREEN: Self = Self(1);
    /// Reads a mail or an issue, and knows neither the machine nor the command.
    pub const POST: Self = Self(2);
    /// Has a page with room for charts and whole words.
    pub const PAGE: Self = Self(4);
    /// Everybody.
    pub const ALL: Self = Self(7);

    /// The readers of both.
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether some reader belongs to both.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// A text with its tone.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// How it looks.
    pub tone: Tone,
    /// The text.
    pub text: String,
}

impl Note {
    /// A text.
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone, text: text.into() }
    }
}

/// One line of the answer: a text, and what it comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Sentence {
    /// The text.
    pub text: String,
    /// The verdict in words, which follows the text after a colon.
    pub verdict: Option<Note>,
    /// What is left to say, after a semicolon.
    pub detail: Option<String>,
}

impl Sentence {
    /// A text without a verdict.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), verdict: None, detail: None }
    }

    /// A text and its verdict.
    pub fn judged(text: impl Into<String>, tone: Tone, words: impl Into<String>) -> Self {
        Self { verdict: Some(Note::new(tone, words)), ..Self::plain(text) }
    }

    /// All of it on one line.
    pub fn whole(&self) -> String {
        let verdict = self.verdict.as_ref().map(|verdict| format!(": {}", verdict.text)).unwrap_or_default();
        let detail = self.detail.as_ref().map(|detail| format!("; {detail}")).unwrap_or_default();
        format!("{}{verdict}{detail}", self.text)
    }
}

/// A label and what is said of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// What it is about.
    pub label: String,
    /// The text.
    pub text: String,
    /// What it comes to, shown as a mark before the label: in order, to look at, to mend, not known.
    pub mark: Option<Tone>,
    /// Whose.
    pub audience: Audience,
}

impl Fact {
    /// For everybody.
    pub fn new(label: impl Into<String>, text: impl Into<String>) -> Self {
        Self::of(Audience::ALL, label, text)
    }

    /// For everybody, with a mark.
    pub fn marked(mark: Tone, label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { mark: Some(mark), ..Self::new(label, text) }
    }

    /// The mark in a letter.
    pub fn letter(&self) -> Option<char> {
        self.mark.map(|tone| match tone {
            Tone::Own => '✓',
            Tone::Notice => '!',
            Tone::Bad => '✗',
            Tone::Plain | Tone::Strong | Tone::Faint => '?',
        })
    }

    /// For some.
    pub fn of(audience: Audience, label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { label: label.into(), text: text.into(), mark: None, audience }
    }
}

/// A number to be read at a glance.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// What it is of, where the value does not say so.
    pub what: String,
    /// The value with its unit. Strong ones are the answer, others stand beside it.
    pub value: String,
    /// How it looks.
    pub tone: Tone,
    /// Its interval in words.
    pub interval: Option<String>,
    /// The interval to be drawn, on its scale.
    pub drawing: Option<(Interval, Scale)>,
    /// What is said below.
    pub note: String,
    /// What it means, in a word.
    pub verdict: Option<Note>,
    /// In place of a value: how often each verdict was reached, and whether that one may be small.
    pub counts: Vec<(Tone, bool, usize)>,
}

impl Figure {
    /// A value.
    pub fn new(tone: Tone, value: impl Into<String>) -> Self {
        Self { value: value.into(), tone, ..Self::default() }
    }
}

/// What a block is made of.
#[derive(Clone, Debug)]
pub enum Body {
    /// Only notes.
    Notes,
    /// Numbers at a glance, line by line.
    Figures(Vec<Vec<Figure>>),
    /// Labels with their texts.
    Facts(Vec<Fact>),
    /// A table.
    Table(Table),
    /// Charts, side by side where there is room.
    Charts(Vec<Chart>),
}

/// Something said under a title, with remarks.
#[derive(Clone, Debug)]
pub struct Block {
    /// The title; may be empty.
    pub title: String,
    /// What it holds.
    pub body: Body,
    /// Remarks under it.
    pub notes: Vec<Note>,
    /// Whose.
    pub audience: Audience,
    /// On a page: folded away under this text together with its neighbours of the same fold.
    pub fold: Option<Fold>,
}

/// Blocks that are opened by whoever wants them.
#[derive(Clone, Debug, PartialEq)]
pub struct Fold {
    /// What is in it.
    pub summary: String,
    /// Whether it is open at first.
    pub open: bool,
}

impl Block {
    /// For everybody.
    pub fn new(title: impl Into<String>, body: Body) -> Self {
        Self { title: title.into(), body, notes: Vec::new(), audience: Audience::ALL, fold: None }
    }

    /// The same for some readers.
    pub fn of(self, audience: Audience) -> Self {
        Self { audience, ..self }
    }

    /// The same with remarks.
    pub fn with(self, notes: Vec<Note>) -> Self {
        Self { notes, ..self }
    }

    /// Whether there is anything to show.
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
            && match &self.body {
                Body::Notes => true,
                Body::Figures(lines) => lines.iter().all(Vec::is_empty),
                Body::Facts(facts) => facts.is_empty(),
                Body::Table(table) => table.rows.is_empty(),
                Body::Charts(charts) => charts.is_empty(),
            }
    }
}

/// Blocks that belong together.
#[derive(Clone, Debug)]
pub struct Section {
    /// The title; may be empty.
    pub title: String,
    /// Who needs the title; others see from the blocks what it is.
    pub title_for: Audience,
    /// What is in it.
    pub blocks: Vec<Block>,
}

impl Section {
    /// With a title for everybody.
    pub fn new(title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { title: title.into(), title_for: Audience::ALL, blocks }
    }

    /// With a title where there is room for one more.
    pub fn on_page(title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { title_for: Audience::PAGE, ..Self::new(title, blocks) }
    }

    /// Its title, and its blocks that `reader` is shown.
    pub fn seen_by(&self, reader: Audience) -> (&str, Vec<&Block>) {
        let title = if self.title_for.has(reader) { self.title.as_str() } else { "" };
        let shown = self.blocks.iter().filter(|block| block.audience.has(reader) && !block.is_empty());
        (title, shown.collect())
    }
}

/// A report, before it has a form.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// What made it: "iotoll run".
    pub kind: String,
    /// What was measured, in a line.
    pub title: String,
    /// What the numbers are, for a reader who has never heard of iotoll; may be empty.
    pub lead: String,
    /// When the measurement began.
    pub began: Option<String>,
    /// The command as one would type it.
    pub command: String,
    /// That the measurement did not end as planned, which is to be known of every number that follows.
    pub outcome: Option<Note>,
    /// The answer; where there is none the title stands in its place.
    pub headline: Vec<Sentence>,
    /// What is compared, each in a colour of its own: the arms.
    pub subjects: Vec<Fact>,
    /// The numbers.
    pub sections: Vec<Section>,
    /// What to be careful with.
    pub caveats: Vec<Warning>,
    /// Where it was measured and how.
    pub provenance: Vec<Fact>,
    /// Every number in full, for a spreadsheet: the one table that is not for people.
    pub data: Table,
}

impl Document {
    /// The provenance that `reader` is shown.
    pub fn provenance_for(&self, reader: Audience) -> impl Iterator<Item = &Fact> {
        self.provenance.iter().filter(move |fact| fact.audience.has(reader))
    }
}
