//! Instructions by function: the most expensive ones, those that changed most, and what moved.

use super::words;
use crate::document::{Cell, Column, Draw, Raw, Table, Tone};
use model::guest::GuestFinding;
use model::guest::finding::{ChangeFinding, FunctionFinding, PointFinding};

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
    let called = are_called(point);
    columns.extend(called.then(|| Column::number("calls/IO").spare(2)));
    let total: f64 = point.functions.iter().map(|function| function.instructions_per_io).sum();
    let functions: Vec<&FunctionFinding> = point.functions.iter().collect();
    let (shown, rest) = functions.split_at(most.min(functions.len()));
    rows(Table::new(columns), shown, rest, &|functions, is_rest| {
        let value = sum(functions, |function| function.instructions_per_io);
        let part = if total > 0.0 { value / total } else { 0.0 };
        let bar = if is_rest { Cell::default() } else { Cell::drawn(Tone::Own, Raw::Number(part)) };
        let calls = sum(functions, |function| function.calls_per_io);
        let calls = if is_rest || calls <= 0.0 { Cell::default() } else { Cell::from(words::calls(calls)) };
        let mut cells = vec![Cell::from(words::instructions(value)), bar];
        cells
            .extend(locked.then(|| Cell::from(words::instructions(sum(functions, |function| function.locked_per_io)))));
        cells.extend(called.then_some(calls));
        cells
    })
}

/// The functions that changed most. The rows sum to the difference.
pub(super) fn by_change(finding: &GuestFinding, point: &PointFinding, most: usize) -> Table {
    let mut columns = vec![Column::text("function"), Column::text("of").spare(1)];
    columns.extend(compared(finding, point));
    let called = are_called(point);
    columns.extend(called.then(|| Column::number("calls/IO").spare(2)));
    let mut functions: Vec<&FunctionFinding> = point.functions.iter().collect();
    functions.sort_by(|one, other| change(other).abs().total_cmp(&change(one).abs()));
    let moved = functions.iter().take_while(|function| change(function).abs() >= LEAST_MOVE).count();
    let (shown, rest) = functions.split_at(moved.min(most));
    let rest = if shown.is_empty() { &[] } else { rest };
    rows(Table::new(columns), shown, rest, &|functions, is_rest| {
        let now = sum(functions, |function| function.instructions_per_io);
        let difference = sum(functions, change);
        let mut cells = vec![
            Cell::from(words::instructions(now - difference)),
            Cell::from(words::instructions(now)),
            Cell::new(if is_rest { Tone::Plain } else { tone(difference) }, words::signed(difference)),
        ];
        let calls = functions.first().filter(|_| !is_rest).map_or_else(Cell::default, |only| Cell::from(calls(only)));
        cells.extend(called.then_some(calls));
        cells
    })
}

/// The columns of a baseline, a candidate and their difference.
fn compared(finding: &GuestFinding, point: &PointFinding) -> [Column; 3] {
    let baseline = finding.arms.first().map_or_else(|| "baseline".to_owned(), |arm| words::arm_head(finding, arm));
    [baseline, words::arm_head(finding, &point.arm), "difference".to_owned()].map(Column::number)
}

/// Records of earlier versions have no calls.
fn are_called(point: &PointFinding) -> bool {
    point.functions.iter().any(|function| function.calls_per_io > 0.0)
}

fn change(function: &FunctionFinding) -> f64 {
    function.change.unwrap_or(0.0)
}

fn sum(functions: &[&FunctionFinding], of: fn(&FunctionFinding) -> f64) -> f64 {
    functions.iter().map(|function| of(function)).sum()
}

/// A row for each of the functions that are shown, and one for the rest: what they are, and numbers of each.
fn rows(
    mut table: Table,
    shown: &[&FunctionFinding],
    rest: &[&FunctionFinding],
    numbers: &dyn Fn(&[&FunctionFinding], bool) -> Vec<Cell>,
) -> Table {
    for function in shown {
        let home = function.program.as_ref().or(function.module.as_ref()).or(function.subsystem.as_ref());
        let home = Cell::new(Tone::Faint, home.cloned().unwrap_or_default());
        let name = pair(function).unwrap_or_else(|| function.name.clone());
        table.row([Cell::from(name), home].into_iter().chain(numbers(&[function], false)).collect());
        // The baseline's name, if it does not fit beside the other.
        if let Some(was) = function.was.as_ref().filter(|_| pair(function).is_none()) {
            table.note(Cell::new(Tone::Faint, "  renamed from"), was.clone());
        }
        for chain in &function.called_from {
            table.note(Cell::new(Tone::Faint, "  called from"), chain.replace(';', " → "));
        }
    }
    if !rest.is_empty() {
        let others = format!("{} other{}", rest.len(), if rest.len() == 1 { "" } else { "s" });
        let others = Cell::new(Tone::Faint, others);
        table.row([others, Cell::default()].into_iter().chain(numbers(rest, true)).collect());
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
fn changed_calls(point: &PointFinding, row: &str) -> Option<String> {
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
    functions.sort_by(|one, other| change(other).abs().total_cmp(&change(one).abs()));
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

/// What moved between two arms.
pub(super) fn moved(finding: &GuestFinding, point: &PointFinding, change: &ChangeFinding, most: usize) -> Table {
    let mut columns = vec![Column::text("subsystem or function")];
    columns.extend(compared(finding, point));
    columns.push(Column::drawing(Draw::Diverging));
    let mut table = Table::new(columns);
    // The longest bar is the largest move.
    let largest = change.moved.iter().map(|moved| moved.difference().abs()).filter(|size| size.is_finite());
    let largest = largest.fold(LEAST_MOVE, f64::max);
    let bar = |difference: f64| Cell::drawn(tone(difference), Raw::Number(difference / largest));
    let mut rest = 0.0;
    for (place, moved) in change.moved.iter().enumerate() {
        if place >= most || moved.difference().abs() < LEAST_MOVE {
            rest += moved.difference();
            continue;
        }
        table.row(vec![
            Cell::from(moved.name.clone()),
            Cell::from(words::instructions(moved.baseline)),
            Cell::from(words::instructions(moved.candidate)),
            Cell::new(tone(moved.difference()), words::signed(moved.difference())),
            bar(moved.difference()),
        ]);
        if let Some(calls) = changed_calls(point, &moved.name) {
            table.note(Cell::new(Tone::Faint, "  calls per I/O"), calls);
        }
    }
    if !table.rows.is_empty() {
        let blank = || Cell::from("");
        let others = Cell::new(Tone::Faint, "all others");
        table.row(vec![others, blank(), blank(), Cell::from(words::signed(rest)), bar(rest)]);
        let all = |value: f64| Cell::new(Tone::Strong, words::instructions(value));
        let value = point.instructions_per_io.map(|value| value.value);
        table.row(vec![
            Cell::new(Tone::Strong, "all"),
            value.map_or_else(Cell::default, |value| all(value - change.difference)),
            value.map_or_else(Cell::default, all),
            Cell::new(Tone::Strong, words::signed(change.difference)),
            Cell::default(),
        ]);
    }
    table
}

/// Smaller moves are in the rest.
pub(super) const LEAST_MOVE: f64 = 0.5;

/// More instructions are worse.
fn tone(difference: f64) -> Tone {
    if difference > 0.0 { Tone::Bad } else { Tone::Own }
}
