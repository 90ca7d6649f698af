//! Changes of cycles and counts, with their signs: what explaining rounds found.

use crate::contents;
use crate::document::{
    Audience, Block, Body, Calls, Cell, Column, Draw, FlameGraph, Interval, Note, Raw, Scale as DrawnScale, Span,
    Table, Tone,
};
use crate::number::{self, COUNT, CYCLES, MISSING, Scale, Units};
use crate::phrase::{name, short_name, shortened, tied};
use model::blast::BlastFinding;
use model::blast::finding::PointFinding;
use model::comparison::CompareFinding;
use model::comparison::finding::CellFinding;
use model::explained::{AccountChange, ExplainedFinding, FamilyFinding, SymbolChange};
use model::stats::Estimate;
use std::collections::BTreeMap;

/// The unit of changes: that in which the largest of them has three digits.
pub(crate) fn scale(changes: impl Iterator<Item = f64>) -> Scale {
    scale_of(CYCLES, changes)
}

/// The same of any quantity.
pub(crate) fn scale_of(units: Units, changes: impl Iterator<Item = f64>) -> Scale {
    Scale::of(units, changes.map(f64::abs).filter(|change| change.is_finite()).fold(0.0, f64::max))
}

/// The unit of a count per I/O or packet. Three digits, but no more than three decimals: smaller counts are noise beside a system call for each.
pub(crate) fn scale_of_count(count: &Estimate) -> Scale {
    const SMALL: f64 = 0.1;
    scale_of(COUNT, [SMALL, count.value].into_iter())
}

/// "1.34 k".
pub(crate) fn with_its_unit(scale: Scale, text: impl FnOnce(Scale) -> String) -> String {
    let text = text(scale);
    if scale.unit.is_empty() || text == MISSING { text } else { format!("{text} {}", scale.unit) }
}

/// "+160".
pub(crate) fn signed(scale: Scale, value: f64) -> String {
    let text = scale.cell(value);
    if value > 0.0 && !text.starts_with(['<', '>']) && text != MISSING { format!("+{text}") } else { text }
}

/// "[150, 170]", or that there is none.
pub(crate) fn interval(scale: Scale, change: &Estimate) -> String {
    change.ends().map_or_else(|| MISSING.to_owned(), |(low, high)| scale.interval(low, high))
}

/// "+160 [150, 170]".
pub(crate) fn whole(scale: Scale, change: &Estimate) -> String {
    tied(&format!("{} {}", signed(scale, change.value), interval(scale, change)))
}

/// "+182 [170, 194] cycles per I/O: +160 [150, 170] the workload's own threads, +9 [5, 13] softirq net_rx, and 3 more."
pub(crate) fn divided(change: &Estimate, per: &str, accounts: &[&AccountChange]) -> String {
    /// Accounts named in a sentence.
    const NAMED: usize = 4;
    let changes = accounts.iter().map(|account| account.per_io.change.value);
    let scale = scale(changes.chain([change.value]));
    let named = accounts.iter().take(NAMED);
    let named = named.map(|account| format!("{} {}", whole(scale, &account.per_io.change), account.name));
    let more = accounts.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("{} {} {per}: {}{more}.", whole(scale, change), scale.unit, named.collect::<Vec<_>>().join(", "))
}

/// Most accounts or functions of a comparison, and of each cell of a sweep.
const MOST: usize = 10;
const MOST_OF_CELL: usize = 3;

/// The blocks of all arms, among them those of `events`; empty without explaining rounds.
pub fn of_comparison(finding: &CompareFinding, events: impl Iterator<Item = Block>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for arm in contents::candidates(finding) {
        let cells: Vec<&CellFinding> =
            contents::cells(finding, arm).into_iter().filter(|cell| cell.cost.explained.is_some()).collect();
        let few = cells.len() <= contents::FEW;
        let sentences = cells.iter().filter_map(|cell| sentence(finding, cell)).filter(|_| few);
        blocks.push(Block::new("", Body::Notes).with(sentences.collect()).in_full());
        let block = |most| {
            let table = Body::Table(account_table(finding, arm, &cells, most));
            Block::new("Where the change is", table).with(account_notes(finding, &cells))
        };
        // The functions, which the user asked for, say it more exactly.
        if let [cell] = cells.as_slice()
            && cell.cost.symbols.is_empty()
            && shown_accounts(finding, cell, MOST).next().is_some()
        {
            blocks.push(block(contents::rows(finding)).of(Audience::GLANCE));
        }
        let has_changed = |cell: &CellFinding| cell.cost.accounts.iter().any(|account| account.per_io.detected);
        blocks.extend(on_page_if_many("Accounts", &cells, has_changed, block(MOST).in_full()));
    }
    for arm in contents::candidates(finding) {
        blocks.extend(functions_of(finding, arm));
    }
    blocks.extend(events.map(Block::in_full));
    let why = finding.explanation.unexplained.as_ref();
    let note = why.map(|why| Note::remark(format!("not divided into accounts: {why}")));
    blocks.push(Block::new("", Body::Notes).with(note.into_iter().collect()));
    blocks
}

