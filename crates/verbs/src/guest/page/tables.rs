//! The tables of guests: the points, functions and what moved, and which path the I/O took.

use crate::guest::GuestFinding;
use crate::guest::finding::{ChangeFinding, FunctionFinding, PointFinding, axis};
use crate::pages::words::{self as compare, Change};
use model::elided_list::distinct;
use model::stats::Estimate;
use report::document::{Block, Body, Cell, Column, Draw, Fact, Note, Raw, Scale, Span, Table, Tone};
use report::number::{MISSING, separated};

/// Smaller moves are in the rest.
pub(super) const LEAST_MOVE: f64 = 0.5;

/// Most arms of a matrix.
const MOST_ARMS: usize = 8;

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
        let key = point.place.parts(finding.compared.as_deref());
        let free = rows
            .iter_mut()
            .filter(|(of, _)| *of == key)
            .find_map(|(_, row)| row.points.get_mut(arm).filter(|it| it.is_none()));
        if let Some(place) = free {
            *place = Some(point);
            continue;
        }
        let points = (0..arms).map(|place| (place == arm).then_some(point)).collect();
        rows.push((key, Row { name: row(finding, point), points }));
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

/// The points that are compared with their baseline, each with its change.
pub(super) fn changes(finding: &GuestFinding) -> Vec<(&PointFinding, &ChangeFinding)> {
    finding.points.iter().filter_map(|point| Some((point, point.change.as_ref()?))).collect()
}

/// The points: a row for each pair of two arms, matrices of several, otherwise a row for each point.
pub(super) fn points(finding: &GuestFinding) -> Vec<Block> {
    const TITLE: &str = "Instructions per I/O";
    let notes: Vec<Note> = legend(finding).map(|text| Note::new(Tone::Faint, text)).into_iter().collect();
    let list = |table| vec![Block::new(TITLE, Body::Table(table)).with(notes.clone())];
    match (&finding.compared, finding.arms.len()) {
        (Some(_), 2) => list(pairs(finding)),
        (Some(by), 3..=MOST_ARMS) => {
            let title = format!("{TITLE} by {}", axis(by));
            let values = Block::new(title, Body::Table(matrix(finding, &value_cell))).with(notes);
            let first = finding.arms.first().map_or_else(String::new, |arm| arm_head(finding, arm));
            let changed = |point: Option<&PointFinding>| match point.and_then(|point| point.change.as_ref()) {
                Some(change) => Cell::new(compare::tone(change.verdict), Change::from(change.change).percent()),
                None => Cell::new(Tone::Faint, "·"),
            };
            vec![values, Block::new(format!("Change against {first}"), Body::Table(matrix(finding, &changed)))]
        }
        _ => list(each(finding)),
    }
}

/// A row for each job and cell, a column for each arm.
fn matrix(finding: &GuestFinding, cell: &dyn Fn(Option<&PointFinding>) -> Cell) -> Table {
    let heads = finding.arms.iter().map(|arm| Column::number(arm_head(finding, arm)));
    let mut table = Table::new(std::iter::once(Column::rows("job")).chain(heads).collect());
    for row in rows(finding) {
        let name = std::iter::once(Cell::from(row.name));
        table.row(name.chain(row.points.iter().map(|point| cell(*point))).collect());
    }
    table
}

