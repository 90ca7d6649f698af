//! The tables of a recording: periods and what moves with them, stalls, noise, probes, and what changed.

use super::{remark, words};
use crate::document::{Audience, Block, Body, Cell, Column, Fact, Table, Tone};
use crate::number::{self, MISSING};
use crate::phrase::{self, tied};
use model::ftq::FtqFinding;
use model::ftq::finding::{Label, Periodic, ProbeFinding};

/// Stalls shown on a terminal; a page shows all that the finding has.
const FEW_STALLS: usize = 6;
/// Probes shown for each period on a page.
const LABELS: usize = 6;

/// The periods, the longest stall first, and on a page which probes move with each.
pub(super) fn periods(finding: &FtqFinding) -> Vec<Block> {
    let mut table = Table::new(vec![
        Column::number("period"),
        Column::number("stall"),
        Column::number("depth"),
        Column::number("seen"),
        Column::number("false alarm"),
        Column::text("moves with it"),
        Column::number("× chance"),
    ]);
    for period in &finding.periodic {
        let (probe, times) = labelled(&period.labels);
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
    let notes = vec![remark(
        "Depth: the part of the amount that is lost while the stall lasts. × chance: how many times more often the probe moves \
         with the stalls than with as long times elsewhere.",
    )];
    let notes = if table.rows.is_empty() { Vec::new() } else { notes };
    let mut blocks = vec![Block::new("Periods", Body::Table(table)).with(notes)];
    for period in finding.periodic.iter().filter(|period| !period.labels.is_empty()) {
        let title = format!("What moves with the period of {}", number::seconds(period.period_seconds));
        blocks.push(Block::new(title, Body::Table(labels(&period.labels))).of(Audience::PAGE));
    }
    blocks
}

fn labels(labels: &[Label]) -> Table {
    let mut table = Table::new(vec![
        Column::text("probe"),
        Column::number("during stalls"),
        Column::number("elsewhere"),
        Column::number("× chance"),
        Column::number("false alarm"),
        Column::text("what it does"),
    ]);
    for label in labels.iter().take(LABELS) {
        table.row(vec![
            Cell::from(words::label(&label.probe, &label.unit)),
            Cell::from(words::bare(&label.unit, label.during)),
            Cell::from(words::bare(&label.unit, label.elsewhere)),
            Cell::from(words::times(label.times_chance)),
            Cell::from(words::probability(label.false_alarm)),
            Cell::new(Tone::Faint, label.words.clone()),
        ]);
    }
    table
}

/// The probe that moves most, and how much more often than chance. A dash if none does.
fn labelled(labels: &[Label]) -> (Cell, Cell) {
    match labels.first() {
        Some(label) => (Cell::from(label.probe.clone()), Cell::from(words::times(label.times_chance))),
        None => (Cell::new(Tone::Faint, MISSING), Cell::new(Tone::Faint, MISSING)),
    }
}

/// The threads of a process, the longest standstill first.
pub(super) fn threads(finding: &FtqFinding) -> Vec<Block> {
    let table = |most: usize| {
        let mut table = Table::new(vec![
            Column::rows("thread"),
            Column::number("rate"),
            Column::number("standstill"),
            Column::number("at"),
            Column::number("period"),
            Column::number("stall"),
        ]);
        for thread in finding.threads.iter().take(most) {
            let of_period = |of: fn(&Periodic) -> f64| {
                thread.periodic.first().map_or_else(|| MISSING.to_owned(), |period| number::seconds(of(period)))
            };
            table.row(vec![
                Cell::from(thread.name.clone()),
                Cell::from(words::rate(finding, thread.bytes / thread.seconds)),
                Cell::from(number::seconds(thread.standstill_seconds)),
                Cell::from(words::moment(thread.at_seconds)),
                Cell::from(of_period(|period| period.period_seconds)),
                Cell::from(of_period(|period| period.stall_seconds)),
            ]);
        }
        table
    };
    let block = |most: usize, audience| {
        let others = finding.threads.len().saturating_sub(most);
        let note = remark(format!("{others} more threads have shorter standstills."));
        let notes = if others > 0 { vec![note] } else { Vec::new() };
        Block::new("Threads", Body::Table(table(most))).with(notes).of(audience)
    };
    vec![block(FEW_STALLS, Audience::SCREEN.or(Audience::POST)), block(usize::MAX, Audience::PAGE)]
}

/// Stalls that belong to no period, longest first.
pub(super) fn stalls(finding: &FtqFinding) -> Vec<Block> {
    let table = |most: usize| {
        let mut table = Table::new(vec![
            Column::number("at"),
            Column::number("lasted"),
            Column::number("lost"),
            Column::text("moves with it"),
            Column::number("× chance"),
        ]);
        for stall in finding.stalls.iter().take(most) {
            let (probe, times) = labelled(&stall.labels);
            table.row(vec![
                Cell::from(words::moment(stall.at_seconds)),
                Cell::from(number::seconds(stall.seconds)),
                Cell::from(number::seconds(stall.lost_seconds)),
                probe,
                times,
            ]);
        }
        table
    };
    let block = |most: usize, audience| {
        let shown = finding.stalls.len().min(most) as u64;
        let others = finding.stall_count.saturating_sub(shown);
        let note = format!("The longest of {}.", words::whole(finding.stall_count));
        let notes = if shown > 0 && others > 0 { vec![remark(note)] } else { Vec::new() };
        Block::new("Stalls that no period explains", Body::Table(table(most))).with(notes).of(audience)
    };
    vec![block(FEW_STALLS, Audience::SCREEN.or(Audience::POST)), block(usize::MAX, Audience::PAGE)]
}

/// The line that users of osnoise know, and how often each cause interrupted.
pub(super) fn noise(finding: &FtqFinding) -> Vec<Block> {
    let noise = &finding.noise;
    if finding.readings < 2 {
        return Vec::new();
    }
    let mut table = Table::new(vec![
        Column::number("runtime"),
        Column::number("noise"),
        Column::number("available"),
        Column::number("max single"),
        Column::number("undisturbed"),
    ]);
    table.row(vec![
        Cell::from(number::seconds(finding.seconds)),
        Cell::from(noise.lost_seconds.map_or_else(|| MISSING.to_owned(), number::seconds)),
        Cell::new(Tone::Strong, noise.available_fraction.map_or_else(|| MISSING.to_owned(), words::available)),
        Cell::from(noise.longest_stall_seconds.map_or_else(|| MISSING.to_owned(), number::seconds)),
        Cell::from(words::value(&finding.unit, noise.undisturbed_per_quantum)),
    ]);
    let about = remark(
        "Noise: time that the worker lost against its own undisturbed quantum, the 95th percentile of all. Columns as osnoise has \
         them.",
    );
    let mut causes =
        Table::new(vec![Column::rows("cause"), Column::number("count"), Column::number("per second").spare(1)]);
    for cause in &noise.by_cause {
        causes.row(vec![
            Cell::from(words::label(&cause.probe, &cause.unit)),
            Cell::from(words::bare(&cause.unit, cause.count)),
            Cell::from(words::bare(&cause.unit, cause.count / finding.seconds)),
        ]);
    }
    vec![
        Block::new("Noise", Body::Table(table)).with(vec![about]),
        Block::new("Interruptions by cause", Body::Table(causes)),
    ]
}

/// The probes over the whole recording.
pub(super) fn probes(finding: &FtqFinding) -> Vec<Block> {
    let mut table = Table::new(vec![
        Column::rows("probe"),
        Column::number("mean"),
        Column::number("least"),
        Column::number("greatest"),
        Column::text("reads").spare(1),
    ]);
    for probe in &finding.probes {
        if probe.mean.is_none() {
            table.note(Cell::from(words::label(&probe.name, &probe.unit)), format!("{MISSING} never read"));
            continue;
        }
        // The kernel adds a wait when it ends, so of a time the least and the greatest are waits, not parts of a quantum.
        let is_time = probe.counter && probe.unit == "ns";
        let value = |value: Option<f64>| {
            Cell::from(if is_time { number::known(number::NANOS, value) } else { level(probe, value) })
        };
        let meaning = match probe.lost_at_seconds {
            Some(lost) => Cell::new(Tone::Notice, format!("could not be read after {}", words::moment(lost))),
            None => Cell::new(Tone::Faint, probe.meaning.clone()),
        };
        table.row(vec![
            Cell::from(words::label(&probe.name, &probe.unit)),
            Cell::from(level(probe, probe.mean)),
            value(probe.least),
            value(probe.greatest),
            meaning,
        ]);
    }
    let note = remark("Times of the worker are means of its threads.");
    let notes = if finding.threads.is_empty() { Vec::new() } else { vec![note] };
    vec![Block::new("Probes", Body::Table(table)).with(notes)]
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
    let Some(changes) = &finding.against else { return Vec::new() };
    let list = |periods: &[f64]| {
        let texts: Vec<String> = periods.iter().map(|period| tied(&number::seconds(*period))).collect();
        if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
    };
    let time = phrase::time(changes.started_unix_seconds).map(|time| tied(&time));
    let mut facts = vec![
        Fact::new("Stored", [Some(changes.stored.clone()), time].into_iter().flatten().collect::<Vec<_>>().join(", ")),
        Fact::new("Appeared", list(&changes.appeared)),
        Fact::new("Went", list(&changes.went)),
    ];
    for kept in &changes.kept {
        let text = format!(
            "stalls of {}, stored {}; period stored {}",
            tied(&number::seconds(kept.stall_seconds)),
            tied(&number::seconds(kept.stored_stall_seconds)),
            tied(&number::seconds(kept.stored_period_seconds)),
        );
        facts.push(Fact::new(format!("Stayed: {}", number::seconds(kept.period_seconds)), text));
    }
    let differs = match changes.differs.as_slice() {
        [] => "no known difference between the machines then and now".to_owned(),
        differs => format!("then → now: {}", differs.join("; ")),
    };
    vec![Block::new("Against the stored recording", Body::Facts(facts)).with(vec![remark(differs)])]
}
