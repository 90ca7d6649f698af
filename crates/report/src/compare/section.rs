//! What stands below the tables of changes, in bare text: each format lays the same sections out in its own way.

use super::change::Change;
use super::{contents, stored, words};
use crate::number::{self, COUNT, MISSING};
use crate::page::{Tone, tied};
use model::comparison::CompareFinding;
use model::comparison::finding::{CellFinding, CrossoverFinding, LimitFinding, LimitState, MetricFinding, TimeNeeded};
use model::experiment::{Metric, Published};
use model::stats::Estimate;
use std::collections::BTreeMap;

/// A table of bare text.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The columns.
    pub heads: Vec<Head>,
    /// The rows, a field for each column.
    pub rows: Vec<Vec<Field>>,
}

/// The head of a column.
#[derive(Clone, Debug)]
pub struct Head {
    /// Its text.
    pub text: String,
    /// Whether its fields are numbers.
    pub is_number: bool,
    /// Whether it can be left out where there is no room.
    pub is_spare: bool,
}

/// One field.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its text.
    pub text: String,
    /// How it looks.
    pub tone: Tone,
}

impl<T: Into<String>> From<T> for Field {
    fn from(text: T) -> Self {
        Self { text: text.into(), tone: Tone::Plain }
    }
}

/// A label and what is said of it.
#[derive(Clone, Debug)]
pub struct Fact {
    /// What it is about.
    pub label: String,
    /// The text.
    pub text: String,
}

/// What a section is made of.
#[derive(Clone, Debug)]
pub enum Body {
    /// A table.
    Grid(Grid),
    /// Labels with their texts.
    Facts(Vec<Fact>),
}

/// Something said under a title.
#[derive(Clone, Debug)]
pub struct Section {
    /// The title.
    pub title: String,
    /// What is in it.
    pub body: Body,
    /// Remarks under it.
    pub notes: Vec<String>,
}

impl Section {
    fn grid(title: &str, heads: Vec<Head>, rows: Vec<Vec<Field>>, notes: Vec<String>) -> Option<Self> {
        (!rows.is_empty()).then(|| Self { title: title.to_owned(), body: Body::Grid(Grid { heads, rows }), notes })
    }

    fn facts(title: &str, facts: Vec<Fact>) -> Option<Self> {
        (!facts.is_empty()).then(|| Self { title: title.to_owned(), body: Body::Facts(facts), notes: Vec::new() })
    }
}

/// Every section that the finding has something for.
pub fn sections(finding: &CompareFinding) -> Vec<Section> {
    let all = [
        stored::section(finding),
        limits(finding),
        noise_floor(finding),
        crossovers(finding),
        lines(finding),
        published(finding),
    ];
    all.into_iter().flatten().collect()
}

fn name(text: impl Into<String>) -> Head {
    Head { text: text.into(), is_number: false, is_spare: false }
}

fn figure(text: impl Into<String>) -> Head {
    Head { text: text.into(), is_number: true, is_spare: false }
}

/// What `--fail-on` asked for and what became of it. Of a sweep, cells in which a limit was kept are only counted.
fn limits(finding: &CompareFinding) -> Option<Section> {
    let in_sweep = finding.limits.iter().any(|limit| !limit.cell.is_empty());
    let several = contents::candidates(finding).len() > 1;
    let mut heads = vec![name("limit")];
    heads.extend(several.then(|| name("arm")));
    heads.extend(in_sweep.then(|| name("cell")));
    heads.push(name("state"));
    let row = |limit: &LimitFinding, cell: &str| {
        let mut row = vec![Field::from(limit.limit.as_str())];
        row.extend(several.then(|| Field::from(limit.arm.as_str())));
        row.extend(in_sweep.then(|| Field::from(cell)));
        let (word, tone) = words::limit(limit.state);
        row.push(Field { text: word.to_owned(), tone });
        row
    };
    let kept = |limit: &&LimitFinding| in_sweep && limit.state == LimitState::Kept;
    let mut rows: Vec<Vec<Field>> =
        finding.limits.iter().filter(|limit| !kept(limit)).map(|limit| row(limit, &limit.cell)).collect();
    let mut counted: Vec<(&LimitFinding, usize)> = Vec::new();
    for limit in finding.limits.iter().filter(kept) {
        match counted.iter_mut().find(|(other, _)| other.limit == limit.limit && other.arm == limit.arm) {
            Some((_, count)) => *count += 1,
            None => counted.push((limit, 1)),
        }
    }
    let cells = |count| if count == 1 { "1 cell".to_owned() } else { format!("{count} cells") };
    rows.extend(counted.iter().map(|(limit, count)| row(limit, &cells(*count))));
    Section::grid("Limits", heads, rows, Vec::new())
}

