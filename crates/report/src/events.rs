//! What the kernel does for an I/O or a packet, and what it does more or less often than in the baseline.

use crate::contents;
use crate::phrase::short_name;

use crate::document::{Audience, Block, Body, Cell, Column, Draw, Note, Raw, Table, Tone};
use crate::explained::{interval, on_page_if_many, place, scale_of_count, signed, tested, whole, with_its_unit};
use crate::number::{self, COUNT, Scale};
use crate::phrase::tied;
use model::blast::BlastFinding;
use model::blast::finding::PointFinding;
use model::comparison::CompareFinding;
use model::comparison::finding::CellFinding;
use model::elided_list::{elided_list, grouped};
use model::events::{RARE, SYSTEM_CALLS, meaning};
use model::experiment::Metric;
use model::explained::EventChange;
use model::finding::{PhaseFinding, RunFinding};
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
pub(super) fn of_comparison(finding: &CompareFinding, arm: &str) -> Vec<Block> {
    let cells: Vec<&CellFinding> =
        contents::cells(finding, arm).into_iter().filter(|cell| !cell.cost.events.is_empty()).collect();
    if cells.is_empty() {
        return Vec::new();
    }
    if !cells.iter().any(|cell| cell.cost.events.iter().any(|event| event.per_io.detected || event.named)) {
        return vec![Block::new("", Body::Notes).with(vec![unchanged(finding)])];
    }
    let few = cells.len() <= contents::FEW;
    let sentences = cells.iter().filter_map(|cell| sentence(finding, cell)).filter(|_| few);
    let sentences = Block::new("", Body::Notes).with(sentences.collect());
    let block = Block::new("Events per I/O", Body::Table(table_of_cells(finding, arm, &cells)))
        .with(vec![note_of_cells(finding, &cells)]);
    let has_changed = |cell: &CellFinding| cell.cost.events.iter().any(|event| event.per_io.detected);
    [vec![sentences], on_page_if_many("Events per I/O", &cells, has_changed, block)].concat()
}

fn unchanged(finding: &CompareFinding) -> Note {
    let (tested, _) = tested(finding.explanation.event_family);
    let events = if tested == 1 { "event" } else { "events" };
    let text = format!(
        "No change of what happens for an I/O is detected: {tested} {events} in {} rounds that counted them.",
        finding.explanation.counted_rounds
    );
    Note::remark(text)
}

