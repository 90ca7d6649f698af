//! Whose the cycles of a packet are: the accounts of each point, and what changed against the first.

use super::{name, remark, short_name};
use crate::document::{Audience, Block, Body, Cell, Column, Draw, Note, Raw, Table, Tone};
use crate::explained::{divided, interval, scale, signed};
use crate::number::{self, CYCLES};
use model::blast::BlastFinding;
use model::blast::finding::PointFinding;
use model::explained::AccountChange;

/// Of more points, only a page has the accounts.
const FEW: usize = 4;

/// A sentence for each point but the first, and all accounts; empty without explaining rounds.
pub(super) fn blocks(finding: &BlastFinding) -> Vec<Block> {
    let points: Vec<&PointFinding> = finding.points.iter().filter(|point| !point.accounts.is_empty()).collect();
    let few = points.len() <= FEW;
    let sentences = points.iter().skip(1).filter_map(|point| sentence(finding, point)).filter(|_| few);
    let sentences = Block::new("", Body::Notes).with(sentences.collect());
    let block = Block::new("Where the cycles of a packet go", Body::Table(table(&points))).with(notes(&points));
    let why = finding.unexplained.as_ref();
    let why = why.map(|why| remark(format!("not divided into accounts: {why}")));
    let why = Block::new("", Body::Notes).with(why.into_iter().collect());
    vec![sentences, if few { block } else { block.of(Audience::PAGE) }, why]
}

/// "gso, 1 submitter, against sendto, 1 submitter: −12.3 [−12.5, −12.1] kcycles per packet: −9.0 […] the workload's own threads".
fn sentence(finding: &BlastFinding, point: &PointFinding) -> Option<Note> {
    let change = point.explained?.change_cycles_per_io;
    let mut parts: Vec<&AccountChange> = point.accounts.iter().filter(|account| account.detected).collect();
    let size = |account: &AccountChange| account.change_cycles_per_io.value.abs();
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
fn table(points: &[&PointFinding]) -> Table {
    let several = points.len() > 1;
    let accounts = || points.iter().flat_map(|point| point.accounts.iter().map(move |account| (*point, account)));
    let changes = scale(accounts().map(|(_, account)| account.change_cycles_per_io.value));
    let mut columns: Vec<Column> = several.then(|| Column::text("packets of")).into_iter().collect();
    columns.push(Column::rows("account"));
    columns.extend([Column::number("cycles/packet"), Column::number("±").spare(1), Column::number("share")]);
    if several {
        columns.extend([Column::number("change").spare(3), Column::text("interval").spare(2)]);
    }
    columns.push(Column::drawing(Draw::Bar));
    let mut table = Table { keys: if several { 2 } else { 1 }, ..Table::new(columns) };
    for (point, account) in accounts() {
        let cost = account.candidate;
        let share = point.explained.map_or(f64::NAN, |whole| cost.value / whole.candidate.value);
        let mut cells: Vec<Cell> = several.then(|| Cell::from(short_name(point))).into_iter().collect();
        cells.push(Cell::from(&account.name));
        cells.push(Cell::from(number::net(Some(cost.value), |cost| number::with_unit(CYCLES, cost))));
        cells.push(Cell::new(Tone::Faint, number::plus_minus_in(CYCLES, cost.value, cost.low, cost.high)));
        cells.push(Cell::from(number::percent(share)));
        if several {
            let change = account.change_cycles_per_io;
            let tone = match (account.detected, change.value > 0.0) {
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
fn notes(points: &[&PointFinding]) -> Vec<Note> {
    let Some(explained) = points.first().and_then(|point| point.explained) else { return Vec::new() };
    let mut notes = vec![remark(format!(
        "From {} shorter rounds that kept accounts, in which a packet costs more; no other figure is from them.{}",
        explained.rounds,
        if points.len() > 1 { " Changes are those against the first point." } else { "" }
    ))];
    if explained.known_by_name {
        let text = "Other programs used much of the machine; they are left out by their names.";
        notes.push(Note::new(Tone::Notice, text));
    }
    let differs = points.iter().filter(|point| point.explained.is_some_and(|explained| explained.differs));
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