/// What this machine can tell apart.
fn noise_floor(finding: &CompareFinding) -> Option<Section> {
    let floor = finding.noise_floor.as_ref()?;
    let known: Vec<_> =
        Metric::ALL.into_iter().filter_map(|metric| Some((metric, floor.metrics.get(metric.name())?))).collect();
    let (_, first) = known.first()?;
    let mut heads = vec![name("metric"), figure("tells apart")];
    let head = |needed: &TimeNeeded| figure(format!("±{} in", super::change::bare(needed.half_width)));
    heads.extend(first.seconds_needed.iter().map(head));
    heads.push(name("called different"));
    let rows = known.iter().map(|(metric, noise)| {
        let mut row = vec![Field::from(words::of(*metric).head)];
        row.push(Field::from(format!("±{}", number::percent(noise.half_width))));
        row.extend(noise.seconds_needed.iter().map(|needed| Field::from(number::lasting(needed.seconds))));
        let (text, tone) = if noise.false_difference { ("yes", Tone::Bad) } else { ("no", Tone::Own) };
        row.push(Field { text: text.to_owned(), tone });
        row
    });
    Section::grid("Noise floor", heads, rows.collect(), Vec::new())
}

/// Where the candidate starts to win: the magic numbers.
fn crossovers(finding: &CompareFinding) -> Option<Section> {
    let several = contents::candidates(finding).len() > 1;
    let metric = |crossover: &CrossoverFinding| {
        Metric::parse(&crossover.metric).map_or(crossover.metric.clone(), |metric| words::of(metric).head.to_owned())
    };
    // Ways through the sweep along which nothing crosses, and the same is to be said of them.
    let alike = |one: &CrossoverFinding, other: &CrossoverFinding| {
        one.value.is_none() && other.value.is_none() && one.metric == other.metric && one.words == other.words
    };
    let mut facts = Vec::new();
    for (place, crossover) in finding.crossovers.iter().enumerate() {
        let others = finding.crossovers.iter().filter(|other| alike(crossover, other)).count();
        if others > 1 {
            if finding.crossovers.iter().position(|other| alike(crossover, other)) == Some(place) {
                let text = format!("{}: along {others} lines through the sweep", crossover.words);
                facts.push(Fact { label: metric(crossover), text });
            }
            continue;
        }
        let mut label = metric(crossover) + &at(finding, &crossover.at);
        if several {
            label += &format!(", {}", crossover.arm);
        }
        facts.push(Fact { label, text: format!("{}{}", crossover.words, crossing(finding, crossover)) });
    }
    Section::facts("Magic numbers", facts)
}

fn at(finding: &CompareFinding, at: &BTreeMap<String, String>) -> String {
    let point = contents::point(finding, at);
    if point.is_empty() { point } else { format!(" at {point}") }
}

/// The value of the axis with its interval, which may end outside of what was swept.
fn crossing(finding: &CompareFinding, crossover: &CrossoverFinding) -> String {
    let Some(value) = crossover.value else { return String::new() };
    let text = |value: f64| contents::axis_value(finding, &crossover.axis, value);
    let low = crossover.low.map_or_else(|| "below the sweep".to_owned(), text);
    let high = crossover.high.map_or_else(|| "above the sweep".to_owned(), text);
    format!("; they cross at {} = {}", crossover.axis, tied(&format!("{} [{low}, {high}]", text(value))))
}

