//! A table of parts of the cost in both arms: accounts or functions.

use super::contents;
use crate::document::{Cell, Column, Draw, Interval, Raw, Scale as DrawnScale, Span, Table, Tone};
use crate::explained::{interval, scale, signed};
use crate::number::{self, CYCLES};
use model::comparison::CompareFinding;
use model::stats::Estimate;
use std::collections::BTreeMap;

/// A part of the cost of both arms in a cell.
pub(super) struct PartRow {
    pub(super) cell: BTreeMap<String, String>,
    pub(super) name: String,
    /// Of a function.
    pub(super) module: Option<String>,
    pub(super) costs: [Estimate; 2],
    pub(super) change: Estimate,
    pub(super) detected: bool,
}

/// Parts of the cost with their changes; whether each is detected, if some are not.
pub(super) fn parts(finding: &CompareFinding, arm: &str, what: &str, rows: Vec<PartRow>) -> Table {
    let axes = contents::axes(finding);
    let changes = scale(rows.iter().map(|row| row.change.value));
    let doubtful = rows.iter().any(|row| row.detected) && rows.iter().any(|row| !row.detected);
    let modules = rows.iter().any(|row| row.module.is_some());
    let ranges: Vec<(f64, f64)> = rows.iter().filter_map(|row| range(&row.change)).collect();
    let drawn = Span::of_most(&ranges, 0.0).map(|span| DrawnScale { span, margin: None });
    let mut columns: Vec<Column> = axes.iter().map(|axis| Column::text(*axis)).collect();
    columns.push(Column::rows(what));
    columns.extend(modules.then(|| Column::text("in").spare(3)));
    columns.extend([Column::number(contents::baseline(finding)).spare(2), Column::number(arm).spare(1)]);
    columns.extend([Column::number(format!("{}/IO", changes.unit)), Column::text("interval")]);
    columns.extend(doubtful.then(|| Column::text("detected")));
    columns.extend(drawn.map(|drawn| Column::drawing(Draw::Interval(drawn))));
    let mut table = Table { keys: axes.len() + 1, ..Table::new(columns) };
    for row in rows {
        let tone = match (row.detected, row.change.value > 0.0) {
            (true, true) => Tone::Bad,
            (true, false) => Tone::Own,
            (false, _) => Tone::Plain,
        };
        let mut cells: Vec<Cell> =
            axes.iter().map(|axis| Cell::from(row.cell.get(*axis).cloned().unwrap_or_default())).collect();
        cells.push(Cell::from(row.name));
        cells.extend(modules.then(|| Cell::from(row.module.unwrap_or_default())));
        let cost = |cost: Estimate| number::net(Some(cost.value), |cost| number::with_unit(CYCLES, cost));
        cells.extend(row.costs.map(|arm| Cell::from(cost(arm))));
        cells.extend([Cell::new(tone, signed(changes, row.change.value)), Cell::from(interval(changes, &row.change))]);
        cells.extend(doubtful.then(|| Cell::from(if row.detected { "yes" } else { "no" })));
        let ends = row.change.low.zip(row.change.high);
        let raw = Interval { value: row.change.value, ends };
        cells.extend(drawn.map(|_| Cell::drawn(tone, Raw::Interval(raw))));
        table.row(cells);
    }
    table
}

/// From the lowest to the highest of an estimate and its ends.
fn range(estimate: &Estimate) -> Option<(f64, f64)> {
    let ends = [Some(estimate.value), estimate.low, estimate.high].into_iter().flatten();
    ends.filter(|end| end.is_finite())
        .map(|end| (end, end))
        .reduce(|(low, high), (end, _)| (low.min(end), high.max(end)))
}