/// Those that changed, the largest change per I/O first, and beside them what the user named and what is frequent.
fn shown<'a>(finding: &CompareFinding, cell: &'a CellFinding) -> impl Iterator<Item = &'a EventChange> + use<'a> {
    let most = if contents::is_sweep(finding) { MOST_OF_CELL } else { MOST };
    let frequent = |event: &EventChange| event.per_io.baseline.value.max(event.per_io.candidate.value) >= FREQUENT;
    let told = move |event: &&EventChange| event.per_io.detected || event.named || frequent(event);
    let named = cell.cost.events.iter().filter(|event| event.named).count();
    cell.cost.events.iter().filter(told).take(most.max(named))
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
    let detected = || cell.cost.events.iter().filter(|event| event.per_io.detected);
    let (along, against): (Vec<&EventChange>, Vec<&EventChange>) =
        detected().partition(|event| (event.per_io.change.value > 0.0) == rises);
    let verb = if rises { "rise" } else { "fall" };
    let (told, how) = match (along.as_slice(), against.as_slice()) {
        ([], []) => return None,
        ([], _) => (&against, "while the other way goes"),
        _ => (&along, "together with"),
    };
    let size = |event: &EventChange| event.per_io.change.value.abs();
    let largest = told.first().map_or(0.0, |event| size(event));
    let named: Vec<&&EventChange> =
        told.iter().filter(|event| size(event) >= NAMED_PART * largest).take(NAMED).collect();
    let text = named.iter().map(|event| {
        let change = event.per_io.change;
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

/// One row for each event that is shown.
fn table_of_cells(finding: &CompareFinding, arm: &str, cells: &[&CellFinding]) -> Table {
    let axes = contents::axes(finding);
    let rows: Vec<(&CellFinding, &EventChange)> =
        cells.iter().flat_map(|cell| shown(finding, cell).map(move |event| (*cell, event))).collect();
    let doubtful = rows.iter().any(|(_, event)| !event.per_io.detected);
    // The longest bar is the largest change.
    let changes = rows.iter().map(|(_, event)| event.per_io.change.value.abs());
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
        let change = event.per_io.change;
        let scale = scale_of_count(&change);
        // More of an event is neither worse nor better: arms may use one in place of another.
        let tone = if event.per_io.detected { Tone::Strong } else { Tone::Plain };
        let count = |estimate: Estimate| {
            Cell::from(number::net(Some(estimate.value), |value| {
                with_its_unit(scale_of_count(&estimate), |scale| scale.cell(value))
            }))
        };
        let mut cells = contents::names(&axes, &cell.cell);
        cells.push(Cell::from(event.name.as_str()));
        cells.extend([event.per_io.baseline, event.per_io.candidate].map(count));
        cells.extend([
            Cell::new(tone, with_its_unit(scale, |scale| signed(scale, change.value))),
            Cell::from(with_its_unit(scale, |scale| interval(scale, &change))),
        ]);
        cells.extend(doubtful.then(|| Cell::from(if event.per_io.detected { "yes" } else { "no" })));
        cells.push(Cell::new(Tone::Faint, meaning(&event.name)));
        cells.extend((largest > 0.0).then(|| Cell::drawn(tone, Raw::Number(change.value / largest))));
        table.row(cells);
    }
    table
}

fn note_of_cells(finding: &CompareFinding, cells: &[&CellFinding]) -> Note {
    let (tested, each) = tested(finding.explanation.event_family);
    let told: usize = cells.iter().map(|cell| shown(finding, cell).count()).sum();
    let left = tested.saturating_sub(told);
    let left = match left {
        0 => String::new(),
        1 => "Another event changed less or not detectably. ".to_owned(),
        left => format!("{left} other events changed less or not detectably. "),
    };
    let text = format!(
        "{left}Exact counts of the whole machine, net of the background, from {} rounds of their own; the intervals of the changes of all \
         {tested} events hold together ({each} each). What goes along with the cost need not be its cause.",
        finding.explanation.counted_rounds
    );
    Note::remark(text)
}

/// Maximum number of rows.
const SHOWN: usize = 12;
/// Smaller parts of the time that counting takes are not mentioned.
const NOTED: f64 = 0.001;

/// The events of a phase; nothing if none were counted.
pub fn of_phase(finding: &RunFinding, phase: &PhaseFinding, suffix: &str) -> Option<Block> {
    if phase.events_per_io.is_empty() {
        return None;
    }
    let named = |name: &str| finding.events.iter().any(|event| event.named && event.name == name);
    let mut events: Vec<(&String, &Estimate)> = phase.events_per_io.iter().collect();
    events.sort_by(|(_, one), (_, other)| other.value.total_cmp(&one.value));
    let (mut shown, mut left): (Vec<_>, Vec<_>) = events.into_iter().partition(|(name, it)| named(name) || counts(it));
    let most = SHOWN.max(shown.iter().filter(|(name, _)| named(name)).count());
    // Those that the user named stay.
    while shown.len() > most
        && let Some(place) = shown.iter().rposition(|(name, _)| !named(name))
    {
        left.insert(0, shown.remove(place));
    }
    let mut table = Table::new(vec![
        Column::rows("event"),
        Column::number("per I/O"),
        Column::text("95 % interval").spare(1),
        Column::text("").spare(0),
    ]);
    for (name, estimate) in &shown {
        let value = number::net(Some(estimate.value), |value| number::with_unit(COUNT, value));
        let within = Cell::from(within(estimate));
        table.row(vec![name.as_str().into(), value.into(), within, Cell::new(Tone::Faint, meaning(name))]);
    }
    let body = if table.rows.is_empty() { Body::Notes } else { Body::Table(table) };
    let notes = [others(&left), counting(phase)];
    Some(Block::new(format!("Events per I/O{suffix}"), body).with(notes.into_iter().flatten().collect()))
}

fn within(estimate: &Estimate) -> String {
    let Some((low, high)) = estimate.ends() else { return number::MISSING.to_owned() };
    let scale = Scale::of(COUNT, estimate.value);
    let unit = if scale.unit.is_empty() { String::new() } else { format!(" {}", scale.unit) };
    format!("{}{unit}", scale.interval(low, high))
}

/// Whether an event is frequent, and is no noise of the background.
fn counts(estimate: &Estimate) -> bool {
    estimate.value >= RARE && estimate.low.is_none_or(|low| low > 0.0)
}

/// What is not in the table.
fn others(left: &[(&String, &Estimate)]) -> Option<Note> {
    let names: Vec<String> = left.iter().filter(|(_, it)| counts(it)).map(|(name, _)| (*name).clone()).collect();
    let rare = left.len() - names.len();
    let mut parts = Vec::new();
    if !names.is_empty() {
        parts.push(format!("less often: {}", elided_list(&names, ", ")));
    }
    if rare > 0 {
        parts.push(format!("not shown: {rare} below {RARE} or not different from 0"));
    }
    (!parts.is_empty()).then(|| Note::remark(parts.join("; ")))
}

fn counting(phase: &PhaseFinding) -> Option<Note> {
    let part = phase.events_counting_fraction.filter(|part| *part >= NOTED)?;
    let text = format!(
        "Exact counts of the whole machine, net of the background, in windows of their own, in which counting took up to {} of one CPU.",
        tied(&number::percent(part))
    );
    Some(Note::remark(text))
}

/// Of more points, only a page has the events.
const FEW_POINTS: usize = 4;
/// Most rows, unless the user named more.
const SHOWN_OF_POINTS: usize = 12;
/// Marks a change against the first point.
const CHANGED: char = '*';

/// A row for each event, a column for each point; one line if none could be counted.
pub(super) fn of_packets(finding: &BlastFinding) -> Vec<Block> {
    if let Some(why) = &finding.explanation.events_reason {
        let note = Note::remark(format!("events per packet were not counted: {why}"));
        return vec![Block::new("", Body::Notes).with(vec![note])];
    }
    let points: Vec<&PointFinding> = finding.points.iter().filter(|point| !point.cost.events.is_empty()).collect();
    let (shown, left) = rows_of_points(&points);
    if shown.is_empty() {
        return Vec::new();
    }
    let table = match points.as_slice() {
        [point] => of_one(point, &shown),
        points => of_several(points, &shown),
    };
    let block =
        Block::new("Events per delivered packet", Body::Table(table)).with(notes_of_points(finding, &points, left));
    vec![if points.len() <= FEW_POINTS { block } else { block.of(Audience::PAGE) }]
}

/// The names that are shown, and how many are not: the most frequent at any point first.
fn rows_of_points<'a>(points: &[&'a PointFinding]) -> (Vec<&'a str>, usize) {
    let all = points.iter().flat_map(|point| &point.cost.events);
    let counts = all.map(|event| {
        ((event.name.as_str(), event.named), if is_told(event) { event.per_io.candidate.value } else { 0.0 })
    });
    let most = |((name, named), counts): ((_, bool), Vec<f64>)| (name, counts.into_iter().fold(0.0, f64::max), named);
    let mut events: Vec<(&str, f64, bool)> = grouped(counts).into_iter().map(most).collect();
    let all = events.len();
    events.retain(|(_, most, named)| *named || *most >= RARE);
    events.sort_by(|(_, one, _), (_, other, _)| other.total_cmp(one));
    let mut unnamed = 0;
    events.retain(|(_, _, named)| {
        unnamed += usize::from(!named);
        *named || unnamed <= SHOWN_OF_POINTS
    });
    let shown: Vec<&str> = events.into_iter().map(|(name, ..)| name).collect();
    let left = all - shown.len();
    (shown, left)
}

