//! The document: the contents of a report, independent of its layout.
//!
//! Each kind of finding has a function that creates a document; each renderer lays it out and knows no kind. A document
//! contains only data: texts with tones, tables of cells, charts of points.

pub mod chart;
mod command;
mod table;
mod timeline;

pub use chart::{Axis, Chart, LARGEST, Mark, Point, Series, Span};
pub use command::{Command, language};
pub use table::{Align, Cell, Column, Draw, Interval, Need, Raw, Row, Scale, Table};
pub use timeline::{Hue, NOTHING, Reach, Timeline, TimelineScale, Trace, Track};

use crate::phrase;
use model::elided_list::elided_list;
use model::kind::Head;
use model::record::Outcome;
use model::warning::Warning;

/// The meaning of a text, which a renderer turns into a colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Normal text.
    #[default]
    Plain,
    /// Most important.
    Strong,
    /// Least important.
    Faint,
    /// The workload's own, better, or good.
    Own,
    /// What others did, or needs attention.
    Notice,
    /// Worse, or failed.
    Bad,
}

/// The readers that a part of the document is for. Each renderer serves one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audience(u8);

impl Audience {
    /// Reads all on a terminal, on the measured machine.
    pub const SCREEN: Self = Self(1);
    /// Reads a mail or an issue, and does not know the machine and the command.
    pub const POST: Self = Self(2);
    /// Reads a page with room for charts and full words.
    pub const PAGE: Self = Self(4);
    /// Reads one screen of a terminal: what is not for them stands where [`Self::SCREEN`] reads.
    pub const GLANCE: Self = Self(8);
    pub const ALL: Self = Self(15);

    /// Both groups of readers.
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These readers without the others.
    const fn but(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether the two have a reader in common.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// A text with its tone.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    pub tone: Tone,
    pub text: String,
}

impl Note {
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone, text: text.into() }
    }

    /// In small print.
    pub fn remark(text: impl Into<String>) -> Self {
        Self::new(Tone::Faint, text)
    }
}

/// One line of the answer: a text and its verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Sentence {
    pub text: String,
    /// The verdict in words, which follows the text after a colon.
    pub verdict: Option<Note>,
    /// Further details, after a semicolon.
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

    /// The whole sentence on one line.
    pub fn whole(&self) -> String {
        let verdict = self.verdict.as_ref().map(|verdict| format!(": {}", verdict.text)).unwrap_or_default();
        let detail = self.detail.as_ref().map(|detail| format!("; {detail}")).unwrap_or_default();
        format!("{}{verdict}{detail}", self.text)
    }
}

/// A number and its unit, which must not be split at a line end.
pub fn tied(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// `text` with every number tied to its unit.
pub fn units_tied(text: &str) -> String {
    const UNITS: [&str; 10] = ["%", "s", "ms", "µs", "ns", "GHz", "MHz", "KiB", "GiB", "CPUs"];
    let mut words = text.split(' ').peekable();
    let mut whole = String::with_capacity(text.len());
    while let Some(word) = words.next() {
        whole.push_str(word);
        let Some(next) = words.peek() else { break };
        let unit = next.trim_end_matches([',', '.', ';', ':', ')']);
        let number = word.ends_with(|letter: char| letter.is_ascii_digit());
        whole.push(if number && UNITS.contains(&unit) { '\u{a0}' } else { ' ' });
    }
    whole
}

/// A label with a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    pub label: String,
    pub text: String,
    /// The result of a check, shown as a mark before the label: good, note, problem, unknown.
    pub mark: Option<Tone>,
    /// The readers it is for.
    pub audience: Audience,
}

impl Fact {
    /// For all readers.
    pub fn new(label: impl Into<String>, text: impl Into<String>) -> Self {
        Self::of(Audience::ALL, label, text)
    }

    /// For all readers, with a mark.
    pub fn marked(mark: Tone, label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { mark: Some(mark), ..Self::new(label, text) }
    }

    /// The mark as a character.
    pub fn letter(&self) -> Option<char> {
        self.mark.map(|tone| match tone {
            Tone::Own => '✓',
            Tone::Notice => '!',
            Tone::Bad => '✗',
            Tone::Plain | Tone::Strong | Tone::Faint => '?',
        })
    }