/// A block about cells. Of many, only a page has it; elsewhere a note says in how many of them `what` it is about changed.
pub(crate) fn on_page_if_many(
    what: &str,
    cells: &[&CellFinding],
    has_changed: impl Fn(&CellFinding) -> bool,
    block: Block,
) -> Vec<Block> {
    let (changed, all) = (cells.iter().filter(|cell| has_changed(cell)).count(), cells.len());
    if all <= contents::FEW {
        return vec![block];
    }
    let text = format!("{what} changed in {changed} of {all} cells; the page (report.html), JSON and CSV have them.");
    let elsewhere = Block::new("", Body::Notes).with(vec![Note::remark(text)]);
    vec![elsewhere.of(Audience::SCREEN.or(Audience::POST)), block.of(Audience::PAGE)]
}

/// How many changes were tested, and the confidence of the interval of each.
pub(crate) fn tested(family: Option<FamilyFinding>) -> (usize, String) {
    family.map_or_else(Default::default, |it| (it.comparisons, tied(&number::confidence(it.confidence))))
}

/// The accounts that are shown: those that changed, and beside them the large ones that did not.
fn shown_accounts<'a>(
    finding: &CompareFinding,
    cell: &'a CellFinding,
    most: usize,
) -> impl Iterator<Item = &'a AccountChange> + use<'a> {
    let most = if contents::is_sweep(finding) { most.min(MOST_OF_CELL) } else { most };
    let any = cell.cost.accounts.iter().any(|account| account.per_io.detected);
    let told = move |account: &&AccountChange| account.per_io.detected || account.large;
    cell.cost.accounts.iter().filter(told).take(if any { most } else { 0 })
}

/// "candidate, bs=4k: ", as far as sentences need it.
pub(crate) fn place(finding: &CompareFinding, cell: &CellFinding) -> String {
    let place = contents::place(finding, cell);
    if place.is_empty() { place } else { format!("{place}: ") }
}

/// "candidate: of +182 [170, 194] cycles per I/O: +160 [150, 170] the workload's own threads, +9 [5, 13] softirq net_rx".
fn sentence(finding: &CompareFinding, cell: &CellFinding) -> Option<Note> {
    let explained = cell.cost.explained?;
    let place = place(finding, cell);
    let detected: Vec<&AccountChange> = cell.cost.accounts.iter().filter(|account| account.per_io.detected).collect();
    if detected.is_empty() {
        let text = format!("{place}No account's change is detected in {} rounds that kept accounts.", explained.rounds);
        return Some(Note::remark(text));
    }
    let text = format!("{place}Of {}", divided(&explained.change, "per I/O", &detected));
    Some(Note::new(Tone::Strong, text))
}

/// One row for each account that is shown; `most` limits the rows of a cell.
fn account_table(finding: &CompareFinding, arm: &str, cells: &[&CellFinding], most: usize) -> Table {
    let row = |cell: &'_ CellFinding, account: &AccountChange| PartRow {
        cell: cell.cell.clone(),
        name: account.name.clone(),
        module: None,
        costs: [account.per_io.baseline, account.per_io.candidate],
        change: account.per_io.change,
        detected: account.per_io.detected,
    };
    let rows = cells.iter().flat_map(|cell| shown_accounts(finding, cell, most).map(move |account| row(cell, account)));
    parts(finding, arm, "account", rows.collect())
}

