//! The tables of changes: baseline, candidate, change, interval and verdict, one row for each metric or cell.

use crate::compare::CompareFinding;
use crate::compare::finding::{CellFinding, Families, MetricFinding};
use crate::pages::words::{self, Change};
use model::elided_list::elided_list;
use model::experiment::Metric;
use model::explained::FamilyFinding;
use model::stats::Verdict;
use report::document::{Cell, Column, Draw, Note, Scale, Span, Table, Tone, tied};
use report::number;

/// A row before the scale of its table is known.
struct Line<'a> {
    metric: Metric,
    names: Vec<Cell>,
    found: &'a MetricFinding,
    change: Change,
}

/// Without a sweep: one row for each metric, or for each of `only` without details.
pub fn by_metric(finding: &CompareFinding, arm: &str, only: Option<&[Metric]>) -> Table {
    let cells = super::cells(finding, arm);
    let measured = cells.into_iter().flat_map(super::measured);
    let measured = measured.filter(|(metric, _)| only.is_none_or(|only| only.contains(metric)));
    let lines = measured.map(|(metric, found)| {
        let words = words::of(metric);
        let names = vec![Cell::from(words.head).in_full(words.noun)];
        Line { metric, names, found, change: Change::from(found) }
    });
    let rows = if only.is_some() { Rows::Metrics } else { Rows::MetricsInDetail };
    table(finding, arm, &["metric"], lines.collect(), rows)
}

/// With a sweep: one row for each cell, for one metric.
pub fn by_cell(finding: &CompareFinding, arm: &str, metric: Metric) -> Table {
    let axes = super::axes(finding);
    let lines = super::cells(finding, arm).into_iter().filter_map(|cell: &CellFinding| {
        let found = super::metric(cell, metric).filter(|found| super::has_value(found))?;
        let names = super::names(&axes, &cell.cell);
        Some(Line { metric, names, found, change: Change::from(found) })
    });
    table(finding, arm, &axes, lines.collect(), Rows::Cells)
}

/// What the rows of a table are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    Cells,
    Metrics,
    /// Also the typical round of each, if it disagrees.
    MetricsInDetail,
}

fn table(finding: &CompareFinding, arm: &str, names: &[&str], lines: Vec<Line>, rows: Rows) -> Table {
    let scale = scale(finding.rules.margin, lines.iter().map(|line| line.change));
    let mut columns: Vec<Column> =
        names.iter().map(|name| Column { gives_way: rows != Rows::Cells, ..Column::text(*name) }).collect();
    columns.extend([super::baseline(finding), arm].map(|arm| Column::number(arm).spare(1)));
    columns.extend([Column::number("change"), Column::text("interval")]);
    columns.push(Column::verdict("verdict"));
    columns.extend(scale.map(|scale| Column::drawing(Draw::Interval(scale))));
    let mut table = Table { keys: names.len(), ..Table::new(columns) };
    let change = |change: Change, tone: Tone, verdict: &str| {
        let drawing = scale.map(|_| Cell::drawn(tone, change.drawn()));
        let cells = [Cell::new(tone, change.percent()), Cell::from(change.interval()), Cell::new(tone, verdict)];
        cells.into_iter().chain(drawing)
    };
    for line in lines {
        let (baseline, candidate) = words::of(line.metric).pair(line.found.baseline, line.found.candidate);
        let tone = words::tone(line.found.verdict);
        let mut cells = line.names;
        cells.extend([Cell::from(baseline), Cell::from(candidate)]);
        cells.extend(change(line.change, tone, words::verdict(line.found.verdict)));
        table.row(cells);
        let typical = line.found.typical.filter(|_| rows == Rows::MetricsInDetail && line.found.shape_changed);
        if let Some(typical) = typical {
            let mut cells = vec![Cell::from("typical").in_full("in a typical round"), "".into(), "".into()];
            cells.extend(change(Change::from(typical), Tone::Notice, "shape changed"));
            table.sub_row(cells);
        }
    }
    table
}

/// The common scale of most intervals: it includes 0 and the margin.
pub fn scale(margin: f64, changes: impl Iterator<Item = Change>) -> Option<Scale> {
    let around = if margin.is_finite() && margin > 0.0 { margin } else { 0.0 };
    let ranges = changes.filter_map(|change| change.0).filter_map(|it| Span::range([Some(it.value), it.low, it.high]));
    let span = Span::of_most(&ranges.collect::<Vec<_>>(), around)?;
    Some(Scale { span, margin: Some(margin) })
}

