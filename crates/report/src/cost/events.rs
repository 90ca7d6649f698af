//! Events per I/O: the most frequent ones, and the names of the others.

use crate::document::{Block, Body, Cell, Column, Note, Table, Tone};
use crate::number::{self, COUNT, Scale};
use crate::phrase::tied;
use model::elided_list::elided_list;
use model::events::{RARE, meaning};
use model::finding::{PhaseFinding, RunFinding};
use model::stats::Estimate;

/// Maximum number of rows.
const SHOWN: usize = 12;
/// Smaller parts of the time that counting takes are not mentioned.
const NOTED: f64 = 0.001;

/// The events of a phase; nothing if none were counted.
pub fn block(finding: &RunFinding, phase: &PhaseFinding, suffix: &str) -> Option<Block> {
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
        let within = Cell::from(interval(estimate));
        table.row(vec![name.as_str().into(), value.into(), within, Cell::new(Tone::Faint, meaning(name))]);
    }
    let body = if table.rows.is_empty() { Body::Notes } else { Body::Table(table) };
    let notes = [others(&left), counting(phase)];
    Some(Block::new(format!("Events per I/O{suffix}"), body).with(notes.into_iter().flatten().collect()))
}

fn interval(estimate: &Estimate) -> String {
    let Some((low, high)) = estimate.low.zip(estimate.high) else { return number::MISSING.to_owned() };
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
    (!parts.is_empty()).then(|| Note::new(Tone::Faint, parts.join("; ")))
}

fn counting(phase: &PhaseFinding) -> Option<Note> {
    let part = phase.events_counting_fraction.filter(|part| *part >= NOTED)?;
    let text = format!(
        "Exact counts of the whole machine, net of the background, in windows of their own, in which counting took up to {} of one CPU.",
        tied(&number::percent(part))
    );
    Some(Note::new(Tone::Faint, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::fixture;
    use crate::{Format, Ink};

    #[test]
    fn the_most_frequent_events_are_rows_and_noise_is_one_line() {
        let text = Format::Table.render(&fixture::beside_a_compiler(), Ink::Plain, 100);
        let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{text}"));
        let row: Vec<&str> = line("syscalls:pread64").split_whitespace().collect();
        assert_eq!(row, ["syscalls:pread64", "1.00", "[1.00,", "1.00]", "system", "call"]);
        assert!(line("net:net_dev_xmit").contains("≈ 0"), "the user named it");
        assert!(text.find("syscalls:pread64") < text.find("sched:sched_switch"), "the most frequent is first");
        assert!(!text.contains("timer:timer_start"), "noise");
        assert!(text.contains("not shown: 1 below 0.001 or not different from 0"), "{text}");
        assert!(text.contains("counting took up to 1.2 % of one CPU"), "{text}");
        let none = Format::Table.render(&fixture::psync_4k(), Ink::Plain, 100);
        assert!(!none.contains("Events per I/O"), "{none}");
    }

    #[test]
    fn no_more_than_a_dozen_rows_are_shown_unless_the_user_named_them() {
        let mut finding = fixture::beside_a_compiler();
        let many = (0..20).map(|place| (format!("a:event_{place:02}"), Estimate::exact(f64::from(40 - place))));
        finding.phases[0].events_per_io.extend(many);
        let block = block(&finding, &finding.phases[0], "").unwrap();
        let Body::Table(table) = &block.body else { panic!("no table") };
        assert_eq!(table.rows.len(), SHOWN);
        assert!(block.notes[0].text.starts_with("less often: a:event_11"), "{}", block.notes[0].text);
    }
}