/// What the accounts come from, and whether they explain the change of the answer.
fn account_notes(finding: &CompareFinding, cells: &[&CellFinding]) -> Vec<Note> {
    let Some(first) = cells.first().and_then(|cell| cell.cost.explained) else { return Vec::new() };
    let mut notes: Vec<Note> =
        cells.iter().filter_map(|cell| disagreement(finding, cell, &cell.cost.explained?)).collect();
    if cells.iter().any(|cell| cell.cost.explained.is_some_and(|explained| explained.known_by_name)) {
        let text = "Other programs used much of the machine; they are left out by their names.";
        notes.push(Note::new(Tone::Notice, text));
    }
    let (tested, each) = tested(finding.explanation.account_family);
    if cells.iter().any(|cell| shown_accounts(finding, cell, MOST).next().is_some()) {
        let text = format!(
            "From {} rounds that kept accounts, none of which is in the answer; the intervals of the changes of all {tested} accounts hold together \
             ({each} each).",
            first.rounds
        );
        notes.push(Note::remark(text));
    }
    notes
}

/// Keeping accounts may disturb one arm more than the other.
fn disagreement(finding: &CompareFinding, cell: &CellFinding, explained: &ExplainedFinding) -> Option<Note> {
    let undisturbed = explained.undisturbed_change.filter(|_| explained.differs)?;
    let scale = scale([explained.change.value, undisturbed.value].into_iter());
    let point = contents::point(finding, &cell.cell);
    let place = if point.is_empty() { point } else { format!("{}: ", tied(&point)) };
    let why = match explained.known_by_name {
        true => "what other programs did is in one of them",
        false => "keeping them disturbs the arms unequally",
    };
    let text = format!(
        "{place}The accounts divide a change of {}, but without accounts it is {} {} per I/O: {why}.",
        whole(scale, &explained.change),
        whole(scale, &undisturbed),
        scale.unit
    );
    Some(Note::new(Tone::Notice, text))
}

/// Where nothing changed, the largest functions show what was looked at.
const UNCHANGED: usize = 5;

/// The functions of an arm, and flame graphs of the difference; empty without sampled rounds.
fn functions_of(finding: &CompareFinding, arm: &str) -> Vec<Block> {
    let cells: Vec<&CellFinding> =
        contents::cells(finding, arm).into_iter().filter(|cell| !cell.cost.symbols.is_empty()).collect();
    if cells.is_empty() {
        return Vec::new();
    }
    let block = |most| Block::new("Functions", Body::Table(function_table(finding, arm, &cells, most)));
    let all = block(MOST).with(vec![function_note(finding, &cells)]).in_full();
    let few = block(contents::rows(finding)).of(Audience::GLANCE);
    let graphs = cells.iter().take(contents::FEW).map(|cell| graph(finding, cell));
    [all, few].into_iter().chain(graphs).collect()
}

fn shown_functions<'a>(finding: &CompareFinding, cell: &'a CellFinding, most: usize) -> Vec<&'a SymbolChange> {
    let most = if contents::is_sweep(finding) { most.min(MOST_OF_CELL) } else { most };
    let changed: Vec<&SymbolChange> =
        cell.cost.symbols.iter().filter(|symbol| symbol.per_io.detected).take(most).collect();
    if !changed.is_empty() {
        return changed;
    }
    let mut largest: Vec<&SymbolChange> = cell.cost.symbols.iter().filter(|symbol| !symbol.module.is_empty()).collect();
    largest.sort_by(|one, other| other.per_io.baseline.value.total_cmp(&one.per_io.baseline.value));
    largest.truncate(if contents::is_sweep(finding) { 1 } else { most.min(UNCHANGED) });
    largest
}

fn function_table(finding: &CompareFinding, arm: &str, cells: &[&CellFinding], most: usize) -> Table {
    let row = |cell: &CellFinding, symbol: &SymbolChange| PartRow {
        cell: cell.cell.clone(),
        name: shortened(&symbol.symbol),
        module: Some(symbol.module.clone()),
        costs: [symbol.per_io.baseline, symbol.per_io.candidate],
        change: symbol.per_io.change,
        detected: symbol.per_io.detected,
    };
    let rows = cells
        .iter()
        .flat_map(|cell| shown_functions(finding, cell, most).into_iter().map(move |symbol| row(cell, symbol)));
    parts(finding, arm, "function", rows.collect())
}

fn function_note(finding: &CompareFinding, cells: &[&CellFinding]) -> Note {
    let found = cells.iter().flat_map(|cell| &cell.cost.symbols).any(|symbol| symbol.per_io.detected);
    let (tested, each) = tested(finding.explanation.function_family);
    let text = format!(
        "{}From {} rounds that sampled stacks, none of which is in the answer; the intervals of the changes of all {tested} functions hold \
         together ({each} each).",
        if found { "" } else { "No function's change is detected; these are the largest. " },
        finding.explanation.sampled_rounds
    );
    Note::remark(text)
}