/// cost(b) = c0 + c1 × b.
fn lines(finding: &CompareFinding) -> Option<Section> {
    let estimate = |estimate: &Estimate| {
        let scale = number::Scale::of(COUNT, estimate.value);
        let ends = estimate.low.zip(estimate.high).map(|(low, high)| format!(" {}", scale.interval(low, high)));
        let gap = if scale.unit.is_empty() { "" } else { " " };
        tied(&format!("{}{gap}{}{}", scale.cell(estimate.value), scale.unit, ends.unwrap_or_default()))
    };
    let facts = finding.lines.iter().map(|line| Fact {
        label: format!("{}{}", line.arm, at(finding, &line.at)),
        text: format!(
            "{} cycles per I/O + {} cycles per byte; no size is further from it than {}",
            estimate(&line.per_io),
            estimate(&line.per_byte),
            tied(&number::percent(line.misfit)),
        ),
    });
    Section::facts("Cost by size", facts.collect())
}

/// What others published, with ours beside it.
fn published(finding: &CompareFinding) -> Option<Section> {
    let rows = &finding.published;
    let in_sweep = rows.iter().any(|row| !row.cell.is_empty());
    let one_metric =
        rows.windows(2).all(|pair| pair.first().map(|row| row.metric) == pair.last().map(|row| row.metric));
    let mut sources: Vec<&str> = Vec::new();
    rows.iter().for_each(|row| {
        if !sources.contains(&row.source.as_str()) {
            sources.push(&row.source);
        }
    });
    let mut heads = vec![name(if in_sweep { "cell" } else { "metric" })];
    if in_sweep && !one_metric {
        heads.push(name("metric"));
    }
    heads.extend(["baseline", "candidate"].map(|arm| Head { is_spare: true, ..figure(arm) }));
    heads.extend(["change", "ours"].map(figure));
    heads.extend((sources.len() > 1).then(|| figure("source")));
    let row = |row: &Published| {
        let words = words::of(row.metric);
        let (baseline, candidate) = words.pair(row.baseline, row.candidate);
        let point = contents::point(finding, &row.cell);
        let mut fields = vec![Field::from(if in_sweep { point } else { words.head.to_owned() })];
        if in_sweep && !one_metric {
            fields.push(words.head.into());
        }
        let change = Change { value: row.change, low: None, high: None };
        fields.extend([baseline, candidate, change.percent(), ours(finding, row)].map(Field::from));
        let number = sources.iter().position(|source| *source == row.source).map_or(0, |index| index + 1);
        fields.extend((sources.len() > 1).then(|| Field::from(format!("[{number}]"))));
        fields
    };
    let mut notes = Vec::new();
    if in_sweep && one_metric {
        notes.extend(rows.first().map(|row| format!("all of {}", words::of(row.metric).noun)));
    }
    let numbered = |(index, source): (usize, &&str)| {
        if sources.len() > 1 { format!("[{}] {source}", index + 1) } else { format!("source: {source}") }
    };
    notes.extend(sources.iter().enumerate().map(numbered));
    Section::grid("Published", heads, rows.iter().map(row).collect(), notes)
}

/// What we measured where that was published; nothing when more than one comparison fits.
fn ours(finding: &CompareFinding, published: &Published) -> String {
    let fits = |cell: &&CellFinding| published.cell.iter().all(|(axis, value)| cell.cell.get(axis) == Some(value));
    let mut fitting = finding.cells.iter().filter(fits);
    let found: Option<&MetricFinding> = match (fitting.next(), fitting.next()) {
        (Some(cell), None) => contents::metric(cell, published.metric),
        _ => None,
    };
    found.map_or_else(|| MISSING.to_owned(), |found| Change::from(found).whole())
}