/// Whether a count is more than noise of the background.
fn is_told(event: &EventChange) -> bool {
    event.per_io.detected || event.per_io.candidate.low.is_none_or(|low| low > 0.0)
}

fn of_point<'a>(point: &'a PointFinding, name: &str) -> Option<&'a EventChange> {
    point.cost.events.iter().find(|event| event.name == name)
}

fn of_one(point: &PointFinding, shown: &[&str]) -> Table {
    let mut table = Table::new(vec![
        Column::rows("event"),
        Column::number("per packet"),
        Column::text("95 % interval").spare(1),
        Column::text("").spare(0),
    ]);
    for name in shown {
        let Some(event) = of_point(point, name) else { continue };
        let estimate = event.per_io.candidate;
        let within = interval(Scale::of(COUNT, estimate.value), &estimate);
        table.row(vec![
            Cell::from(*name),
            count_per_packet(estimate, ""),
            within.into(),
            Cell::new(Tone::Faint, meaning(name)),
        ]);
    }
    table
}

fn of_several(points: &[&PointFinding], shown: &[&str]) -> Table {
    let columns = points.iter().map(|point| Column::number(short_name(point)));
    let columns = std::iter::once(Column::rows("event")).chain(columns).chain([Column::text("").spare(0)]);
    let mut table = Table::new(columns.collect());
    for name in shown {
        let mut cells = vec![Cell::from(*name)];
        for point in points {
            cells.push(match of_point(point, name) {
                // More of an event is neither worse nor better: a method may use one in place of another.
                Some(event) if event.per_io.detected => {
                    Cell { tone: Tone::Strong, ..count_per_packet(event.per_io.candidate, &format!(" {CHANGED}")) }
                }
                Some(event) => count_per_packet(event.per_io.candidate, ""),
                None => Cell::from("≈ 0"),
            });
        }
        cells.push(Cell::new(Tone::Faint, meaning(name)));
        table.row(cells);
    }
    table
}

