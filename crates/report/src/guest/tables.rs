//! The tables of guests: the points, what moved, and all numbers.

use super::rows::{Row, rows};
use super::words;
use crate::document::{Audience, Block, Body, Cell, Column, Draw, Interval, Note, Raw, Scale, Span, Table, Tone};
use crate::number::MISSING;
use crate::text::page::width;
use model::guest::GuestFinding;
use model::guest::InstructionsPerIo;
use model::guest::finding::{ChangeFinding, PointFinding};
use model::stats::Estimate;

/// Columns of the narrowest page on which a matrix is shown: a mail.
const NARROW: usize = 72;
/// Most arms of a matrix on a page for browsers.
const WIDE: usize = 12;

/// The points: a row for each, or for each pair; matrices if there are more arms.
pub(super) fn points(finding: &GuestFinding) -> Vec<Block> {
    const TITLE: &str = "Instructions per I/O";
    let rows = rows(finding);
    let notes: Vec<Note> = legend(finding).map(|text| Note::new(Tone::Faint, text)).into_iter().collect();
    let list = |table| Block::new(TITLE, Body::Table(table)).with(notes.clone());
    if finding.compared.is_none() {
        return vec![list(each(finding))];
    }
    if finding.arms.len() == 2 {
        return vec![list(pairs(finding, &rows))];
    }
    let by = finding.compared.as_deref().map_or("", words::axis);
    let first = finding.arms.first().map_or_else(String::new, |arm| words::arm_head(finding, arm));
    let values = (format!("{TITLE} by {by}"), matrix(finding, &rows, &value_cell));
    let changes = (format!("Change against {first}"), matrix(finding, &rows, &change_cell));
    let per_kib = differ_in_size(finding)
        .then(|| (format!("Instructions per KiB by {by}"), matrix(finding, &rows, &per_kib_cell)));
    let all = [values, changes].into_iter().chain(per_kib).collect();
    let mut blocks = matrices(finding, all, || list(each(finding)));
    if let Some(first) = blocks.first_mut().filter(|block| block.notes.is_empty()) {
        first.notes = notes.clone();
    }
    blocks
}

/// Matrices for the readers who have room for them, and `list` for the others.
pub(super) fn matrices(
    finding: &GuestFinding,
    matrices: Vec<(String, Table)>,
    list: impl FnOnce() -> Block,
) -> Vec<Block> {
    let narrow = matrices.iter().all(|(_, table)| width_of(table) <= NARROW);
    let audience = match finding.arms.len() <= WIDE {
        true if narrow => Audience::ALL,
        true => Audience::PAGE,
        false => return vec![list()],
    };
    let block = |(title, table)| Block::new(title, Body::Table(table)).of(audience);
    let mut blocks: Vec<Block> = matrices.into_iter().map(block).collect();
    if !narrow {
        blocks.push(list().of(Audience::GLANCE.or(Audience::SCREEN).or(Audience::POST)));
    }
    blocks
}

/// What the intervals are, and how wide at most, because a table may have no room for them.
fn legend(finding: &GuestFinding) -> Option<String> {
    const EXACT: &str = "Within a replicate the count is exact.";
    let replicates = finding.points.iter().map(|point| point.replicates).max().filter(|most| *most > 0)?;
    let part = |point: &PointFinding| {
        let value = point.instructions_per_io?;
        Some(value.half_width()? / value.value)
    };
    let parts = finding.points.iter().filter_map(part).filter(|part| part.is_finite());
    Some(match parts.reduce(f64::max) {
        Some(widest) => format!(
            "95 % intervals: at most {} of a count, over {replicates} replicates that differ in memory layout and timing. {EXACT}",
            words::at_most(widest)
        ),
        None => format!("One replicate gives no interval; use --replicates 5. {EXACT}"),
    })
}

/// A row for each point.
fn each(finding: &GuestFinding) -> Table {
    let compared = finding.compared.is_some();
    let mut columns = vec![Column::rows("job")];
    if compared {
        columns.push(Column::text("arm"));
    }
    columns.extend([Column::number("instr/IO"), Column::number("±")]);
    let by_size = differ_in_size(finding);
    columns.extend(by_size.then(|| Column::number("instr/KiB").spare(2)));
    if compared {
        columns.extend(change_columns(finding));
    } else {
        columns.extend([
            Column::number("kernel").spare(3),
            Column::number("programs").spare(2),
            Column::number("string reps").spare(1),
            Column::number("locked").spare(1),
        ]);
    }
    let mut table = Table { keys: 1 + usize::from(compared), ..Table::new(columns) };
    for point in &finding.points {
        let value = point.instructions_per_io;
        let mut cells = vec![Cell::from(words::row(finding, point))];
        if compared {
            cells.push(Cell::from(words::arm(finding, &point.arm)));
        }
        let half = value.and_then(|value| value.half_width());
        cells.extend([
            Cell::new(Tone::Strong, value.map_or_else(missing, |value| words::instructions(value.value))),
            Cell::from(half.map_or_else(missing, words::instructions)),
        ]);
        cells.extend(by_size.then(|| per_kib_cell(Some(point))));
        if compared {
            cells.extend(change_cells(finding, point));
        } else {
            let part = |value: Option<InstructionsPerIo>| {
                Cell::from(value.map_or_else(missing, |InstructionsPerIo(value)| words::instructions(value)))
            };
            cells.extend([
                part(point.kernel_instructions_per_io),
                part(point.program_instructions_per_io),
                part(point.string_repetitions_per_io),
                part(point.locked_instructions_per_io),
            ]);
        }
        table.row(cells);
    }
    table
}

