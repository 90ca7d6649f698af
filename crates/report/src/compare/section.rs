//! What stands below the tables of changes: limits, the noise floor, where arms cross, cost by size, published numbers.

use super::{against_stored, contents, words};
use crate::change::Change;
use crate::document::{Block, Body, Cell, Column, Fact, Note, Section, Table, Tone};
use crate::number::{self, COUNT, MISSING, bare_percent};
use crate::phrase::tied;
use model::comparison::CompareFinding;
use model::comparison::finding::{CellFinding, CrossoverFinding, LimitFinding, LimitState, MetricFinding, TimeNeeded};
use model::experiment::{Metric, Published};
use model::stats::Estimate;
use std::collections::BTreeMap;

/// Every section that the finding has something for.
pub fn sections(finding: &CompareFinding) -> Vec<Section> {
    let all = [
        against_stored::block(finding),
        limits(finding),
        noise_floor(finding),
        crossovers(finding),
        lines(finding),
        published(finding),
    ];
    all.into_iter().flatten().map(|block| Section::new("", vec![block])).collect()
}

/// A table under its title, which stands at the head of its first column.
fn grid(title: &str, columns: Vec<Column>, rows: Vec<Vec<Cell>>, notes: Vec<String>) -> Option<Block> {
    let mut table = Table::new(columns);
    rows.into_iter().for_each(|row| table.row(row));
    let notes = notes.into_iter().map(|text| Note::new(Tone::Faint, text)).collect();
    (!table.rows.is_empty()).then(|| Block::new(title, Body::Table(table)).with(notes))
}

fn facts(title: &str, facts: Vec<Fact>) -> Option<Block> {
    (!facts.is_empty()).then(|| Block::new(title, Body::Facts(facts)))
}

/// What `--fail-on` asked for and what became of it. Of a sweep, cells in which a limit was kept are only counted.
fn limits(finding: &CompareFinding) -> Option<Block> {
    let in_sweep = finding.limits.iter().any(|limit| !limit.cell.is_empty());
    let several = contents::candidates(finding).len() > 1;
    let mut heads = vec![Column::rows("limit")];
    heads.extend(several.then(|| Column::text("arm")));
    heads.extend(in_sweep.then(|| Column::text("cell")));
    heads.push(Column::verdict("state"));
    let row = |limit: &LimitFinding, cell: &str| {
        let mut row = vec![Cell::from(limit.limit.as_str())];
        row.extend(several.then(|| Cell::from(limit.arm.as_str())));
        row.extend(in_sweep.then(|| Cell::from(cell)));
        let (word, tone) = words::limit(limit.state);
        row.push(Cell::new(tone, word));
        row
    };
    let kept = |limit: &&LimitFinding| in_sweep && limit.state == LimitState::Kept;
    let mut rows: Vec<Vec<Cell>> =
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
    grid("Limits", heads, rows, Vec::new())
}

/// What this machine can tell apart.
fn noise_floor(finding: &CompareFinding) -> Option<Block> {
    let floor = finding.noise_floor.as_ref()?;
    let known: Vec<_> =
        Metric::ALL.into_iter().filter_map(|metric| Some((metric, floor.metrics.get(metric.name())?))).collect();
    let (_, first) = known.first()?;
    let mut heads = vec![Column::rows("metric"), Column::number("tells apart")];
    let head = |needed: &TimeNeeded| Column::number(format!("±{} in", bare_percent(needed.half_width)));
    heads.extend(first.seconds_needed.iter().map(head));
    heads.push(Column::verdict("called different"));
    let rows = known.iter().map(|(metric, noise)| {
        let mut row = vec![Cell::from(words::of(*metric).head)];
        row.push(Cell::from(format!("±{}", number::percent(noise.half_width))));
        row.extend(noise.seconds_needed.iter().map(|needed| Cell::from(number::lasting(needed.seconds))));
        let (text, tone) = if noise.false_difference { ("yes", Tone::Bad) } else { ("no", Tone::Own) };
        row.push(Cell::new(tone, text));
        row
    });
    grid("Noise floor", heads, rows.collect(), Vec::new())
}

/// Where the candidate starts to win: the magic numbers.
fn crossovers(finding: &CompareFinding) -> Option<Block> {
    let several = contents::candidates(finding).len() > 1;
    let metric = |crossover: &CrossoverFinding| {
        Metric::parse(&crossover.metric).map_or(crossover.metric.clone(), |metric| words::of(metric).head.to_owned())
    };
    // Ways through the sweep along which nothing crosses, and the same is to be said of them.
    let alike = |one: &CrossoverFinding, other: &CrossoverFinding| {
        one.value.is_none() && other.value.is_none() && one.metric == other.metric && one.words == other.words
    };
    let mut found = Vec::new();
    for (place, crossover) in finding.crossovers.iter().enumerate() {
        let others = finding.crossovers.iter().filter(|other| alike(crossover, other)).count();
        if others > 1 {
            if finding.crossovers.iter().position(|other| alike(crossover, other)) == Some(place) {
                let text = format!("{}: along {others} lines through the sweep", crossover.words);
                found.push(Fact::new(metric(crossover), text));
            }
            continue;
        }
        let mut label = metric(crossover) + &at(finding, &crossover.at);
        if several {
            label += &format!(", {}", crossover.arm);
        }
        found.push(Fact::new(label, format!("{}{}", crossover.words, crossing(finding, crossover))));
    }
    facts("Magic numbers", found)
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
fn lines(finding: &CompareFinding) -> Option<Block> {
    let estimate = |estimate: &Estimate| {
        let scale = number::Scale::of(COUNT, estimate.value);
        let ends = estimate.low.zip(estimate.high).map(|(low, high)| format!(" {}", scale.interval(low, high)));
        let gap = if scale.unit.is_empty() { "" } else { " " };
        tied(&format!("{}{gap}{}{}", scale.cell(estimate.value), scale.unit, ends.unwrap_or_default()))
    };
    let found = finding.lines.iter().map(|line| {
        let text = format!(
            "{} cycles per I/O + {} cycles per byte; no size is further from it than {}",
            estimate(&line.per_io),
            estimate(&line.per_byte),
            tied(&number::percent(line.misfit)),
        );
        Fact::new(format!("{}{}", line.arm, at(finding, &line.at)), text)
    });
    facts("Cost by size", found.collect())
}

/// What others published, with ours beside it.
fn published(finding: &CompareFinding) -> Option<Block> {
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
    let mut heads = vec![Column::rows(if in_sweep { "cell" } else { "metric" })];
    if in_sweep && !one_metric {
        heads.push(Column::text("metric"));
    }
    heads.extend(["baseline", "candidate"].map(|arm| Column::number(arm).spare(0)));
    heads.extend(["change", "ours"].map(Column::number));
    heads.extend((sources.len() > 1).then(|| Column::number("source")));
    let row = |row: &Published| {
        let words = words::of(row.metric);
        let (baseline, candidate) = words.pair(row.baseline, row.candidate);
        let point = contents::point(finding, &row.cell);
        let mut fields = vec![Cell::from(if in_sweep { point } else { words.head.to_owned() })];
        if in_sweep && !one_metric {
            fields.push(words.head.into());
        }
        let change = Change { value: row.change, low: None, high: None };
        fields.extend([baseline, candidate, change.percent(), ours(finding, row)].map(Cell::from));
        let number = sources.iter().position(|source| *source == row.source).map_or(0, |index| index + 1);
        fields.extend((sources.len() > 1).then(|| Cell::from(format!("[{number}]"))));
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
    grid("Published", heads, rows.iter().map(row).collect(), notes)
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
