//! The tables of a recording: periods and what moves with them, stalls, noise, probes, and what changed.

use super::words;
use crate::document::{Audience, Block, Body, Cell, Column, Fact, Note, Table, Tone};
use crate::number::{self, MISSING, NANOS};
use crate::phrase::{self, tied};
use crate::probes;
use model::ftq::FtqFinding;
use model::ftq::finding::{Label, Periodic, ProbeFinding, Stall, ThreadFinding};

/// Rows shown on a terminal of a table that may be long; a page shows all that the finding has.
const FEW: usize = 6;
/// Probes shown for each period on a page.
const LABELS: usize = 6;
/// The periods, the longest stall first, and on a page which probes move with each.
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
    let mut blocks = vec![Block::new("Periods", Body::Table(table)).with(notes)];
    for period in finding.periodic.iter().filter(|period| !period.labels.is_empty()) {
        let title = format!("What moves with the period of {}", number::seconds(period.period_seconds));
        blocks.push(Block::new(title, Body::Table(labels(&period.labels))).of(Audience::PAGE));
    }
    blocks
}

fn labels(labels: &[Label]) -> Table {
    let mut columns = ["during stalls", "elsewhere", "× chance", "false alarm"].map(Column::number).to_vec();
    columns.insert(0, Column::text("probe"));
    columns.push(Column::text("what it does"));
    let mut table = Table::new(columns);
    for label in labels.iter().take(LABELS) {
        let texts = [
            probes::label(&label.probe, &label.unit),
            words::bare(&label.unit, label.during),
            words::bare(&label.unit, label.elsewhere),
            words::times(label.times_chance),
            words::probability(label.false_alarm),
        ];
        table.row(texts.map(Cell::from).into_iter().chain([Cell::new(Tone::Faint, label.words.clone())]).collect());
    }
    table
}

/// The probe that moves most, and how much more often than chance. A dash if none does.
fn labelled(labels: &[Label]) -> [Cell; 2] {
    let missing = || [MISSING; 2].map(|missing| Cell::new(Tone::Faint, missing));
    labels.first().map_or_else(missing, |label| [label.probe.clone(), words::times(label.times_chance)].map(Cell::from))
}

/// Two blocks of one table: a terminal shows its first rows, a page shows all rows. `note` takes the number of rows that a block shows.
fn few_and_all(
    title: &str,
    columns: &[Column],
    rows: &[Vec<Cell>],
    note: impl Fn(usize) -> Option<String>,
) -> Vec<Block> {
    let block = |most: usize, audience| {
        let mut table = Table::new(columns.to_vec());
        rows.iter().take(most).for_each(|row| table.row(row.clone()));
        let notes = note(table.rows.len()).map(Note::remark).into_iter().collect();
        Block::new(title, Body::Table(table)).with(notes).of(audience)
    };
    vec![block(FEW, Audience::SCREEN.or(Audience::POST)), block(usize::MAX, Audience::PAGE)]
}

/// The threads of a process, the longest standstill first.
pub(super) fn threads(finding: &FtqFinding) -> Vec<Block> {
    let mut columns = vec![Column::rows("thread")];
    columns.extend(["rate", "standstill", "at", "period", "stall"].map(Column::number));
    let row = |thread: &ThreadFinding| {
        let of_period = |of: fn(&Periodic) -> f64| seconds(thread.periodic.first().map(of));
        let texts = [
            thread.name.clone(),
            words::rate(finding, thread.bytes / thread.seconds),
            number::seconds(thread.standstill_seconds),
            words::moment(thread.at_seconds),
            of_period(|period| period.period_seconds),
            of_period(|period| period.stall_seconds),
        ];
        texts.map(Cell::from).to_vec()
    };
    let rows: Vec<Vec<Cell>> = finding.threads.iter().map(row).collect();
    few_and_all("Threads", &columns, &rows, |shown| {
        let others = rows.len() - shown;
        (others > 0).then(|| format!("{others} more threads have shorter standstills."))
    })
}

/// Stalls that belong to no period, longest first.
pub(super) fn stalls(finding: &FtqFinding) -> Vec<Block> {
    let mut columns = ["at", "lasted", "lost"].map(Column::number).to_vec();
    columns.extend([Column::text("moves with it"), Column::number("× chance")]);
    let row = |stall: &Stall| {
        let (lasted, lost) = (number::seconds(stall.seconds), number::seconds(stall.lost_seconds));
        let times = [words::moment(stall.at_seconds), lasted, lost].map(Cell::from);
        times.into_iter().chain(labelled(&stall.labels)).collect()
    };
    let rows: Vec<Vec<Cell>> = finding.stalls.iter().map(row).collect();
    few_and_all("Stalls that no period explains", &columns, &rows, |shown| {
        let more = shown > 0 && finding.stall_count > shown as u64;
        more.then(|| format!("The longest of {}.", words::whole(finding.stall_count)))
    })
}

fn seconds(value: Option<f64>) -> String {
    value.map_or_else(|| MISSING.to_owned(), number::seconds)
}

/// The line that users of osnoise know, and how often each cause interrupted.
pub(super) fn noise(finding: &FtqFinding) -> Vec<Block> {
    let noise = &finding.noise;
    if finding.readings < 2 {
        return Vec::new();
    }
    let columns = ["runtime", "noise", "available", "max single", "undisturbed"];
    let mut table = Table::new(columns.map(Column::number).to_vec());
    table.row(vec![
        Cell::from(number::seconds(finding.seconds)),
        Cell::from(seconds(noise.lost_seconds)),
        Cell::new(Tone::Strong, noise.available_fraction.map_or_else(|| MISSING.to_owned(), words::available)),
        Cell::from(seconds(noise.longest_stall_seconds)),
        Cell::from(words::value(&finding.unit, noise.undisturbed_per_quantum)),
    ]);
    let about = Note::remark(
        "Noise: time that the worker lost against its own undisturbed quantum, the 95th percentile of all. Columns as osnoise has \
         them.",
    );
    let mut causes =
        Table::new(vec![Column::rows("cause"), Column::number("count"), Column::number("per second").spare(1)]);
    for cause in &noise.by_cause {
        let bare = |count| words::bare(&cause.unit, count);
        let name = probes::label(&cause.probe, &cause.unit);
        causes.row([name, bare(cause.count), bare(cause.count / finding.seconds)].map(Cell::from).to_vec());
    }
    vec![
        Block::new("Noise", Body::Table(table)).with(vec![about]),
        Block::new("Interruptions by cause", Body::Table(causes)),
    ]
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
    let note = Note::remark("Times of the worker are means of its threads.");
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
    let Some((changes, stored)) = finding.against.as_ref().zip(finding.head.stored.as_ref()) else { return Vec::new() };
    let list = |periods: &[f64]| {
        let texts: Vec<String> = periods.iter().map(|period| tied(&number::seconds(*period))).collect();
        if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
    };
    let time = phrase::time(stored.started_unix_seconds).map(|time| tied(&time));
    let mut facts = vec![
        Fact::new("Stored", [Some(stored.from.clone()), time].into_iter().flatten().collect::<Vec<_>>().join(", ")),
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
    let differs = match stored.differs.as_slice() {
        [] => "no known difference between the machines then and now".to_owned(),
        differs => format!("then → now: {}", differs.join("; ")),
    };
    vec![Block::new("Against the stored recording", Body::Facts(facts)).with(vec![Note::remark(differs)])]
}
