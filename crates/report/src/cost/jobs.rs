//! The jobs one by one: what each did and what its own threads used.

use super::SHOWN;
use crate::document::{Audience, Block, Body, Cell, Column, Note, Table, Tone};
use crate::number::{self, BYTES, COUNT, CYCLES, Scale};
use model::finding::JobFinding;

/// A line per job, and the first error of each.
pub fn block(jobs: &[JobFinding]) -> Block {
    let shown = || jobs.iter().take(SHOWN);
    let scale = shown().filter_map(|job| job.thread_cycles_per_io).reduce(f64::max);
    let scale = scale.map(|largest| Scale::of(CYCLES, largest));
    let mut table = Table::new(vec![
        Column::rows("job"),
        Column::text("engine").spare(1),
        Column::number("I/Os"),
        Column::number("data").spare(0),
        Column::number("IOPS"),
        Column::number("bandwidth").spare(4),
        Column::number("I/Os/syscall").spare(2),
        Column::number(format!("own {}/IO", scale.map_or("cycles", |scale| scale.unit))).spare(3),
        Column::number("errors").spare(5),
    ]);
    for job in shown() {
        let errors = if job.errors == 0 { Tone::Plain } else { Tone::Bad };
        table.row(vec![
            name(job).into(),
            job.engine.as_str().into(),
            number::count(job.ios).into(),
            number::with_unit(BYTES, job.bytes as f64).into(),
            number::with_unit(COUNT, job.iops).into(),
            number::bytes_per_second(job.bytes_per_second).into(),
            number::known_significant(job.ios_per_crossing).into(),
            own_cycles(scale, job).into(),
            Cell::new(errors, number::count(job.errors)),
        ]);
    }
    let mut notes = Vec::new();
    for job in shown() {
        let error = job.error.iter();
        notes.extend(error.map(|error| Note::new(Tone::Bad, format!("error  {}: {error}", job.name))));
        notes.extend(remarks(job).map(|remarks| Note::new(Tone::Faint, remarks)));
    }
    if jobs.len() > SHOWN {
        let hidden =
            format!("and {} jobs more: --format json has them all, group_reporting merges them", jobs.len() - SHOWN);
        notes.push(Note::new(Tone::Faint, hidden));
    }
    Block::new("Jobs", Body::Table(table)).with(notes).of(Audience::SCREEN.or(Audience::PAGE))
}

fn name(job: &JobFinding) -> String {
    let copies = if job.copies > 1 { format!(" ×{}", job.copies) } else { String::new() };
    format!("{}{copies}", job.name)
}

fn own_cycles(scale: Option<Scale>, job: &JobFinding) -> String {
    match (scale, job.thread_cycles_per_io) {
        (Some(scale), Some(cycles)) => scale.cell(cycles),
        _ => number::MISSING.to_owned(),
    }
}

/// What most jobs do not have.
fn remarks(job: &JobFinding) -> Option<String> {
    let mut parts = Vec::new();
    if job.syncs > 0 {
        parts.push(format!("{} fsync or fdatasync calls", job.syncs));
    }
    let short = job.read.short.saturating_add(job.write.short).saturating_add(job.trim.short);
    if short > 0 {
        parts.push(format!("{short} I/Os moved less than was asked for"));
    }
    parts.extend(job.injected_ns.map(|injected| format!("inject_ns={} {}", injected.asked, injected.in_words())));
    (!parts.is_empty()).then(|| format!("{}: {}", job.name, parts.join(", ")))
}
