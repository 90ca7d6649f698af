//! The functions that a change of the cost is in.

use super::contents;
use super::parts::{PartRow, parts};
use crate::document::{Audience, Block, Body, Calls, FlameGraph, Note, Table, Tone};
use crate::number;
use crate::phrase::{shortened, tied};
use model::comparison::CompareFinding;
use model::comparison::finding::CellFinding;
use model::explained::SymbolChange;

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
    let block = |most| Block::new("Functions", Body::Table(table(finding, arm, &cells, most)));
    let all = block(MOST).with(vec![note(finding, &cells)]).in_full();
    let few = block(super::rows(finding)).of(Audience::GLANCE);
    let graphs = cells.iter().take(super::FEW).map(|cell| graph(finding, cell));
    [all, few].into_iter().chain(graphs).collect()
}

fn shown<'a>(finding: &CompareFinding, cell: &'a CellFinding, most: usize) -> Vec<&'a SymbolChange> {
    let most = if contents::is_sweep(finding) { most.min(MOST_OF_CELL) } else { most };
    let changed: Vec<&SymbolChange> = cell.symbols.iter().filter(|symbol| symbol.detected).take(most).collect();
    if !changed.is_empty() {
        return changed;
    }
    let mut largest: Vec<&SymbolChange> = cell.symbols.iter().filter(|symbol| !symbol.module.is_empty()).collect();
    largest.sort_by(|one, other| other.baseline.value.total_cmp(&one.baseline.value));
    largest.truncate(if contents::is_sweep(finding) { 1 } else { most.min(UNCHANGED) });
    largest
}

fn table(finding: &CompareFinding, arm: &str, cells: &[&CellFinding], most: usize) -> Table {
    let row = |cell: &CellFinding, symbol: &SymbolChange| PartRow {
        cell: cell.cell.clone(),
        name: shortened(&symbol.symbol),
        module: Some(symbol.module.clone()),
        costs: [symbol.baseline, symbol.candidate],
        change: symbol.change_cycles_per_io,
        detected: symbol.detected,
    };
    let rows =
        cells.iter().flat_map(|cell| shown(finding, cell, most).into_iter().map(move |symbol| row(cell, symbol)));
    parts(finding, arm, "function", rows.collect())
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
