//! The functions that a change of the cost is in.

use super::contents;
use super::explained::range;
use crate::document::{
    Audience, Block, Body, Calls, Cell, Column, Draw, FlameGraph, Interval, Note, Raw, Scale as DrawnScale, Span,
    Table, Tone,
};
use crate::explained::{interval, scale, signed};
use crate::number::{self, CYCLES};
use crate::phrase::{shortened, tied};
use model::comparison::CompareFinding;
use model::comparison::finding::CellFinding;
use model::explained::SymbolChange;
use model::stats::Estimate;

/// Rows of a comparison, and of each cell of a sweep.
const MOST: usize = 10;
const MOST_OF_CELL: usize = 3;
/// Where nothing changed, the largest functions show what was looked at.
const UNCHANGED: usize = 5;

/// The functions of an arm, and flame graphs of the difference; empty without sampled rounds.
pub(super) fn blocks(finding: &CompareFinding, arm: &str) -> Vec<Block> {
    let cells: Vec<&CellFinding> =
        contents::cells(finding, arm).into_iter().filter(|cell| !cell.symbols.is_empty()).collect();
    if cells.is_empty() {
        return Vec::new();
    }
    let table = Block::new("Functions", Body::Table(table(finding, arm, &cells))).with(vec![note(finding, &cells)]);
    let graphs = cells.iter().take(super::FEW).map(|cell| graph(finding, cell));
    std::iter::once(table).chain(graphs).collect()
}

fn shown<'a>(finding: &CompareFinding, cell: &'a CellFinding) -> Vec<&'a SymbolChange> {
    let most = if contents::is_sweep(finding) { MOST_OF_CELL } else { MOST };
    let changed: Vec<&SymbolChange> = cell.symbols.iter().filter(|symbol| symbol.detected).take(most).collect();
    if !changed.is_empty() {
        return changed;
    }
    let mut largest: Vec<&SymbolChange> = cell.symbols.iter().filter(|symbol| !symbol.module.is_empty()).collect();
    largest.sort_by(|one, other| other.baseline.value.total_cmp(&one.baseline.value));
    largest.truncate(if contents::is_sweep(finding) { 1 } else { UNCHANGED });
    largest
}

fn table(finding: &CompareFinding, arm: &str, cells: &[&CellFinding]) -> Table {
    let axes = contents::axes(finding);
    let rows: Vec<(&CellFinding, &SymbolChange)> =
        cells.iter().flat_map(|cell| shown(finding, cell).into_iter().map(|symbol| (*cell, symbol))).collect();
    let changes = scale(rows.iter().map(|(_, symbol)| symbol.change_cycles_per_io.value));
    let ranges: Vec<(f64, f64)> = rows.iter().filter_map(|(_, symbol)| range(&symbol.change_cycles_per_io)).collect();
    let drawn = Span::of_most(&ranges, 0.0).map(|span| DrawnScale { span, margin: None });
    let mut columns: Vec<Column> = axes.iter().map(|axis| Column::text(*axis)).collect();
    columns.push(Column::rows("function"));
    columns.push(Column::text("in").spare(3));
    columns.extend([Column::number(contents::baseline(finding)).spare(2), Column::number(arm).spare(1)]);
    columns.extend([Column::number(format!("{}/IO", changes.unit)), Column::text("interval")]);
    columns.extend(drawn.map(|drawn| Column::drawing(Draw::Interval(drawn))));
    let mut table = Table { keys: axes.len() + 1, ..Table::new(columns) };
    for (cell, symbol) in rows {
        let change = symbol.change_cycles_per_io;
        let tone = match (symbol.detected, change.value > 0.0) {
            (true, true) => Tone::Bad,
            (true, false) => Tone::Own,
            (false, _) => Tone::Plain,
        };
        let mut cells: Vec<Cell> =
            axes.iter().map(|axis| Cell::from(cell.cell.get(*axis).cloned().unwrap_or_default())).collect();
        cells.extend([Cell::from(shortened(&symbol.symbol)), Cell::from(&symbol.module)]);
        let cost = |cost: Estimate| number::net(Some(cost.value), |cost| number::with_unit(CYCLES, cost));
        cells.extend([symbol.baseline, symbol.candidate].map(|arm| Cell::from(cost(arm))));
        cells.extend([Cell::new(tone, signed(changes, change.value)), Cell::from(interval(changes, &change))]);
        let ends = change.low.zip(change.high);
        cells.extend(drawn.map(|_| Cell::drawn(tone, Raw::Interval(Interval { value: change.value, ends }))));
        table.row(cells);
    }
    table
}

fn note(finding: &CompareFinding, cells: &[&CellFinding]) -> Note {
    let found = cells.iter().flat_map(|cell| &cell.symbols).any(|symbol| symbol.detected);
    let tested = finding.function_family.map_or(0, |family| family.comparisons);
    let text = format!(
        "{}From {} rounds that sampled stacks, none of which is in the answer; the intervals of the changes of all {tested} functions hold \
         together ({} each).",
        if found { "" } else { "No function's change is detected; these are the largest. " },
        finding.sampled_rounds,
        tied(&finding.function_family.map_or_else(String::new, |family| number::confidence(family.confidence)))
    );
    Note::new(Tone::Faint, text)
}

/// Width is the arm's cost, colour the change.
fn graph(finding: &CompareFinding, cell: &CellFinding) -> Block {
    let calls = cell.stacks.iter().map(|stack| Calls {
        calls: stack.calls.clone(),
        cost: stack.candidate,
        before: Some(stack.baseline),
    });
    let point = contents::point(finding, &cell.cell);
    let point = if point.is_empty() { point } else { format!(", {point}") };
    let graph = FlameGraph {
        title: format!("Cycles per I/O of {} by calls{point}", cell.arm),
        subtitle: Some(format!("red: more than {}, blue: less", contents::baseline(finding))),
        what: "cycles".to_owned(),
        calls: calls.collect(),
    };
    Block::new("Calls", Body::FlameGraph(graph)).of(Audience::PAGE)
}
