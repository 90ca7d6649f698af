//! The tables of a recording: periods and what moves with them, stalls, probes, and what changed.

use super::words;
use crate::ftq::FtqFinding;
use crate::ftq::finding::{Label, ProbeFinding, Stall};
use crate::pages::{probes, stored};
use report::document::{Block, Body, Cell, Column, Fact, Note, Table, Tone, tied};
use report::number::{self, MISSING, NANOS};

/// The periods, the longest stall first, and which probe moves with each.
pub(super) fn periods(finding: &FtqFinding) -> Vec<Block> {
    let mut columns = ["period", "stall", "depth", "seen", "false alarm"].map(Column::number).to_vec();
    columns.extend([Column::text("moves with it"), Column::number("× chance")]);
    let mut table = Table::new(columns);
    for period in &finding.periodic {
        let [probe, times] = labelled(&period.labels);
        table.row(vec![
            Cell::new(Tone::Strong, number::seconds(period.period_seconds)),
            Cell::from(number::seconds(period.stall_seconds)),
            Cell::from(number::percent(period.depth)),
            Cell::from(format!("{} of {}", words::whole(period.seen), words::whole(period.of))),
            Cell::from(words::probability(period.false_alarm)),
            probe,
            times,
        ]);
    }
    let note = Note::remark(
        "Depth: the part of the amount that is lost while the stall lasts. × chance: how many times more often the probe moves \
         with the stalls than with as long times elsewhere.",
    );
    let notes = if table.rows.is_empty() { Vec::new() } else { vec![note] };
    vec![Block::new("Periods", Body::Table(table)).with(notes)]
}

/// The probe that moves most, and how much more often than chance. A dash if none does.
fn labelled(labels: &[Label]) -> [Cell; 2] {
    let missing = || [MISSING; 2].map(|missing| Cell::new(Tone::Faint, missing));
    labels.first().map_or_else(missing, |label| [label.probe.clone(), words::times(label.times_chance)].map(Cell::from))
}

/// Stalls that belong to no period, longest first.
pub(super) fn stalls(finding: &FtqFinding) -> Vec<Block> {
    let mut columns = ["at", "lasted", "lost"].map(Column::number).to_vec();
    columns.extend([Column::text("moves with it"), Column::number("× chance")]);
    let row = |stall: &Stall| -> Vec<Cell> {
        let (lasted, lost) = (number::seconds(stall.seconds), number::seconds(stall.lost_seconds));
        let times = [words::moment(stall.at_seconds), lasted, lost].map(Cell::from);
        times.into_iter().chain(labelled(&stall.labels)).collect()
    };
    let mut table = Table::new(columns);
    finding.stalls.iter().for_each(|stall| table.row(row(stall)));
    let shown = table.rows.len();
    let longest = || Note::remark(format!("The longest of {}.", words::whole(finding.stall_count)));
    let notes = (shown > 0 && finding.stall_count > shown as u64).then(longest).into_iter().collect();
    vec![Block::new("Stalls that no period explains", Body::Table(table)).with(notes)]
}

/// The probes over the whole recording.
pub(super) fn probes(finding: &FtqFinding) -> Vec<Block> {
    let mut columns = ["mean", "least", "greatest"].map(Column::number).to_vec();
    columns.insert(0, Column::rows("probe"));
    columns.push(Column::text("reads").spare(1));
    let mut table = Table::new(columns);
    for probe in &finding.probes {
        let name = Cell::from(probes::label(&probe.name, &probe.unit));
        if probe.mean.is_none() {
            table.note(name, format!("{MISSING} never read"));
            continue;
        }
        // The kernel adds a wait when it ends, so of a time the least and the greatest are waits, not parts of a quantum.
        let is_time = probe.counter && probe.unit == "ns";
        let value =
            |value: Option<f64>| Cell::from(if is_time { number::known(NANOS, value) } else { level(probe, value) });
        let meaning = match probe.lost_at_seconds {
            Some(lost) => Cell::new(Tone::Notice, format!("could not be read after {}", words::moment(lost))),
            None => Cell::new(Tone::Faint, probe.meaning.clone()),
        };
        let mean = Cell::from(level(probe, probe.mean));
        table.row(vec![name, mean, value(probe.least), value(probe.greatest), meaning]);
    }
    vec![Block::new("Probes", Body::Table(table))]
}

/// A level, or the increase of a counter per second.
fn level(probe: &ProbeFinding, value: Option<f64>) -> String {
    match value.filter(|value| value.is_finite()) {
        None => MISSING.to_owned(),
        // Nanoseconds per second are a part of the time.
        Some(value) if probe.counter && probe.unit == "ns" => number::percent(value / 1e9),
        Some(value) if probe.counter => format!("{}/s", words::bare(&probe.unit, value)),
        Some(value) => words::bare(&probe.unit, value),
    }
}

/// Periods that appeared, went and stayed.
pub(super) fn against(finding: &FtqFinding) -> Vec<Block> {
    let Some((changes, stored)) = finding.against.as_ref().zip(finding.head.stored.as_ref()) else { return Vec::new() };
    let list = |periods: &[f64]| {
        let texts: Vec<String> = periods.iter().map(|period| tied(&number::seconds(*period))).collect();
        if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
    };
    let mut facts = vec![Fact::new("Appeared", list(&changes.appeared)), Fact::new("Went", list(&changes.went))];
    for kept in &changes.kept {
        let text = format!(
            "stalls of {}, stored {}; period stored {}",
            tied(&number::seconds(kept.stall_seconds)),
            tied(&number::seconds(kept.stored_stall_seconds)),
            tied(&number::seconds(kept.stored_period_seconds)),
        );
        facts.push(Fact::new(format!("Stayed: {}", number::seconds(kept.period_seconds)), text));
    }
    let caution = "a period that is too long for the shorter of the two has neither appeared nor gone";
    vec![stored::block("recording", stored, facts, caution, [])]
}
