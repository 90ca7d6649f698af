//! The tables of changes: baseline, candidate, change, interval and verdict, one row for each metric or cell.

use super::{contents, words};
use crate::change::Change;
use crate::document::{Cell, Column, Draw, Scale, Span, Table, Tone};
use model::comparison::CompareFinding;
use model::comparison::finding::{CellFinding, MetricFinding};
use model::experiment::Metric;

/// A row before the scale of its table is known.
struct Line<'a> {
    metric: Metric,
    names: Vec<Cell>,
    found: &'a MetricFinding,
    change: Change,
}

/// Without a sweep: one row for each metric, or for each of `only` without details.
pub fn by_metric(finding: &CompareFinding, arm: &str, only: Option<&[Metric]>) -> Table {
    let cells = contents::cells(finding, arm);
    let measured = cells.into_iter().flat_map(contents::measured);
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
    let axes = contents::axes(finding);
    let lines = contents::cells(finding, arm).into_iter().filter_map(|cell: &CellFinding| {
        let found = contents::metric(cell, metric).filter(|found| contents::has_value(found))?;
        let names = axes.iter().map(|axis| Cell::from(cell.cell.get(*axis).cloned().unwrap_or_default())).collect();
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
    columns.extend([contents::baseline(finding), arm].map(|arm| Column::number(arm).spare(1)));
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
fn scale(margin: f64, changes: impl Iterator<Item = Change>) -> Option<Scale> {
    let around = if margin.is_finite() && margin > 0.0 { margin } else { 0.0 };
    let range = |change: Change| {
        let ends = [change.value, change.low, change.high].into_iter().flatten();
        ends.map(|end| (end, end)).reduce(|(low, high), (end, _)| (low.min(end), high.max(end)))
    };
    let span = Span::of_most(&changes.filter_map(range).collect::<Vec<_>>(), around)?;
    Some(Scale { span, margin: Some(margin) })
}
