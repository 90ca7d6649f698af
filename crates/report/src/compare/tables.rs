//! The tables of changes: baseline, candidate, change, interval and verdict, a line for each metric or each cell.

use super::{contents, words};
use crate::change::Change;
use crate::document::{Cell, Column, Draw, Scale, Span, Table, Tone};
use model::comparison::CompareFinding;
use model::comparison::finding::{CellFinding, MetricFinding};
use model::experiment::Metric;

/// Changes beyond this (a thousand times as much) are not drawn: one of them would hide all others.
pub const LARGEST: f64 = 1e3;

/// A line before its table knows its scale.
struct Line<'a> {
    metric: Metric,
    names: Vec<Cell>,
    found: &'a MetricFinding,
    change: Change,
}

/// Without a sweep: a line for each metric.
pub fn by_metric(finding: &CompareFinding, arm: &str) -> Table {
    let cells = contents::cells(finding, arm);
    let measured = cells.into_iter().flat_map(contents::measured);
    let lines = measured.map(|(metric, found)| {
        let words = words::of(metric);
        let names = vec![Cell::from(words.head).in_full(words.noun)];
        Line { metric, names, found, change: Change::from(found) }
    });
    table(finding, arm, &["metric"], lines.collect(), true)
}

/// Of a sweep: a line for each cell, of one metric.
pub fn by_cell(finding: &CompareFinding, arm: &str, metric: Metric) -> Table {
    let axes = contents::axes(finding);
    let lines = contents::cells(finding, arm).into_iter().filter_map(|cell: &CellFinding| {
        let found = contents::metric(cell, metric).filter(|found| contents::has_value(found))?;
        let names = axes.iter().map(|axis| Cell::from(cell.cell.get(*axis).cloned().unwrap_or_default())).collect();
        Some(Line { metric, names, found, change: Change::from(found) })
    });
    table(finding, arm, &axes, lines.collect(), false)
}

fn table(finding: &CompareFinding, arm: &str, names: &[&str], lines: Vec<Line>, by_metric: bool) -> Table {
    let scale = scale(finding.rules.margin, lines.iter().map(|line| line.change));
    let mut columns: Vec<Column> =
        names.iter().map(|name| Column { gives_way: by_metric, ..Column::text(*name) }).collect();
    columns.extend([contents::baseline(finding), arm].map(|arm| Column::number(arm).spare(1)));
    columns.extend([Column::number("change"), Column::text("95 %")]);
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
        // The typical round, where it does not agree.
        let typical = line.found.typical.filter(|_| by_metric && line.found.shape_changed);
        if let Some(typical) = typical {
            let mut cells = vec![Cell::from("typical").in_full("in a typical round"), "".into(), "".into()];
            cells.extend(change(Change::from(typical), Tone::Notice, "shape changed"));
            table.sub_row(cells);
        }
    }
    table
}

/// The scale on which all intervals are drawn: it holds 0, the margin and every interval.
fn scale(margin: f64, changes: impl Iterator<Item = Change>) -> Option<Scale> {
    let ends = changes.flat_map(|change| [change.value, change.low, change.high]).flatten();
    let ends: Vec<f64> = ends.filter(|end| end.abs() < LARGEST).collect();
    let around = if margin.is_finite() && margin > 0.0 { margin } else { 0.0 };
    let low = ends.iter().copied().fold(-around, f64::min);
    let high = ends.iter().copied().fold(around, f64::max);
    (!ends.is_empty() && high > low).then(|| Scale { span: Span::new(low, high), margin: Some(margin) })
}