/// A row for each pair of baseline and candidate.
fn pairs(finding: &GuestFinding, rows: &[Row]) -> Table {
    let mut columns = vec![Column::rows("job")];
    columns.extend(finding.arms.iter().map(|arm| Column::number(words::arm_head(finding, arm))));
    columns.push(Column::number("difference").spare(2));
    columns.extend(change_columns(finding));
    let mut table = Table::new(columns);
    for row in rows {
        let mut cells = vec![Cell::from(row.name.clone())];
        cells.extend(row.points.iter().map(|point| value_cell(*point)));
        let candidate = row.points.get(1).copied().flatten();
        let change = candidate.and_then(|point| point.change.as_ref());
        cells.push(change.map_or_else(Cell::default, |change| Cell::from(words::signed(change.difference))));
        match candidate {
            Some(point) => cells.extend(change_cells(finding, point)),
            None => cells.extend([(); 4].map(|()| Cell::default())),
        }
        table.row(cells);
    }
    table
}

/// A row for each job and cell, a column for each arm.
pub(super) fn matrix(finding: &GuestFinding, rows: &[Row], cell: &dyn Fn(Option<&PointFinding>) -> Cell) -> Table {
    let heads = finding.arms.iter().map(|arm| Column::number(words::arm_head(finding, arm)));
    let mut table = Table::new(std::iter::once(Column::text("")).chain(heads).collect());
    for row in rows {
        let name = std::iter::once(Cell::from(row.name.clone()));
        table.row(name.chain(row.points.iter().map(|point| cell(*point))).collect());
    }
    table
}

/// "5,830", in full "5,830 ± 12".
fn value_cell(point: Option<&PointFinding>) -> Cell {
    let Some(value) = point.and_then(|point| point.instructions_per_io) else { return Cell::new(Tone::Faint, MISSING) };
    Cell::new(Tone::Strong, words::instructions(value.value)).in_full(words::plus_minus(&value))
}

/// Instructions per KiB, which compare where I/Os have several sizes.
fn per_kib_cell(point: Option<&PointFinding>) -> Cell {
    let value = point.and_then(|point| point.instructions_per_byte);
    value.map_or_else(|| Cell::new(Tone::Faint, MISSING), |value| Cell::from(words::instructions(value * 1024.0)))
}

/// Whether the points have I/Os of several sizes, so that instructions per I/O do not compare.
fn differ_in_size(finding: &GuestFinding) -> bool {
    let mut sizes = finding.points.iter().filter(|point| point.ios > 0).map(|point| point.bytes / point.ios);
    let first = sizes.next();
    sizes.any(|size| Some(size) != first)
}

/// "+9.21 %" in the colour of its verdict; nothing for the baseline.
fn change_cell(point: Option<&PointFinding>) -> Cell {
    let Some(change) = point.and_then(|point| point.change.as_ref()) else { return Cell::new(Tone::Faint, "·") };
    let (tone, _) = words::verdict(change.verdict);
    Cell::new(tone, words::change(&change.change)).in_full(words::change_in_full(&change.change))
}

fn change_columns(finding: &GuestFinding) -> [Column; 4] {
    [
        Column::number("change"),
        Column::number("95 %").spare(1),
        Column::verdict("verdict"),
        Column::drawing(Draw::Interval(scale(finding))),
    ]
}

fn change_cells(finding: &GuestFinding, point: &PointFinding) -> [Cell; 4] {
    let Some(change) = &point.change else { return [(); 4].map(|()| Cell::default()) };
    let (tone, verdict) = words::verdict(change.verdict);
    let (_, in_full) = words::verdict_in_full(change.verdict, finding.margin);
    let Estimate { value, low, high } = change.change;
    [
        Cell::new(tone, words::change(&change.change)),
        Cell::from(words::interval(&change.change)),
        Cell::new(tone, verdict).in_full(in_full),
        Cell::drawn(tone, Raw::Interval(Interval { value, ends: low.zip(high) })),
    ]
}

fn missing() -> String {
    MISSING.to_owned()
}

/// The width that a table needs in letters of one width.
fn width_of(table: &Table) -> usize {
    use crate::document::Row::{Cells, Note};
    let of = |(place, column): (usize, &Column)| {
        let cells = table.rows.iter().filter_map(|row| match row {
            Cells(_, cells) => cells.get(place),
            Note(..) => None,
        });
        cells.map(|cell| width(&cell.text)).fold(width(&column.head), usize::max) + 2
    };
    table.columns.iter().enumerate().map(of).sum()
}

/// All changes and the margin, and some room.
fn scale(finding: &GuestFinding) -> Scale {
    let changes = finding.points.iter().filter_map(|point| point.change.as_ref()).map(|change| change.change);
    let ends = changes.flat_map(|change| [change.value, change.low.unwrap_or(0.0), change.high.unwrap_or(0.0)]);
    let (mut low, mut high) = (-2.0 * finding.margin - 0.001, 2.0 * finding.margin + 0.001);
    for end in ends.filter(|end| end.is_finite()) {
        (low, high) = (low.min(end), high.max(end));
    }
    Scale { span: Span::new(low, high), margin: Some(finding.margin) }
}

/// What moved between two arms.
pub(super) fn moved(finding: &GuestFinding, point: &PointFinding, change: &ChangeFinding, most: usize) -> Table {
    let baseline = finding.arms.first().map_or_else(|| "baseline".to_owned(), |arm| words::arm_head(finding, arm));
    let mut table = Table::new(vec![
        Column::text("subsystem or function"),
        Column::number(baseline),
        Column::number(words::arm_head(finding, &point.arm)),
        Column::number("difference"),
        Column::drawing(Draw::Diverging),
    ]);
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
        if let Some(calls) = super::functions::changed_calls(point, &moved.name) {
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
pub(super) fn tone(difference: f64) -> Tone {
    if difference > 0.0 { Tone::Bad } else { Tone::Own }
}
