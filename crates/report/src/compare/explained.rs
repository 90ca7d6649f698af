//! Where a change of the cost is: a sentence and the accounts that changed.

use super::parts::{PartRow, parts};
use super::{contents, events, functions};
use crate::document::{Audience, Block, Body, Note, Table, Tone};
use crate::explained::{divided, scale, whole};
use crate::number;
use crate::phrase::tied;
use model::comparison::CompareFinding;
use model::comparison::finding::CellFinding;
use model::explained::{AccountChange, ExplainedFinding};

/// Most accounts of a comparison, and of each cell of a sweep.
const MOST: usize = 10;
const MOST_OF_CELL: usize = 3;

/// The blocks of all arms; empty without explaining rounds.
pub fn blocks(finding: &CompareFinding) -> Vec<Block> {
    let mut blocks = Vec::new();
    for arm in contents::candidates(finding) {
        let cells: Vec<&CellFinding> =
            contents::cells(finding, arm).into_iter().filter(|cell| cell.explained.is_some()).collect();
        let few = cells.len() <= super::FEW;
        let sentences = cells.iter().filter_map(|cell| sentence(finding, cell)).filter(|_| few);
        blocks.push(Block::new("", Body::Notes).with(sentences.collect()).in_full());
        let block = |most| {
            let table = Body::Table(table(finding, arm, &cells, most));
            Block::new("Where the change is", table).with(notes(finding, &cells))
        };
        // The functions, which the user asked for, say it more exactly.
        if let [cell] = cells.as_slice()
            && cell.symbols.is_empty()
            && shown(finding, cell, MOST).next().is_some()
        {
            blocks.push(block(super::rows(finding)).of(Audience::GLANCE));
        }
        let block = block(MOST).in_full();
        if few {
            blocks.push(block);
        } else {
            let elsewhere = Block::new("", Body::Notes).with(many(&cells).into_iter().collect());
            blocks.extend([elsewhere.of(Audience::SCREEN.or(Audience::POST)), block.of(Audience::PAGE)]);
        }
    }
    for arm in contents::candidates(finding) {
        blocks.extend(functions::blocks(finding, arm));
    }
    for arm in contents::candidates(finding) {
        blocks.extend(events::blocks(finding, arm).into_iter().map(Block::in_full));
    }
    let why = finding.unexplained.as_ref();
    let note = why.map(|why| Note::new(Tone::Faint, format!("not divided into accounts: {why}")));
    blocks.push(Block::new("", Body::Notes).with(note.into_iter().collect()));
    blocks
}

/// Where many cells have their accounts.
fn many(cells: &[&CellFinding]) -> Option<Note> {
    let changed = cells.iter().filter(|cell| cell.accounts.iter().any(|account| account.detected)).count();
    let text = format!(
        "Accounts changed in {changed} of {} cells; the page (report.html), JSON and CSV have them.",
        cells.len()
    );
    (!cells.is_empty()).then(|| Note::new(Tone::Faint, text))
}

/// The accounts that are shown: those that changed, and beside them the large ones that did not.
fn shown<'a>(
    finding: &CompareFinding,
    cell: &'a CellFinding,
    most: usize,
) -> impl Iterator<Item = &'a AccountChange> + use<'a> {
    let most = if contents::is_sweep(finding) { most.min(MOST_OF_CELL) } else { most };
    let any = cell.accounts.iter().any(|account| account.detected);
    cell.accounts.iter().filter(move |account| account.detected || account.large).take(if any { most } else { 0 })
}

/// "candidate, bs=4k: ", as far as sentences need it.
pub(super) fn place(finding: &CompareFinding, cell: &CellFinding) -> String {
    let several = contents::candidates(finding).len() > 1;
    let point = contents::point(finding, &cell.cell);
    let place = [Some(cell.arm.as_str()).filter(|_| several), Some(point.as_str())];
    let place: Vec<&str> = place.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    if place.is_empty() { String::new() } else { format!("{}: ", place.join(", ")) }
}

/// "candidate: of +182 [170, 194] cycles per I/O: +160 [150, 170] the workload's own threads, +9 [5, 13] softirq net_rx".
fn sentence(finding: &CompareFinding, cell: &CellFinding) -> Option<Note> {
    let explained = cell.explained?;
    let place = place(finding, cell);
    let detected: Vec<&AccountChange> = cell.accounts.iter().filter(|account| account.detected).collect();
    if detected.is_empty() {
        let text = format!("{place}No account's change is detected in {} rounds that kept accounts.", explained.rounds);
        return Some(Note::new(Tone::Faint, text));
    }
    let text = format!("{place}Of {}", divided(&explained.change_cycles_per_io, "per I/O", &detected));
    Some(Note::new(Tone::Strong, text))
}

/// One row for each account that is shown; `most` limits the rows of a cell.
fn table(finding: &CompareFinding, arm: &str, cells: &[&CellFinding], most: usize) -> Table {
    let row = |cell: &'_ CellFinding, account: &AccountChange| PartRow {
        cell: cell.cell.clone(),
        name: account.name.clone(),
        module: None,
        costs: [account.baseline, account.candidate],
        change: account.change_cycles_per_io,
        detected: account.detected,
    };
    let rows = cells.iter().flat_map(|cell| shown(finding, cell, most).map(move |account| row(cell, account)));
    parts(finding, arm, "account", rows.collect())
}

/// What the accounts come from, and whether they explain the change of the answer.
fn notes(finding: &CompareFinding, cells: &[&CellFinding]) -> Vec<Note> {
    let Some(first) = cells.first().and_then(|cell| cell.explained) else { return Vec::new() };
    let mut notes: Vec<Note> = cells.iter().filter_map(|cell| disagreement(finding, cell, &cell.explained?)).collect();
    if cells.iter().any(|cell| cell.explained.is_some_and(|explained| explained.known_by_name)) {
        let text = "Other programs used much of the machine; they are left out by their names.";
        notes.push(Note::new(Tone::Notice, text));
    }
    let tested = finding.account_family.map_or(0, |family| family.comparisons);
    if cells.iter().any(|cell| shown(finding, cell, MOST).next().is_some()) {
        let text = format!(
            "From {} rounds that kept accounts, none of which is in the answer; the intervals of the changes of all {tested} accounts hold together \
             ({} each).",
            first.rounds,
            tied(&finding.account_family.map_or_else(String::new, |family| number::confidence(family.confidence)))
        );
        notes.push(Note::new(Tone::Faint, text));
    }
    notes
}

/// Keeping accounts may disturb one arm more than the other.
fn disagreement(finding: &CompareFinding, cell: &CellFinding, explained: &ExplainedFinding) -> Option<Note> {
    let undisturbed = explained.undisturbed_change_cycles_per_io.filter(|_| explained.differs)?;
    let scale = scale([explained.change_cycles_per_io.value, undisturbed.value].into_iter());
    let point = contents::point(finding, &cell.cell);
    let place = if point.is_empty() { point } else { format!("{}: ", tied(&point)) };
    let why = match explained.known_by_name {
        true => "what other programs did is in one of them",
        false => "keeping them disturbs the arms unequally",
    };
    let text = format!(
        "{place}The accounts divide a change of {}, but without accounts it is {} {} per I/O: {why}.",
        whole(scale, &explained.change_cycles_per_io),
        whole(scale, &undisturbed),
        scale.unit
    );
    Some(Note::new(Tone::Notice, text))
}
