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
    columns.extend(locked.then(|| Column::number("locked").spare(3)));
    // Records of earlier versions have none.
    let called = point.functions.iter().any(|function| function.calls_per_io > 0.0);
    columns.extend(called.then(|| Column::number("calls/IO").spare(2)));
    let mut table = Table::new(columns);
    let total: f64 = point.functions.iter().map(|function| function.instructions_per_io).sum();
    let (shown, rest) = point.functions.split_at(most.min(point.functions.len()));
    let row = |name: Cell, home: Cell, value: f64, bar: Cell, (locks, calls): (f64, Option<f64>)| {
        let mut cells = vec![name, home, Cell::from(words::instructions(value)), bar];
        cells.extend(locked.then(|| Cell::from(words::instructions(locks))));
        cells.extend(called.then(|| calls.map_or_else(Cell::default, |calls| Cell::from(words::calls(calls)))));
        cells
    };
    for function in shown {
        let value = function.instructions_per_io;
        let bar = Cell::drawn(Tone::Own, Raw::Number(if total > 0.0 { value / total } else { 0.0 }));
        let counts = (function.locked_per_io, Some(function.calls_per_io).filter(|calls| *calls > 0.0));
        table.row(row(Cell::from(name(function)), home(function), value, bar, counts));
        add_was(&mut table, function);
        add_chains(&mut table, function);
    }
    if !rest.is_empty() {
        let value = rest.iter().map(|function| function.instructions_per_io).sum();
        let locks = rest.iter().map(|function| function.locked_per_io).sum();
        table.row(row(others(rest.len()), Cell::default(), value, Cell::default(), (locks, None)));
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
    let called = point.functions.iter().any(|function| function.calls_per_io > 0.0);
    if called {
        table.columns.push(Column::number("calls/IO").spare(2));
    }
    let change = |function: &FunctionFinding| function.change.unwrap_or(0.0);
    let mut functions: Vec<_> = point.functions.iter().collect();
    functions.sort_by(|one, other| change(other).abs().total_cmp(&change(one).abs()));
    let moved = functions.iter().take_while(|function| change(function).abs() >= LEAST_MOVE).count();
    let (shown, rest) = functions.split_at(moved.min(most));
    for function in shown {
        let mut cells = vec![
            Cell::from(name(function)),
            home(function),
            Cell::from(words::instructions(function.instructions_per_io - change(function))),
            Cell::from(words::instructions(function.instructions_per_io)),
            Cell::new(tone(change(function)), words::signed(change(function))),
        ];
        cells.extend(called.then(|| Cell::from(calls(function))));
        table.row(cells);
        add_was(&mut table, function);
        add_chains(&mut table, function);
    }
    if !shown.is_empty() && !rest.is_empty() {
        let now: f64 = rest.iter().map(|function| function.instructions_per_io).sum();
        let difference: f64 = rest.iter().map(|function| change(function)).sum();
        let mut cells = vec![
            others(rest.len()),
            Cell::default(),
            Cell::from(words::instructions(now - difference)),
            Cell::from(words::instructions(now)),
            Cell::from(words::signed(difference)),
        ];
        cells.extend(called.then(Cell::default));
        table.row(cells);
    }
    table
}

/// Calls per I/O in the baseline and here: "256 → 33", or one number if they did not change.
fn calls(function: &FunctionFinding) -> String {
    let now = words::calls(function.calls_per_io);
    let before = words::calls(function.baseline_calls_per_io.unwrap_or(0.0));
    match (function.baseline_calls_per_io.unwrap_or(0.0), function.calls_per_io) {
        (0.0, 0.0) => String::new(),
        _ if before == now => now,
        _ => format!("{before} → {now}"),
    }
}

/// The calls of the functions of one row of what moved that changed, those with the largest change of instructions first:
/// "tcp_sendpage 256 → 33".
pub(super) fn changed_calls(point: &PointFinding, row: &str) -> Option<String> {
    /// More would hide the row.
    const MOST: usize = 3;
    /// Per I/O: less is a timer or a worker that came once more.
    const LEAST_CALLS: f64 = 0.05;
    let of_row = |function: &&FunctionFinding| {
        let renamed = function.was.as_ref().map(|was| format!("{was} → {}", function.name));
        function.subsystem.as_deref().unwrap_or(&function.name) == row || renamed.as_deref() == Some(row)
    };
    let differs = |function: &&FunctionFinding| {
        let before = function.baseline_calls_per_io.unwrap_or(function.calls_per_io);
        (function.calls_per_io - before).abs() >= LEAST_CALLS
    };
    let mut functions: Vec<_> = point.functions.iter().filter(of_row).filter(differs).collect();
    let change = |function: &FunctionFinding| function.change.unwrap_or(0.0).abs();
    functions.sort_by(|one, other| change(other).total_cmp(&change(one)));
    let told: Vec<String> = functions.into_iter().take(MOST).map(|it| format!("{} {}", it.name, calls(it))).collect();
    (!told.is_empty()).then(|| told.join(", "))
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
