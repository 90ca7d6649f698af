//! The tables of guests: the points, and all numbers.

use super::words;
use crate::document::{Audience, Block, Body, Cell, Column, Draw, Interval, Note, Raw, Scale, Span, Table, Tone};
use crate::number::MISSING;
use crate::text::page::width;
use crate::words as compare;
use model::guest::GuestFinding;
use model::guest::finding::{ChangeFinding, PointFinding};
use model::stats::Estimate;

/// Columns of the narrowest page on which a matrix is shown: a mail.
const NARROW: usize = 72;
/// Most arms of a matrix on a page for browsers.
const WIDE: usize = 12;

/// What was measured with several arms and is otherwise the same.
#[derive(Debug)]
pub(super) struct Row<'a> {
    /// What distinguishes it from other rows.
    pub name: String,
    /// Its points, by number of the arm.
    pub points: Vec<Option<&'a PointFinding>>,
}

/// All of them, in the order of the points.
pub(super) fn rows(finding: &GuestFinding) -> Vec<Row<'_>> {
    let arms = finding.arms.len().max(1);
    let mut rows: Vec<(Vec<(&str, &str)>, Row)> = Vec::new();
    for point in &finding.points {
        let arm = finding.arms.iter().position(|arm| *arm == point.arm).unwrap_or(0);
        let key = point.parts(finding.compared.as_deref());
        let free = rows
            .iter_mut()
            .filter(|(of, _)| *of == key)
            .find_map(|(_, row)| row.points.get_mut(arm).filter(|it| it.is_none()));
        if let Some(place) = free {
            *place = Some(point);
            continue;
        }
        let points = (0..arms).map(|place| (place == arm).then_some(point)).collect();
        rows.push((key, Row { name: words::row(finding, point), points }));
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

/// The points that are compared with their baseline, each with its change.
pub(super) fn changes(finding: &GuestFinding) -> Vec<(&PointFinding, &ChangeFinding)> {
    finding.points.iter().filter_map(|point| Some((point, point.change.as_ref()?))).collect()
}

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
    let by_size = differ_in_size(finding);
    let mut columns = vec![Column::rows("job")];
    columns.extend(compared.then(|| Column::text("arm")));
    columns.extend([Column::number("instr/IO"), Column::number("±")]);
    columns.extend(by_size.then(|| Column::number("instr/KiB").spare(2)));
    if compared {
        columns.extend(change_columns(finding));
    } else {
        let parts = [("kernel", 3), ("programs", 2), ("string reps", 1), ("locked", 1)];
        columns.extend(parts.map(|(head, spare)| Column::number(head).spare(spare)));
    }
    let known = |value: Option<f64>| value.map_or_else(|| MISSING.to_owned(), words::instructions);
    let mut table = Table { keys: 1 + usize::from(compared), ..Table::new(columns) };
    for point in &finding.points {
        let value = point.instructions_per_io;
        let mut cells = vec![Cell::from(words::row(finding, point))];
        cells.extend(compared.then(|| Cell::from(words::arm(finding, &point.arm))));
        cells.push(Cell::new(Tone::Strong, known(value.map(|value| value.value))));
        cells.push(Cell::from(known(value.and_then(|value| value.half_width()))));
        cells.extend(by_size.then(|| per_kib_cell(Some(point))));
        if compared {
            cells.extend(change_cells(finding, Some(point)));
        } else {
            let parts = [
                point.kernel_instructions_per_io,
                point.program_instructions_per_io,
                point.string_repetitions_per_io,
                point.locked_instructions_per_io,
            ];
            cells.extend(parts.map(|part| Cell::from(known(part.map(|part| part.0)))));
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
        cells.extend(change_cells(finding, candidate));
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
    Cell::new(compare::tone(change.verdict), words::change(&change.change))
        .in_full(words::change_in_full(&change.change))
}

fn change_columns(finding: &GuestFinding) -> [Column; 4] {
    [
        Column::number("change"),
        Column::number("95 %").spare(1),
        Column::verdict("verdict"),
        Column::drawing(Draw::Interval(scale(finding))),
    ]
}

fn change_cells(finding: &GuestFinding, point: Option<&PointFinding>) -> [Cell; 4] {
    let Some(change) = point.and_then(|point| point.change.as_ref()) else { return Default::default() };
    let tone = compare::tone(change.verdict);
    let in_full = compare::verdict_in_full(change.verdict, finding.margin);
    let Estimate { value, low, high } = change.change;
    [
        Cell::new(tone, words::change(&change.change)),
        Cell::from(words::interval(&change.change)),
        Cell::new(tone, compare::verdict(change.verdict)).in_full(in_full),
        Cell::drawn(tone, Raw::Interval(Interval { value, ends: low.zip(high) })),
    ]
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