fn count_per_packet(estimate: Estimate, mark: &str) -> Cell {
    let scaled = |value| with_its_unit(scale_of_count(&estimate), |scale| scale.cell(value));
    Cell::from(format!("{}{mark}", number::net(Some(estimate.value), scaled)))
}

fn notes_of_points(finding: &BlastFinding, points: &[&PointFinding], left: usize) -> Vec<Note> {
    let left = match left {
        0 => String::new(),
        1 => "Another event is rarer. ".to_owned(),
        left => format!("{left} other events are rarer. "),
    };
    let changed = points.iter().flat_map(|point| &point.cost.events).any(|event| event.per_io.detected);
    let changed = if changed {
        format!(" {CHANGED} differs from the first point; the intervals of all changes hold together (95 %).")
    } else {
        String::new()
    };
    vec![Note::remark(format!(
        "{left}Exact counts of the whole machine, net of the background, from {} rounds of their own.{changed}",
        finding.explanation.counted_rounds
    ))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blast::fixture as packets;
    use crate::compare::fixture as comparisons;
    use crate::cost::fixture as runs;
    use crate::{Format, Ink};

    fn text(finding: &CompareFinding) -> String {
        Format::Table.render(finding, Ink::Plain, 120).replace('\u{a0}', " ")
    }

    #[test]
    fn what_did_not_change_is_one_line_unless_the_user_named_it() {
        let mut finding = comparisons::named("explained");
        finding.cells[0].cost.events.iter_mut().for_each(|event| event.per_io.detected = false);
        assert!(text(&finding).contains("\n  kmem:kmalloc "), "the user named it");
        finding.cells[0].cost.events.iter_mut().for_each(|event| event.named = false);
        let told = text(&finding);
        assert!(told.contains("No change of what happens for an I/O is detected: 6 events in 13 rounds"), "{told}");
        assert!(!told.contains("Events per I/O") && !told.contains("together with"), "{told}");
    }

    /// Only where both are detected.
    #[test]
    fn the_cost_goes_along_with_events_that_change_in_its_direction() {
        let mut finding = comparisons::named("explained");
        assert!(
            text(&finding)
                .contains("Cycles per I/O rise together with sched_switch +1.00 [0.98, 1.02] and hrtimer_start")
        );
        for event in finding.cells[0].cost.events.iter_mut().take(2) {
            event.per_io.change = event.per_io.change.scaled(-1.0);
        }
        let against = text(&finding);
        assert!(against.contains("Cycles per I/O rise while the other way goes sched_switch -1.00"), "{against}");
        finding.cells[0].metrics.get_mut("cycles_per_io").unwrap().detected = false;
        assert!(!text(&finding).contains("Cycles per I/O rise"));
    }

    #[test]
    fn the_most_frequent_events_are_rows_and_noise_is_one_line() {
        let text = Format::Table.render(&runs::named("beside_a_compiler"), Ink::Plain, 100);
        let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{text}"));
        let row: Vec<&str> = line("syscalls:pread64").split_whitespace().collect();
        assert_eq!(row, ["syscalls:pread64", "1.00", "[1.00,", "1.00]", "system", "call"]);
        assert!(line("net:net_dev_xmit").contains("≈ 0"), "the user named it");
        assert!(text.find("syscalls:pread64") < text.find("sched:sched_switch"), "the most frequent is first");
        assert!(!text.contains("timer:timer_start"), "noise");
        assert!(text.contains("not shown: 1 below 0.001 or not different from 0"), "{text}");
        assert!(text.contains("counting took up to 1.2 % of one CPU"), "{text}");
        let none = Format::Table.render(&runs::named("psync_4k"), Ink::Plain, 100);
        assert!(!none.contains("Events per I/O"), "{none}");
    }

    #[test]
    fn no_more_than_a_dozen_rows_are_shown_unless_the_user_named_them() {
        let mut finding = runs::named("beside_a_compiler");
        let many = (0..20).map(|place| (format!("a:event_{place:02}"), Estimate::exact(f64::from(40 - place))));
        finding.phases[0].events_per_io.extend(many);
        let block = of_phase(&finding, &finding.phases[0], "").unwrap();
        let Body::Table(table) = &block.body else { panic!("no table") };
        assert_eq!(table.rows.len(), SHOWN);
        assert!(block.notes[0].text.starts_with("less often: a:event_11"), "{}", block.notes[0].text);
    }

    #[test]
    fn the_most_frequent_are_rows_and_changes_are_marked() {
        let finding = packets::named("explained");
        let text = Format::Table.render(&finding, Ink::Plain, 120).replace('\u{a0}', " ");
        let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{text}"));
        let words = |name: &str| line(name).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words("syscalls:sendto")[1..4], ["1.00", "0", "*"]);
        assert_eq!(words("syscalls:sendmmsg")[1..4], ["0", "0.016", "*"]);
        assert_eq!(words("net:net_dev_xmit")[1..3], ["1.00", "1.00"]);
        assert!(!text.contains("timer:timer_start"), "its interval contains 0");
        assert!(text.contains("Another event is rarer.") && text.contains("from 5 rounds of their own."), "{text}");
        let mut without = finding;
        without.points.iter_mut().for_each(|point| point.cost.events.clear());
        without.explanation.events_reason = Some("no right".to_owned());
        let text = Format::Table.render(&without, Ink::Plain, 120);
        assert!(text.contains("events per packet were not counted: no right"), "{text}");
    }

    #[test]
    fn one_point_has_intervals() {
        let mut finding = packets::named("explained");
        finding.points.truncate(1);
        let text = Format::Table.render(&finding, Ink::Plain, 120).replace('\u{a0}', " ");
        assert!(text.contains("95 % interval") && text.contains("[0.98, 1.02]"), "{text}");
        assert!(!text.contains("differs from the first"), "{text}");
    }
}
