//! What the kernel does for an I/O more or less often than in the baseline, and whether the cost goes along.

use super::contents;
use super::explained::place;
use crate::document::{Audience, Block, Body, Cell, Column, Draw, Note, Raw, Table, Tone};
use crate::explained::{interval, scale_of_count, signed, whole, with_its_unit};
use crate::number::{self, COUNT, Scale};
use crate::phrase::tied;
use model::comparison::CompareFinding;
use model::comparison::finding::CellFinding;
use model::events::{SYSTEM_CALLS, meaning};
use model::experiment::Metric;
use model::explained::EventChange;
use model::stats::Estimate;

/// Rows of a comparison, and of each cell of a sweep.
const MOST: usize = 10;
const MOST_OF_CELL: usize = 3;
/// Events with such a count per I/O are shown beside those that changed: that they did not is part of the answer.
const FREQUENT: f64 = 0.5;
/// Events named in the sentence, and how large a part of the largest change theirs is at least.
const NAMED: usize = 3;
const NAMED_PART: f64 = 0.1;

/// The events of an arm; empty without rounds that counted them.
pub(super) fn blocks(finding: &CompareFinding, arm: &str) -> Vec<Block> {
    let cells: Vec<&CellFinding> =
        contents::cells(finding, arm).into_iter().filter(|cell| !cell.events.is_empty()).collect();
    if cells.is_empty() {
        return Vec::new();
    }
    if !cells.iter().any(|cell| cell.events.iter().any(|event| event.detected || event.named)) {
        return vec![Block::new("", Body::Notes).with(vec![unchanged(finding)])];
    }
    let few = cells.len() <= super::FEW;
    let sentences = cells.iter().filter_map(|cell| sentence(finding, cell)).filter(|_| few);
    let sentences = Block::new("", Body::Notes).with(sentences.chain(along(finding, arm)).collect());
    let block =
        Block::new("Events per I/O", Body::Table(table(finding, arm, &cells))).with(vec![note(finding, &cells)]);
    if few {
        return vec![sentences, block];
    }
    let many = Block::new("", Body::Notes).with(vec![many(&cells)]);
    vec![sentences, many.of(Audience::SCREEN.or(Audience::POST)), block.of(Audience::PAGE)]
}

fn unchanged(finding: &CompareFinding) -> Note {
    let tested = finding.event_family.map_or(0, |family| family.comparisons);
    let events = if tested == 1 { "event" } else { "events" };
    let text = format!(
        "No change of what happens for an I/O is detected: {tested} {events} in {} rounds that counted them.",
        finding.counted_rounds
    );
    Note::new(Tone::Faint, text)
}

/// Where many cells have their events.
fn many(cells: &[&CellFinding]) -> Note {
    let changed = cells.iter().filter(|cell| cell.events.iter().any(|event| event.detected)).count();
    let text = format!(
        "Events per I/O changed in {changed} of {} cells; the page (report.html), JSON and CSV have them.",
        cells.len()
    );
    Note::new(Tone::Faint, text)
}

/// Those that changed, the largest change per I/O first, and beside them what the user named and what is frequent.
fn shown<'a>(finding: &CompareFinding, cell: &'a CellFinding) -> impl Iterator<Item = &'a EventChange> + use<'a> {
    let most = if contents::is_sweep(finding) { MOST_OF_CELL } else { MOST };
    let frequent = |event: &EventChange| event.baseline.value.max(event.candidate.value) >= FREQUENT;
    let told = move |event: &&EventChange| event.detected || event.named || frequent(event);
    let named = cell.events.iter().filter(|event| event.named).count();
    cell.events.iter().filter(told).take(most.max(named))
}

/// "sched_switch", "system call pread64".
fn short(name: &str) -> String {
    match name.split_once(':') {
        Some((SYSTEM_CALLS, call)) => format!("system call {call}"),
        Some((_, tracepoint)) => tracepoint.to_owned(),
        None => name.to_owned(),
    }
}

/// "Cycles per I/O rise together with sched_switch +1.00 [0.98, 1.02] per I/O": both are detected, and neither need cause the other.
fn sentence(finding: &CompareFinding, cell: &CellFinding) -> Option<Note> {
    let cost = contents::metric(cell, Metric::CyclesPerIo).filter(|cost| cost.detected)?;
    let rises = cost.change? > 0.0;
    let detected = || cell.events.iter().filter(|event| event.detected);
    let (along, against): (Vec<&EventChange>, Vec<&EventChange>) =
        detected().partition(|event| (event.change_per_io.value > 0.0) == rises);
    let verb = if rises { "rise" } else { "fall" };
    let (told, how) = match (along.as_slice(), against.as_slice()) {
        ([], []) => return None,
        ([], _) => (&against, "while the other way goes"),
        _ => (&along, "together with"),
    };
    let size = |event: &EventChange| event.change_per_io.value.abs();
    let largest = told.first().map_or(0.0, |event| size(event));
    let named: Vec<&&EventChange> =
        told.iter().filter(|event| size(event) >= NAMED_PART * largest).take(NAMED).collect();
    let text = named.iter().map(|event| {
        let change = event.change_per_io;
        format!(
            "{} {}",
            tied(&short(&event.name)),
            with_its_unit(scale_of_count(&change), |scale| whole(scale, &change))
        )
    });
    let text: Vec<String> = text.collect();
    let text = match text.as_slice() {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        text => text.join(""),
    };
    let text = format!("{}Cycles per I/O {verb} {how} {text} per I/O.", place(finding, cell));
    Some(Note::new(Tone::Strong, text))
}