    /// For some readers.
    pub fn of(audience: Audience, label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { label: label.into(), text: text.into(), mark: None, audience }
    }
}

/// A number to read at a glance.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// What it measures, if the value does not say so.
    pub what: String,
    /// The value with its unit. The answer has tone `Strong`.
    pub value: String,
    pub tone: Tone,
    /// Its interval in words.
    pub interval: Option<String>,
}

impl Figure {
    pub fn new(tone: Tone, value: impl Into<String>) -> Self {
        Self { value: value.into(), tone, ..Self::default() }
    }
}

/// Flame graphs count in whole numbers, so the cost is that of this many I/Os.
pub const PER: f64 = 1000.0;

/// A cost as flame graphs count. A number of a damaged record may be negative, or so large that the sum of all stacks does not fit.
pub(crate) fn whole(per_io: f64) -> u64 {
    (per_io * PER).round().clamp(0.0, 1e15) as u64
}

/// Chains of calls; width is what they cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlameGraph {
    pub title: String,
    pub subtitle: Option<String>,
    /// What the cost counts: cycles, instructions. It is per I/O.
    pub what: String,
    pub calls: Vec<Calls>,
}

/// A chain of calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    /// The outermost first, separated by semicolons.
    pub calls: String,
    /// Without what further calls from the innermost cost.
    pub cost: f64,
    /// What it cost in the baseline, for the colour.
    pub before: Option<f64>,
}

/// The contents of a block.
#[derive(Clone, Debug)]
pub enum Body {
    /// Only notes.
    Notes,
    /// Numbers at a glance, line by line.
    Figures(Vec<Vec<Figure>>),
    /// Labels with their texts.
    Facts(Vec<Fact>),
    Table(Table),
    /// Charts, side by side where there is room.
    Charts(Vec<Chart>),
    /// Series on one time axis.
    Timeline(Timeline),
    /// Only on a page.
    FlameGraph(FlameGraph),
}

/// A body with a title and remarks.
#[derive(Clone, Debug)]
pub struct Block {
    /// The title; may be empty.
    pub title: String,
    pub body: Body,
    /// Remarks below it.
    pub notes: Vec<Note>,
    /// The readers it is for.
    pub audience: Audience,
    /// On a page: the fold that contains this block and its neighbours with the same fold.
    pub fold: Option<Fold>,
}

/// Blocks that the reader can expand.
#[derive(Clone, Debug, PartialEq)]
pub struct Fold {
    pub summary: String,
    /// Whether it is expanded at first.
    pub open: bool,
}

impl Block {
    /// For all readers.
    pub fn new(title: impl Into<String>, body: Body) -> Self {
        Self { title: title.into(), body, notes: Vec::new(), audience: Audience::ALL, fold: None }
    }

    /// Limits it to some readers.
    pub fn of(self, audience: Audience) -> Self {
        Self { audience, ..self }
    }

    /// Leaves it out of the one screen that is read first.
    pub fn in_full(self) -> Self {
        Self { audience: self.audience.but(Audience::GLANCE), ..self }
    }

    pub fn with(self, notes: Vec<Note>) -> Self {
        Self { notes, ..self }
    }

    /// A row without any figure becomes a part of one remark, which names all of them.
    fn without_blank_rows(mut self) -> Self {
        let Body::Table(table) = &mut self.body else { return self };
        let names = table.take_blank_rows();
        if !names.is_empty() {
            self.notes.push(Note::new(Tone::Faint, format!("No figures: {}", elided_list(&names, ", "))));
            if table.rows.is_empty() {
                self.body = Body::Notes;
            }
        }
        self
    }

    /// Whether it has nothing to show.
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
            && match &self.body {
                Body::Notes => true,
                Body::Figures(lines) => lines.iter().all(Vec::is_empty),
                Body::Facts(facts) => facts.is_empty(),
                Body::Table(table) => table.rows.is_empty(),
                Body::Charts(charts) => charts.is_empty(),
                Body::Timeline(timeline) => timeline.is_empty(),
                Body::FlameGraph(graph) => graph.calls.is_empty(),
            }
    }
}

