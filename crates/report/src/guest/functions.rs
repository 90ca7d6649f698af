//! Instructions by function: the most expensive ones, and those that changed most.

use super::tables::{LEAST_MOVE, tone};
use super::words;
use crate::document::{Cell, Column, Draw, Raw, Table, Tone};
use model::guest::GuestFinding;
use model::guest::finding::{FunctionFinding, PointFinding};

/// The functions with most instructions.
pub(super) fn by_cost(point: &PointFinding, most: usize) -> Table {
    // A kernel on one CPU has none unless it is booted to have them.
    let locked = point.functions.iter().any(|function| function.program.is_none() && function.locked_per_io > 0.0);
    let mut columns = vec![
        Column::text("function"),
        Column::text("of").spare(1),
        Column::number("instr/IO"),
        Column::drawing(Draw::Bar),
    ];
    columns.extend(locked.then(|| Column::number("locked").spare(2)));
    let mut table = Table::new(columns);
    let total: f64 = point.functions.iter().map(|function| function.instructions_per_io).sum();
    let (shown, rest) = point.functions.split_at(most.min(point.functions.len()));
    let row = |name: Cell, home: Cell, value: f64, bar: Cell, locks: f64| {
        let mut cells = vec![name, home, Cell::from(words::instructions(value)), bar];
        cells.extend(locked.then(|| Cell::from(words::instructions(locks))));
        cells
    };
    for function in shown {
        let value = function.instructions_per_io;
        let bar = Cell::drawn(Tone::Own, Raw::Number(if total > 0.0 { value / total } else { 0.0 }));
        table.row(row(Cell::from(name(function)), home(function), value, bar, function.locked_per_io));
        add_was(&mut table, function);
        add_chains(&mut table, function);
    }
    if !rest.is_empty() {
        let value = rest.iter().map(|function| function.instructions_per_io).sum();
        let locks = rest.iter().map(|function| function.locked_per_io).sum();
        table.row(row(others(rest.len()), Cell::default(), value, Cell::default(), locks));
    }
    table
}

/// The functions that changed most. The rows sum to the difference.
pub(super) fn by_change(finding: &GuestFinding, point: &PointFinding, most: usize) -> Table {
    let baseline = finding.arms.first().map_or_else(|| "baseline".to_owned(), |arm| words::arm_head(finding, arm));
    let mut table = Table::new(vec![
        Column::text("function"),
        Column::text("of").spare(1),
        Column::number(baseline),
        Column::number(words::arm_head(finding, &point.arm)),
        Column::number("difference"),
    ]);
    let change = |function: &FunctionFinding| function.change.unwrap_or(0.0);
    let mut functions: Vec<_> = point.functions.iter().collect();
    functions.sort_by(|one, other| change(other).abs().total_cmp(&change(one).abs()));
    let moved = functions.iter().take_while(|function| change(function).abs() >= LEAST_MOVE).count();
    let (shown, rest) = functions.split_at(moved.min(most));
    for function in shown {
        table.row(vec![
            Cell::from(name(function)),
            home(function),
            Cell::from(words::instructions(function.instructions_per_io - change(function))),
            Cell::from(words::instructions(function.instructions_per_io)),
            Cell::new(tone(change(function)), words::signed(change(function))),
        ]);
        add_was(&mut table, function);
        add_chains(&mut table, function);
    }
    if !shown.is_empty() && !rest.is_empty() {
        let now: f64 = rest.iter().map(|function| function.instructions_per_io).sum();
        let difference: f64 = rest.iter().map(|function| change(function)).sum();
        table.row(vec![
            others(rest.len()),
            Cell::default(),
            Cell::from(words::instructions(now - difference)),
            Cell::from(words::instructions(now)),
            Cell::from(words::signed(difference)),
        ]);
    }
    table
}

/// Longer pairs of names do not fit into a column.
const LONG_PAIR: usize = 32;

/// "old → new" if both fit into a column.
fn pair(function: &FunctionFinding) -> Option<String> {
    let pair = format!("{} → {}", function.was.as_ref()?, function.name);
    (pair.chars().count() <= LONG_PAIR).then_some(pair)
}

/// Its name, with that in the baseline if it is another one.
fn name(function: &FunctionFinding) -> String {
    pair(function).unwrap_or_else(|| function.name.clone())
}

/// The baseline's name, if it does not fit beside the other.
fn add_was(table: &mut Table, function: &FunctionFinding) {
    if let Some(was) = function.was.as_ref().filter(|_| pair(function).is_none()) {
        table.note(Cell::new(Tone::Faint, "  renamed from"), was.clone());
    }
}

fn home(function: &FunctionFinding) -> Cell {
    let home = function.program.as_ref().or(function.module.as_ref()).or(function.subsystem.as_ref());
    Cell::new(Tone::Faint, home.cloned().unwrap_or_default())
}

fn others(count: usize) -> Cell {
    Cell::new(Tone::Faint, if count == 1 { "1 other".to_owned() } else { format!("{count} others") })
}

fn add_chains(table: &mut Table, function: &FunctionFinding) {
    for chain in &function.called_from {
        table.note(Cell::new(Tone::Faint, "  called from"), chain.replace(';', " → "));
    }
}