/// The remarks on an arm's tables of `metrics`.
pub fn notes(finding: &CompareFinding, arm: &str, metrics: &[Metric]) -> Vec<Note> {
    let cells = super::cells(finding, arm);
    let shown = |metric: &Metric| !super::is_sweep(finding) || metrics.contains(metric);
    let shown: Vec<Metric> = Metric::ALL.into_iter().filter(shown).collect();
    let mut notes = Vec::new();
    for metric in &shown {
        notes.extend(shape(finding, &cells, *metric));
    }
    notes.extend(time(finding, &cells, &shown));
    notes.extend(families(finding).filter(|_| !cells.is_empty()));
    let missing = super::reasons(&cells).into_iter();
    notes.extend(missing.map(|text| Note::remark(format!("not compared: {text}"))));
    notes
}

/// The cells in which a metric satisfies a condition.
fn found<'a>(
    cells: &[&'a CellFinding],
    metric: Metric,
    holds: impl Fn(&MetricFinding) -> bool,
) -> Vec<(&'a CellFinding, &'a MetricFinding)> {
    let of_metric = cells.iter().filter_map(|cell| Some((*cell, super::metric(cell, metric)?)));
    of_metric.filter(|(_, metric)| holds(metric)).collect()
}

/// The ratio of sums and the typical round disagree.
fn shape(finding: &CompareFinding, cells: &[&CellFinding], metric: Metric) -> Option<Note> {
    let changed = found(cells, metric, |metric| metric.shape_changed);
    let places = places(finding, &changed, |metric| {
        let typical = metric.typical.map(|typical| tied(&Change::from(typical).whole()));
        let typical = typical.map(|typical| format!(", {typical} in a typical round"));
        format!("{} overall{}", tied(&Change::from(metric).whole()), typical.unwrap_or_default())
    })?;
    let head = words::of(metric).head;
    let text =
        format!("{head}: the shape of the distribution changed, either in rare slow parts or in the rest: {places}");
    Some(Note::new(Tone::Notice, text))
}

/// Which intervals hold together, and with what confidence each.
fn families(finding: &CompareFinding) -> Option<Note> {
    let Families { targets, others } = finding.families?;
    let of = |family: FamilyFinding, one: &str, several: &str| match family.comparisons {
        0 => None,
        1 => Some(format!("the {one}")),
        count => Some(format!("the {count} {several} ({} each)", tied(&number::confidence(family.confidence)))),
    };
    let known = [of(targets, "target", "targets"), of(others, "other metric", "other metrics")];
    let known: Vec<String> = known.into_iter().flatten().collect();
    let text = format!("simultaneous confidence of all intervals of a group, 95 %: {}", known.join("; "));
    (!known.is_empty()).then(|| Note::remark(text))
}

/// The time to decide, for metrics that the answer does not cover.
fn time(finding: &CompareFinding, cells: &[&CellFinding], metrics: &[Metric]) -> Option<Note> {
    // The answer of a comparison of the baseline with itself covers no single change.
    let answered = !super::is_sweep(finding) && finding.noise_floor.is_none();
    let said = |metric: &Metric| answered && finding.targets.contains(metric);
    let open = |metric: &MetricFinding| metric.verdict == Verdict::Inconclusive && metric.seconds_to_decide.is_some();
    let mut parts = Vec::new();
    for metric in metrics.iter().filter(|metric| !said(metric)) {
        let times = found(cells, *metric, open);
        let longest = times
            .iter()
            .filter_map(|(_, metric)| metric.seconds_to_decide)
            .filter(|seconds| seconds.is_finite())
            .reduce(f64::max);
        parts.extend(longest.map(|longest| format!("{} {}", words::of(*metric).head, number::lasting(longest))));
    }
    let cell = if super::is_sweep(finding) { " in every cell" } else { "" };
    let text = || format!("estimated measuring time to decide inconclusive results{cell}: {}", parts.join(", "));
    (!parts.is_empty()).then(|| Note::remark(text()))
}

/// The first cells of a list with a text for each, and the number of further ones.
fn places(
    finding: &CompareFinding,
    cells: &[(&CellFinding, &MetricFinding)],
    say: impl Fn(&MetricFinding) -> String,
) -> Option<String> {
    let places = cells.iter().map(|(cell, metric)| {
        let point = super::point(finding, &cell.cell);
        let point = if point.is_empty() { point } else { format!("{} ", tied(&point)) };
        format!("{point}{}", say(metric))
    });
    let places: Vec<String> = places.collect();
    (!places.is_empty()).then(|| elided_list(&places, "; "))
}
