//! The probes of both arms.

use crate::compare::CompareFinding;
use crate::compare::finding::{BothArms, ProbeComparison};
use crate::pages::probes::{label, units};
use crate::pages::words::Change;
use report::document::{Block, Body, Cell, Column, Table};
use report::number::{self, MISSING};

/// The values of a probe, with what each is: "per I/O".
pub fn values(probe: &ProbeComparison) -> [(&'static str, Option<BothArms>); 3] {
    [("per I/O", probe.per_io), ("per second", probe.per_second), ("mean", probe.mean)]
}

/// A table for each arm; a row for each value of each probe.
pub fn of_comparison(finding: &CompareFinding) -> Vec<Block> {
    let arms = super::candidates(finding);
    let several = arms.len() > 1;
    let block = |arm: &&str| {
        let title = if several { format!("Probes, {arm}") } else { "Probes".to_owned() };
        Block::new(title, Body::Table(comparison_table(finding, arm)))
    };
    arms.iter().map(block).filter(|block| !block.is_empty()).collect()
}

fn comparison_table(finding: &CompareFinding, arm: &str) -> Table {
    let axes = super::axes(finding);
    let mut columns: Vec<Column> = axes.iter().map(|axis| Column::text(*axis)).collect();
    columns.extend([Column::text("probe"), Column::text("value")]);
    columns.extend([super::baseline(finding), arm].map(Column::number));
    columns.extend([Column::number("change"), Column::text("interval").spare(1)]);
    let mut table = Table { keys: axes.len() + 1, ..Table::new(columns) };
    for (cell, probe) in
        super::cells(finding, arm).into_iter().flat_map(|cell| cell.probes.iter().map(move |probe| (cell, probe)))
    {
        let label = label(&probe.name, &probe.unit);
        let shown = |value: f64| number::with_unit(units(&probe.unit), value);
        let known = values(probe).into_iter().filter_map(|(value, arms)| Some((value, arms?)));
        let rows: Vec<Vec<Cell>> = known
            .map(|(value, arms)| {
                let change = Change::from(arms.change);
                let arms = [arms.baseline, arms.candidate].map(|arm| shown(arm.value));
                let texts = [label.clone(), value.to_owned()].into_iter().chain(arms);
                let texts = texts.chain([change.percent(), change.interval()]).map(Cell::from);
                super::names(&axes, &cell.cell).into_iter().chain(texts).collect()
            })
            .collect();
        if rows.is_empty() {
            let point = super::point(finding, &cell.cell);
            let label = if point.is_empty() { label } else { format!("{point} {label}") };
            table.note(Cell::from(label), format!("{MISSING} {}", probe.reason.as_deref().unwrap_or("not read")));
        }
        rows.into_iter().for_each(|row| table.row(row));
    }
    table
}