/// What the intervals are, and how wide at most, because a table may have no room for them.
fn legend(finding: &GuestFinding) -> Option<String> {
    const EXACT: &str = "Within a replicate the count is exact.";
    let replicates = finding.points.iter().map(|point| point.replicates).max().filter(|most| *most > 0)?;
    let part = |point: &PointFinding| {
        let value = point.instructions_per_io?;
        Some(value.half_width()? / value.value)
    };
    let parts = finding.points.iter().filter_map(part).filter(|part| (0.0..1e6).contains(part));
    Some(match parts.reduce(f64::max) {
        Some(widest) => format!(
            "95 % intervals: at most ±{:.2} % of a count, over {replicates} replicates that differ in memory layout and timing. {EXACT}",
            (widest * 1e4).ceil() / 1e2
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
    let known = |value: Option<f64>| Cell::from(value.map_or_else(|| MISSING.to_owned(), instructions));
    let mut table = Table { keys: 1 + usize::from(compared), ..Table::new(columns) };
    for point in &finding.points {
        let mut cells = vec![Cell::from(row(finding, point))];
        cells.extend(compared.then(|| Cell::from(finding.arm_name(&point.arm))));
        cells.push(value_cell(Some(point)));
        cells.push(known(point.instructions_per_io.and_then(|value| value.half_width())));
        // Instructions per I/O do not compare where I/Os have several sizes.
        cells.extend(by_size.then(|| known(point.instructions_per_byte.map(|value| value * 1024.0))));
        if compared {
            cells.extend(change_cells(finding, Some(point)));
        } else {
            let parts = [
                point.kernel_instructions_per_io,
                point.program_instructions_per_io,
                point.string_repetitions_per_io,
                point.locked_instructions_per_io,
            ];
            cells.extend(parts.map(|part| known(part.map(|part| part.0))));
        }
        table.row(cells);
    }
    table
}

/// A row for each pair of baseline and candidate.
fn pairs(finding: &GuestFinding) -> Table {
    let mut columns = vec![Column::rows("job")];
    columns.extend(finding.arms.iter().map(|arm| Column::number(arm_head(finding, arm))));
    columns.push(Column::number("difference").spare(2));
    columns.extend(change_columns(finding));
    let mut table = Table::new(columns);
    for row in rows(finding) {
        let mut cells = vec![Cell::from(row.name)];
        cells.extend(row.points.iter().map(|point| value_cell(*point)));
        let candidate = row.points.get(1).copied().flatten();
        let change = candidate.and_then(|point| point.change.as_ref());
        cells.push(change.map_or_else(Cell::default, |change| Cell::from(signed(change.difference))));
        cells.extend(change_cells(finding, candidate));
        table.row(cells);
    }
    table
}

/// "5,830", in full "5,830 ± 12".
fn value_cell(point: Option<&PointFinding>) -> Cell {
    let Some(value) = point.and_then(|point| point.instructions_per_io) else { return Cell::new(Tone::Faint, MISSING) };
    Cell::new(Tone::Strong, instructions(value.value)).in_full(plus_minus(&value))
}

/// Whether the points have I/Os of several sizes, so that instructions per I/O do not compare.
fn differ_in_size(finding: &GuestFinding) -> bool {
    distinct(finding.points.iter().filter(|point| point.ios > 0).map(|point| point.bytes / point.ios)).len() > 1
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
    let found = Change::from(change.change);
    [
        Cell::new(tone, found.percent()),
        Cell::from(found.interval()),
        Cell::new(tone, compare::verdict(change.verdict)).in_full(in_full),
        Cell::drawn(tone, found.drawn()),
    ]
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

/// The functions with most instructions; with a baseline those that changed most, whose rows sum to the difference.
pub(super) fn functions(finding: &GuestFinding, point: &PointFinding, most: usize) -> Table {
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
pub(super) fn moved(finding: &GuestFinding, point: &PointFinding, change: &ChangeFinding, most: usize) -> Table {
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

/// Which path the I/O took, by kernel counters: a fact for each stack if all its points have the same, otherwise one for each point, or a
/// matrix for each counter that differs between several arms.
pub(super) fn paths(finding: &GuestFinding) -> Vec<Block> {
    let points: Vec<&PointFinding> = finding.points.iter().filter(|point| !point.path_proof.is_empty()).collect();
    let value = |point: &PointFinding, name: &str| {
        point.path_proof.get(name).map_or_else(|| MISSING.to_owned(), |value| whole(*value))
    };
    let is_matrix = (3..=MOST_ARMS).contains(&finding.arms.len());
    let names = distinct(points.iter().flat_map(|point| point.path_proof.keys()));
    let varies = |name: &&&String| distinct(points.iter().map(|point| value(point, name))).len() > 1;
    let varying: Vec<&String> = names.iter().filter(|name| is_matrix && varies(name)).copied().collect();
    let counters = |point: &PointFinding| {
        let same = point.path_proof.keys().filter(|name| !varying.contains(name));
        let counters: Vec<String> = same.map(|name| format!("{name} {}", value(point, name))).collect();
        format!("{} I/Os: {}", whole(i64::try_from(point.ios).unwrap_or(i64::MAX)), counters.join(", "))
    };
    let mut facts = Vec::new();
    for stack in distinct(points.iter().map(|point| point.place.stack.as_str())) {
        let own: Vec<&PointFinding> = points.iter().copied().filter(|point| point.place.stack == stack).collect();
        match distinct(own.iter().map(|point| counters(point))).as_slice() {
            [text] => facts.push(Fact::new(stack, text)),
            _ => facts.extend(own.iter().map(|point| Fact::new(finding.name(point), counters(point)))),
        }
    }
    let matrix = |name: &&String| {
        let cell =
            |point: Option<&PointFinding>| Cell::from(point.map_or_else(String::new, |point| value(point, name)));
        Block::new(format!("Path: {name}"), Body::Table(matrix(finding, &cell)))
    };
    let facts = Block::new("Path, by kernel counters", Body::Facts(facts));
    varying.iter().map(matrix).chain([facts]).collect()
}

/// From here on fractions of an instruction do not matter.
const WHOLE: f64 = 100.0;

/// From here on digits say nothing.
const ABSURD: f64 = 1e15;

/// "5,830" or "17.3".
pub(super) fn instructions(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => MISSING.to_owned(),
        0.0 => "0".to_owned(),
        size if size < WHOLE => format!("{value:.1}"),
        size if size < ABSURD => whole(value.round_ties_even() as i64),
        _ => format!("{value:.2e}"),
    }
}

/// Calls per I/O: "256" or "1.50".
pub(super) fn calls(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        few if few < 0.005 => "<0.01".to_owned(),
        few if few < 10.0 => format!("{few:.2}"),
        many => instructions(many),
    }
}

/// "+1,240" or "−3.1".
pub(super) fn signed(value: f64) -> String {
    let sign = if value < 0.0 { "−" } else { "+" };
    format!("{sign}{}", instructions(value.abs()))
}

/// A whole number with separators.
pub(super) fn whole(value: i64) -> String {
    let sign = if value < 0 { "−" } else { "" };
    format!("{sign}{}", separated(&value.unsigned_abs().to_string()))
}

/// "5,830 ± 12".
pub(super) fn plus_minus(value: &Estimate) -> String {
    match value.half_width() {
        Some(half) => format!("{} ± {}", instructions(value.value), instructions(half)),
        None => instructions(value.value),
    }
}

/// The name of an arm below the name of what is compared: "1024" of "rdma_max_inline_write=1024".
pub(super) fn arm_head(finding: &GuestFinding, name: &str) -> String {
    let swept = finding.compared.as_deref().and_then(|compared| name.strip_prefix(axis(compared))?.strip_prefix('='));
    swept.map_or_else(|| finding.arm_name(name), str::to_owned)
}

/// "1k write, bs=1k": what distinguishes a point from others of its arm; its job if nothing does.
pub(super) fn row(finding: &GuestFinding, point: &PointFinding) -> String {
    let parts = finding.parts(point, false);
    if parts.is_empty() { point.place.job.clone() } else { parts.join(", ") }
}

/// The same with its job in any case.
pub(super) fn named(finding: &GuestFinding, point: &PointFinding) -> String {
    finding.parts(point, true).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_exact_and_grouped() {
        assert_eq!(instructions(131_312.4), "131,312");
        assert_eq!(instructions(17.34), "17.3");
        assert_eq!(signed(-1240.0), "−1,240");
        assert_eq!(signed(3.04), "+3.0");
        assert_eq!(whole(-1_234_567), "−1,234,567");
        assert_eq!(instructions(f64::NAN), MISSING);
        assert_eq!(instructions(1e300), "1.00e300");
    }

    #[test]
    fn arms_are_named_by_what_distinguishes_them() {
        let mut finding = super::super::fixture::empty();
        finding.compared = Some("kernel".to_owned());
        let mut named = |arms: &[&str]| {
            finding.arms = arms.iter().map(|arm| (*arm).to_owned()).collect();
            arms.iter().map(|name| finding.arm_name(name)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(named(&["debian:6.1", "debian:6.12"]), "debian:6.1 debian:6.12");
        assert_eq!(named(&["/k/a/bzImage", "/k/b/bzImage"]), "/k/a/bzImage /k/b/bzImage");
        assert_eq!(named(&["debian:6.1", "/home/me/linux"]), "debian:6.1 linux");
        finding.compared = Some("sysctl:sunrpc.max".to_owned());
        assert_eq!(
            (finding.arm_name("max=1024"), arm_head(&finding, "max=1024")),
            ("max=1024".to_owned(), "1024".to_owned())
        );
    }
}