/// Blocks that belong together.
#[derive(Clone, Debug)]
pub struct Section {
    /// The title; may be empty.
    pub title: String,
    /// The readers of the title; others recognize the section by its blocks.
    pub title_for: Audience,
    pub blocks: Vec<Block>,
}

impl Section {
    /// With a title for all readers.
    pub fn new(title: impl Into<String>, blocks: Vec<Block>) -> Self {
        let blocks = blocks.into_iter().map(Block::without_blank_rows).collect();
        Self { title: title.into(), title_for: Audience::ALL, blocks }
    }

    /// With a title only on a page.
    pub fn on_page(title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { title_for: Audience::PAGE, ..Self::new(title, blocks) }
    }

    /// Leaves it out of the one screen that is read first.
    pub fn in_full(self) -> Self {
        Self { blocks: self.blocks.into_iter().map(Block::in_full).collect(), ..self }
    }

    /// Its title and blocks for `reader`.
    pub fn seen_by(&self, reader: Audience) -> (&str, Vec<&Block>) {
        let title = if self.title_for.has(reader) { self.title.as_str() } else { "" };
        let shown = self.blocks.iter().filter(|block| block.audience.has(reader) && !block.is_empty());
        (title, shown.collect())
    }
}

/// The contents of a report.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The command that created it: "iotoll run".
    pub kind: String,
    /// What was measured, in one line.
    pub title: String,
    /// What the numbers mean, for readers who do not know iotoll; may be empty.
    pub lead: String,
    /// When the measurement began.
    pub began: Option<String>,
    /// The command, and the files that it refers to.
    pub command: Command,
    /// What was done: the jobs, the commands of the arms.
    pub workload: Vec<Fact>,
    /// A note that the measurement did not end as planned, which applies to all numbers.
    pub outcome: Option<Note>,
    /// The answer. If empty, the title is shown instead.
    pub headline: Vec<Sentence>,
    /// The arms of a comparison, one colour each.
    pub subjects: Vec<Fact>,
    pub sections: Vec<Section>,
    /// The caveats, in any order: each renderer shows the gravest first, before the numbers.
    pub caveats: Vec<Warning>,
    /// The machine and the method.
    pub provenance: Vec<Fact>,
}

impl Document {
    /// A document with what the head of its finding tells.
    pub fn of(head: &Head) -> Self {
        Self {
            title: head.title.clone(),
            began: phrase::time(head.started_unix_seconds),
            command: Command::new(&head.command_line, &head.origin),
            outcome: outcome(&head.outcome),
            caveats: head.warnings.clone(),
            ..Self::default()
        }
    }

    /// What ran: the one job with its options, otherwise the title.
    pub fn what_ran(&self) -> &str {
        match self.workload.as_slice() {
            [one] => &one.text,
            _ => &self.title,
        }
    }

    /// The caveats that the outcome does not state already, the gravest first.
    pub fn gravest_first(&self) -> Vec<&Warning> {
        let outcome = self.outcome.as_ref().map(|note| note.text.trim_end_matches('.').to_lowercase());
        let is_said = |caveat: &Warning| {
            outcome
                .as_ref()
                .is_some_and(|outcome| outcome.ends_with(&caveat.message.trim_end_matches('.').to_lowercase()))
        };
        let mut caveats: Vec<&Warning> = self.caveats.iter().filter(|caveat| !is_said(caveat)).collect();
        caveats.sort_by_key(|caveat| caveat.code);
        caveats
    }

    /// The workload for `reader`.
    pub fn workload_for(&self, reader: Audience) -> impl Iterator<Item = &Fact> {
        self.workload.iter().filter(move |fact| fact.audience.has(reader))
    }

    /// The provenance for `reader`.
    pub fn provenance_for(&self, reader: Audience) -> impl Iterator<Item = &Fact> {
        self.provenance.iter().filter(move |fact| fact.audience.has(reader))
    }
}

/// A note if the measurement did not end as planned.
fn outcome(outcome: &Outcome) -> Option<Note> {
    match outcome {
        Outcome::Completed => None,
        Outcome::Interrupted => {
            Some(Note::new(Tone::Notice, "Interrupted: the figures cover only the time before the interruption."))
        }
        Outcome::Failed(reason) => Some(Note::new(Tone::Bad, format!("Failed: {reason}"))),
    }
}