/// "Over 9 cells, the change of cycles per I/O is correlated with that of sched_switch: 0.97 [0.80, 1.00]".
fn along(finding: &CompareFinding, arm: &str) -> Option<Note> {
    let found: Vec<_> = finding.event_correlations.iter().filter(|found| found.arm == arm).take(NAMED).collect();
    let several = contents::candidates(finding).len() > 1;
    let place = if several { format!("{arm}: ") } else { String::new() };
    let named = found.iter().map(|found| {
        let scale = Scale::of(COUNT, 1.0);
        let value = tied(&format!("{} {}", scale.cell(found.correlation.value), interval(scale, &found.correlation)));
        format!("{}, {value}", tied(&short(&found.name)))
    });
    let named = named.collect::<Vec<_>>().join("; ");
    let cells = found.first()?.cells;
    let text = format!("{place}Over {cells} cells, the change of cycles per I/O is correlated with that of {named}.");
    Some(Note::new(Tone::Strong, text))
}

/// One row for each event that is shown.
fn table(finding: &CompareFinding, arm: &str, cells: &[&CellFinding]) -> Table {
    let axes = contents::axes(finding);
    let rows: Vec<(&CellFinding, &EventChange)> =
        cells.iter().flat_map(|cell| shown(finding, cell).map(move |event| (*cell, event))).collect();
    let doubtful = rows.iter().any(|(_, event)| !event.detected);
    // The longest bar is the largest change.
    let changes = rows.iter().map(|(_, event)| event.change_per_io.value.abs());
    let largest = changes.filter(|change| change.is_finite()).fold(0.0, f64::max);
    let mut columns: Vec<Column> = axes.iter().map(|axis| Column::text(*axis)).collect();
    columns.push(Column::rows("event"));
    columns.extend([Column::number(contents::baseline(finding)).spare(3), Column::number(arm).spare(2)]);
    columns.extend([Column::number("change"), Column::text("interval")]);
    columns.extend(doubtful.then(|| Column::text("detected").spare(1)));
    columns.push(Column::text("").spare(0));
    columns.extend((largest > 0.0).then(|| Column::drawing(Draw::Diverging)));
    let mut table = Table { keys: axes.len() + 1, ..Table::new(columns) };
    for (cell, event) in rows {
        let change = event.change_per_io;
        let scale = scale_of_count(&change);
        // More of an event is neither worse nor better: arms may use one in place of another.
        let tone = if event.detected { Tone::Strong } else { Tone::Plain };
        let count = |estimate: Estimate| {
            Cell::from(number::net(Some(estimate.value), |value| {
                with_its_unit(scale_of_count(&estimate), |scale| scale.cell(value))
            }))
        };
        let mut cells: Vec<Cell> =
            axes.iter().map(|axis| Cell::from(cell.cell.get(*axis).cloned().unwrap_or_default())).collect();
        cells.push(Cell::from(event.name.as_str()));
        cells.extend([event.baseline, event.candidate].map(count));
        cells.extend([
            Cell::new(tone, with_its_unit(scale, |scale| signed(scale, change.value))),
            Cell::from(with_its_unit(scale, |scale| interval(scale, &change))),
        ]);
        cells.extend(doubtful.then(|| Cell::from(if event.detected { "yes" } else { "no" })));
        cells.push(Cell::new(Tone::Faint, meaning(&event.name)));
        cells.extend((largest > 0.0).then(|| Cell::drawn(tone, Raw::Number(change.value / largest))));
        table.row(cells);
    }
    table
}

fn note(finding: &CompareFinding, cells: &[&CellFinding]) -> Note {
    let tested = finding.event_family.map_or(0, |family| family.comparisons);
    let told: usize = cells.iter().map(|cell| shown(finding, cell).count()).sum();
    let left = tested.saturating_sub(told);
    let left = match left {
        0 => String::new(),
        1 => "Another event changed less or not detectably. ".to_owned(),
        left => format!("{left} other events changed less or not detectably. "),
    };
    let text = format!(
        "{left}Exact counts of the whole machine, net of the background, from {} rounds of their own; the intervals of the changes of all \
         {tested} events hold together ({} each). What goes along with the cost need not be its cause.",
        finding.counted_rounds,
        tied(&finding.event_family.map_or_else(String::new, |family| number::confidence(family.confidence)))
    );
    Note::new(Tone::Faint, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture;
    use crate::{Format, Ink};

    fn text(finding: &CompareFinding) -> String {
        Format::Table.render(finding, Ink::Plain, 120).replace('\u{a0}', " ")
    }

    #[test]
    fn what_did_not_change_is_one_line_unless_the_user_named_it() {
        let mut finding = fixture::explained();
        finding.cells[0].events.iter_mut().for_each(|event| event.detected = false);
        assert!(text(&finding).contains("\n  kmem:kmalloc "), "the user named it");
        finding.cells[0].events.iter_mut().for_each(|event| event.named = false);
        let told = text(&finding);
        assert!(told.contains("No change of what happens for an I/O is detected: 6 events in 13 rounds"), "{told}");
        assert!(!told.contains("Events per I/O") && !told.contains("together with"), "{told}");
    }

    /// Only where both are detected.
    #[test]
    fn the_cost_goes_along_with_events_that_change_in_its_direction() {
        let mut finding = fixture::explained();
        assert!(
            text(&finding)
                .contains("Cycles per I/O rise together with sched_switch +1.00 [0.98, 1.02] and hrtimer_start")
        );
        for event in finding.cells[0].events.iter_mut().take(2) {
            event.change_per_io = event.change_per_io.scaled(-1.0);
        }
        let against = text(&finding);
        assert!(against.contains("Cycles per I/O rise while the other way goes sched_switch -1.00"), "{against}");
        finding.cells[0].metrics.get_mut("cycles_per_io").unwrap().detected = false;
        assert!(!text(&finding).contains("Cycles per I/O rise"));
    }
}