/// Width is the arm's cost, colour the change.
fn graph(finding: &CompareFinding, cell: &CellFinding) -> Block {
    let calls = cell.cost.stacks.iter().map(|stack| Calls {
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

/// A part of the cost of both arms in a cell.
struct PartRow {
    cell: BTreeMap<String, String>,
    name: String,
    /// Of a function.
    module: Option<String>,
    costs: [Estimate; 2],
    change: Estimate,
    detected: bool,
}

/// Parts of the cost with their changes; whether each is detected, if some are not.
fn parts(finding: &CompareFinding, arm: &str, what: &str, rows: Vec<PartRow>) -> Table {
    let axes = contents::axes(finding);
    let changes = scale(rows.iter().map(|row| row.change.value));
    let doubtful = rows.iter().any(|row| row.detected) && rows.iter().any(|row| !row.detected);
    let modules = rows.iter().any(|row| row.module.is_some());
    let ranges = rows.iter().filter_map(|row| Span::range([Some(row.change.value), row.change.low, row.change.high]));
    let drawn = Span::of_most(&ranges.collect::<Vec<_>>(), 0.0).map(|span| DrawnScale { span, margin: None });
    let mut columns: Vec<Column> = axes.iter().map(|axis| Column::text(*axis)).collect();
    columns.push(Column::rows(what));
    columns.extend(modules.then(|| Column::text("in").spare(3)));
    columns.extend([Column::number(contents::baseline(finding)).spare(2), Column::number(arm).spare(1)]);
    columns.extend([Column::number(format!("{}/IO", changes.unit)), Column::text("interval")]);
    columns.extend(doubtful.then(|| Column::text("detected")));
    columns.extend(drawn.map(|drawn| Column::drawing(Draw::Interval(drawn))));
    let mut table = Table { keys: axes.len() + 1, ..Table::new(columns) };
    for row in rows {
        let tone = match (row.detected, row.change.value > 0.0) {
            (true, true) => Tone::Bad,
            (true, false) => Tone::Own,
            (false, _) => Tone::Plain,
        };
        let mut cells = contents::names(&axes, &row.cell);
        cells.push(Cell::from(row.name));
        cells.extend(modules.then(|| Cell::from(row.module.unwrap_or_default())));
        let cost = |cost: Estimate| number::net(Some(cost.value), |cost| number::with_unit(CYCLES, cost));
        cells.extend(row.costs.map(|arm| Cell::from(cost(arm))));
        cells.extend([Cell::new(tone, signed(changes, row.change.value)), Cell::from(interval(changes, &row.change))]);
        cells.extend(doubtful.then(|| Cell::from(if row.detected { "yes" } else { "no" })));
        let ends = row.change.ends();
        let raw = Interval { value: row.change.value, ends };
        cells.extend(drawn.map(|_| Cell::drawn(tone, Raw::Interval(raw))));
        table.row(cells);
    }
    table
}

/// Of more points, only a page has the accounts.
const FEW_POINTS: usize = 4;

/// A sentence for each point but the first, and all accounts; empty without explaining rounds.
pub fn of_packets(finding: &BlastFinding) -> Vec<Block> {
    let points: Vec<&PointFinding> = finding.points.iter().filter(|point| !point.cost.accounts.is_empty()).collect();
    let few = points.len() <= FEW_POINTS;
    let sentences = points.iter().skip(1).filter_map(|point| sentence_of_point(finding, point)).filter(|_| few);
    let sentences = Block::new("", Body::Notes).with(sentences.collect());
    let block = Block::new("Where the cycles of a packet go", Body::Table(table_of_points(&points)))
        .with(notes_of_points(&points));
    let why = finding.explanation.unexplained.as_ref();
    let why = why.map(|why| Note::remark(format!("not divided into accounts: {why}")));
    let why = Block::new("", Body::Notes).with(why.into_iter().collect());
    vec![sentences, if few { block } else { block.of(Audience::PAGE) }, why]
}

/// "gso, 1 submitter, against sendto, 1 submitter: −12.3 [−12.5, −12.1] kcycles per packet: −9.0 […] the workload's own threads".
fn sentence_of_point(finding: &BlastFinding, point: &PointFinding) -> Option<Note> {
    let change = point.cost.explained?.change;
    let mut parts: Vec<&AccountChange> = point.cost.accounts.iter().filter(|account| account.per_io.detected).collect();
    let size = |account: &AccountChange| account.per_io.change.value.abs();
    parts.sort_by(|one, other| size(other).total_cmp(&size(one)));
    let text = format!(
        "{}, against {}: {}",
        name(point),
        name(finding.points.first()?),
        divided(&change, "per packet", &parts)
    );
    (!parts.is_empty()).then(|| Note::new(Tone::Strong, text))
}

/// One row for each account of each point.
fn table_of_points(points: &[&PointFinding]) -> Table {
    let several = points.len() > 1;
    let accounts = || points.iter().flat_map(|point| point.cost.accounts.iter().map(move |account| (*point, account)));
    let changes = scale(accounts().map(|(_, account)| account.per_io.change.value));
    let mut columns: Vec<Column> = several.then(|| Column::text("packets of")).into_iter().collect();
    columns.push(Column::rows("account"));
    columns.extend([Column::number("cycles/packet"), Column::number("±").spare(1), Column::number("share")]);
    if several {
        columns.extend([Column::number("change").spare(3), Column::text("interval").spare(2)]);
    }
    columns.push(Column::drawing(Draw::Bar));
    let mut table = Table { keys: if several { 2 } else { 1 }, ..Table::new(columns) };
    for (point, account) in accounts() {
        let cost = account.per_io.candidate;
        let share = point.cost.explained.map_or(f64::NAN, |whole| cost.value / whole.candidate.value);
        let mut cells: Vec<Cell> = several.then(|| Cell::from(short_name(point))).into_iter().collect();
        cells.push(Cell::from(&account.name));
        cells.push(Cell::from(number::net(Some(cost.value), |cost| number::with_unit(CYCLES, cost))));
        cells.push(Cell::new(Tone::Faint, number::plus_minus_in(CYCLES, cost.value, cost.low, cost.high)));
        cells.push(Cell::from(number::percent(share)));
        if several {
            let change = account.per_io.change;
            let tone = match (account.per_io.detected, change.value > 0.0) {
                (true, true) => Tone::Bad,
                (true, false) => Tone::Own,
                (false, _) => Tone::Faint,
            };
            let is_first = std::ptr::eq(point, *points.first().unwrap_or(&point));
            let text = |text: String| if is_first { String::new() } else { text };
            cells.push(Cell::new(tone, text(format!("{} {}", signed(changes, change.value), changes.unit))));
            cells.push(Cell::new(Tone::Faint, text(interval(changes, &change))));
        }
        cells.push(Cell::drawn(Tone::Notice, Raw::Number(share)));
        table.row(cells);
    }
    table
}

/// What the accounts come from.
fn notes_of_points(points: &[&PointFinding]) -> Vec<Note> {
    let Some(explained) = points.first().and_then(|point| point.cost.explained) else { return Vec::new() };
    let mut notes = vec![Note::remark(format!(
        "From {} shorter rounds that kept accounts, in which a packet costs more; no other figure is from them.{}",
        explained.rounds,
        if points.len() > 1 { " Changes are those against the first point." } else { "" }
    ))];
    if explained.known_by_name {
        let text = "Other programs used much of the machine; they are left out by their names.";
        notes.push(Note::new(Tone::Notice, text));
    }
    let differs = points.iter().filter(|point| point.cost.explained.is_some_and(|explained| explained.differs));
    let differs: Vec<String> = differs.map(|point| short_name(point)).collect();
    if !differs.is_empty() {
        let text = format!(
            "Keeping accounts changes the cost against the first by more than chance: {}.",
            model::elided_list::elided_list(&differs, ", ")
        );
        notes.push(Note::new(Tone::Notice, text));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_a_sign_and_its_interval() {
        let change = |value: f64| Estimate { value, low: Some(value - 10.0), high: Some(value + 10.0) };
        let scale = scale([182.0, -9.0, f64::NAN].into_iter());
        let text = |value| whole(scale, &change(value)).replace('\u{a0}', " ");
        assert_eq!(text(160.0), "+160 [150, 170]");
        assert_eq!(text(-9.0), "-9 [-19, 1]");
        assert_eq!(text(0.0), "0 [-10, 10]");
        assert_eq!(whole(scale, &Estimate::bare(f64::NAN)), format!("{MISSING}\u{a0}{MISSING}"));
    }
}
