//! What moved between two arms, by subsystem and by function, and which functions a point executes.

use super::{arm_head, changes, instructions, row, signed};
use crate::guest::GuestFinding;
use crate::guest::finding::{ChangeFinding, FunctionFinding, PointFinding};
use report::document::{Audience, Block, Body, Cell, Column, Draw, Fact, Fold, Raw, Section, Table, Tone};

/// Functions shown for a point: on a terminal, and on a page.
const FEW_FUNCTIONS: usize = 8;
const MANY_FUNCTIONS: usize = 40;
/// Subsystems shown for a change: alone, and among others.
const MANY_MOVES: usize = 10;
const FEW_MOVES: usize = 3;
/// More points than this show no functions on a terminal.
const MANY_POINTS: usize = 2;

/// The reader of all on a terminal, of a mail or an issue.
const TEXT: Audience = Audience::SCREEN.or(Audience::POST);

/// Smaller moves are in the rest.
const LEAST_MOVE: f64 = 0.5;

/// "network +9,310, scheduler +1,204": the largest moves.
pub(super) fn moves(change: &ChangeFinding) -> Option<String> {
    let large = change.moved.iter().filter(|moved| moved.difference().abs() >= LEAST_MOVE).take(FEW_MOVES);
    let texts: Vec<_> = large.map(|moved| format!("{} {}", moved.name, signed(moved.difference()))).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// A table for each change, or one line for each if there are many.
pub(super) fn by_subsystem(finding: &GuestFinding) -> Section {
    let changes: Vec<_> = changes(finding).into_iter().filter(|(_, change)| !change.moved.is_empty()).collect();
    let few = changes.len() <= MANY_POINTS;
    let mut blocks: Vec<Block> = Vec::new();
    for (point, change) in &changes {
        let name = finding.name(point);
        let table = Body::Table(moves_table(finding, point, change, MANY_MOVES));
        blocks.push(match few {
            true => Block::new(format!("Changes by subsystem: {name}"), table),
            false => {
                let fold = Some(Fold { summary: name, open: false });
                Block { fold, ..Block::new("", table).of(Audience::PAGE) }
            }
        });
    }
    if !few {
        let facts = changes.iter().filter_map(|(point, change)| {
            let name = if finding.arms.len() > 2 { finding.name(point) } else { row(finding, point) };
            Some(Fact::new(name, format!("{}: {}", signed(change.difference), moves(change)?)))
        });
        blocks.push(Block::new("Changes by subsystem", Body::Facts(facts.collect())).of(TEXT));
    }
    Section::on_page("Changes by subsystem", blocks)
}

/// The functions of each point: those that changed most, or those with most instructions.
pub(super) fn by_function(finding: &GuestFinding) -> Section {
    let counted: Vec<_> = finding.points.iter().filter(|point| !point.functions.is_empty()).collect();
    let mut blocks = Vec::new();
    for point in &counted {
        let name = finding.name(point);
        let title = if point.change.is_some() { "Largest changes" } else { "Most instructions" };
        let table = |most| Body::Table(functions_table(finding, point, most));
        let fold = Fold { summary: name.clone(), open: finding.points.len() == 1 };
        let page = Block::new(title, table(MANY_FUNCTIONS)).of(Audience::PAGE);
        blocks.push(Block { fold: Some(fold), ..page });
        if counted.len() <= MANY_POINTS && (point.change.is_some() || finding.compared.is_none()) {
            blocks.push(Block::new(format!("{title}: {name}"), table(FEW_FUNCTIONS)).of(TEXT));
        }
    }
    Section::on_page("By function", blocks)
}

/// The functions with most instructions; with a baseline those that changed most, whose rows sum to the difference.
pub(super) fn functions_table(finding: &GuestFinding, point: &PointFinding, most: usize) -> Table {
    let by_change = point.change.is_some();
    let mut columns = vec![Column::text("function"), Column::text("of").spare(1)];
    match by_change {
        true => columns.extend(compared(finding, point)),
        false => columns.push(Column::number("instr/IO")),
    }
    columns.push(Column::number("calls/IO").spare(2));
    let mut table = Table::new(columns);
    let mut functions: Vec<&FunctionFinding> = point.functions.iter().collect();
    let mut most = most.min(functions.len());
    if by_change {
        functions.sort_by(|one, other| change(other).abs().total_cmp(&change(one).abs()));
        most = most.min(functions.iter().take_while(|function| change(function).abs() >= LEAST_MOVE).count());
    }
    let (shown, rest) = functions.split_at(most);
    let mut row = |name: Cell, home: &str, functions: &[&FunctionFinding], calls: String| {
        let now: f64 = functions.iter().map(|function| function.instructions_per_io).sum();
        let difference: f64 = functions.iter().map(|function| change(function)).sum();
        let mut cells = vec![name, Cell::new(Tone::Faint, home)];
        match by_change {
            true => cells.extend(moved_cells(now - difference, now)),
            false => cells.push(Cell::from(instructions(now))),
        }
        cells.push(Cell::from(calls));
        table.row(cells);
    };
    for function in shown {
        let home = function.program.as_ref().or(function.module.as_ref()).or(function.subsystem.as_ref());
        let home = home.map_or("", String::as_str);
        row(Cell::from(function.name.clone()), home, &[function], calls_then_and_now(function));
    }
    if !shown.is_empty() && !rest.is_empty() {
        let others = Cell::new(Tone::Faint, format!("{} more", rest.len()));
        row(others, "", rest, String::new());
    }
    table
}

/// The columns of a baseline, a candidate and their difference.
fn compared(finding: &GuestFinding, point: &PointFinding) -> [Column; 3] {
    let baseline = finding.arms.first().map_or_else(|| "baseline".to_owned(), |arm| arm_head(finding, arm));
    [baseline, arm_head(finding, &point.arm), "difference".to_owned()].map(Column::number)
}

/// Their cells. More instructions are worse.
fn moved_cells(baseline: f64, candidate: f64) -> [Cell; 3] {
    let difference = candidate - baseline;
    let numbers = [baseline, candidate].map(instructions).map(Cell::from);
    let [baseline, candidate] = numbers;
    [baseline, candidate, Cell::new(tone(difference), signed(difference))]
}

fn tone(difference: f64) -> Tone {
    if difference > 0.0 { Tone::Bad } else { Tone::Own }
}

fn change(function: &FunctionFinding) -> f64 {
    function.change.unwrap_or(0.0)
}

/// Calls per I/O in the baseline and here: "256 → 33", or one number if they did not change.
fn calls_then_and_now(function: &FunctionFinding) -> String {
    let now = calls(function.calls_per_io);
    let before = function.baseline_calls_per_io.map_or_else(|| now.clone(), calls);
    match (before.as_str(), now.as_str()) {
        ("0", "0") => String::new(),
        _ if before == now => now,
        _ => format!("{before} → {now}"),
    }
}

/// What moved between two arms.
pub(super) fn moves_table(finding: &GuestFinding, point: &PointFinding, change: &ChangeFinding, most: usize) -> Table {
    let mut columns = vec![Column::text("subsystem or function")];
    columns.extend(compared(finding, point));
    columns.push(Column::drawing(Draw::Diverging));
    let mut table = Table::new(columns);
    // The longest bar is the largest move.
    let largest = change.moved.iter().map(|moved| moved.difference().abs()).filter(|size| size.is_finite());
    let largest = largest.fold(LEAST_MOVE, f64::max);
    let bar = |difference: f64| Cell::drawn(tone(difference), Raw::Number(difference / largest));
    let shown = change.moved.iter().take(most).filter(|moved| moved.difference().abs() >= LEAST_MOVE);
    let mut rest = change.difference;
    for moved in shown {
        rest -= moved.difference();
        let mut cells = vec![Cell::from(moved.name.clone())];
        cells.extend(moved_cells(moved.baseline, moved.candidate));
        cells.push(bar(moved.difference()));
        table.row(cells);
    }
    if !table.rows.is_empty() {
        let blank = Cell::default;
        let others = Cell::new(Tone::Faint, "all others");
        table.row(vec![others, blank(), blank(), Cell::from(signed(rest)), bar(rest)]);
        let all = point.instructions_per_io.map(|value| moved_cells(value.value - change.difference, value.value));
        let mut cells = vec![Cell::new(Tone::Strong, "all")];
        cells.extend(all.unwrap_or_default());
        cells.push(blank());
        table.row(cells);
    }
    table
}

/// Calls per I/O: "256" or "1.50".
fn calls(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        few if few < 0.005 => "<0.01".to_owned(),
        few if few < 10.0 => format!("{few:.2}"),
        many => instructions(many),
    }
}
