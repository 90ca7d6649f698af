//! The jobs one by one: the I/O of each, and the cost of its own threads.

use super::{SHOWN, conditions};
use crate::document::{Audience, Block, Body, Cell, Column, Note, Table, Tone};
use crate::number::{self, BYTES, COUNT, CYCLES, Scale};
use model::finding::{CopiesApart, JobFinding, RunFinding};
use model::record::Verified;

/// One row for each job, and its first error.
pub fn block(finding: &RunFinding) -> Block {
    let jobs = &finding.merged_jobs;
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
        let mixed = conditions::is_mixed(finding, job);
        let of_one_rate = |text: String| if mixed { number::MISSING.to_owned() } else { text };
        // Of bytes that the user states, the I/Os are unknown.
        let counted = |text: String| if job.ios == 0 && job.bytes > 0 { number::MISSING.to_owned() } else { text };
        let errors = if job.errors == 0 { Tone::Plain } else { Tone::Bad };
        table.row(vec![
            name(job).into(),
            job.engine.as_str().into(),
            counted(number::count(job.ios)).into(),
            number::with_unit(BYTES, job.bytes as f64).into(),
            of_one_rate(counted(number::with_unit(COUNT, job.iops))).into(),
            of_one_rate(number::bytes_per_second(job.bytes_per_second)).into(),
            number::known_significant(job.ios_per_crossing).into(),
            own_cycles(scale, job).into(),
            Cell::new(errors, number::count(job.errors)),
        ]);
    }
    let mut notes = Vec::new();
    if let Some(job) = shown().find(|job| conditions::waited(finding, job)) {
        let own = number::seconds(job.wall_seconds);
        let text = format!(
            "rates over the time that {} reports for the job ({own}); those of the phase are over all of its time, waiting included",
            job.engine
        );
        notes.push(Note::new(Tone::Faint, text));
    }
    if shown().any(|job| conditions::is_mixed(finding, job)) {
        let text = "the rate stepped, so a rate or mean over all of it is not shown; see the regimes";
        notes.push(Note::new(Tone::Faint, text));
    }
    for job in shown() {
        let error = job.error.iter();
        notes.extend(error.map(|error| Note::new(Tone::Bad, format!("error  {}: {error}", job.name))));
        notes.extend(remarks(job).map(|remarks| Note::new(Tone::Faint, remarks)));
        notes.extend(job.copies_apart.map(|CopiesApart { slowest, slowest_iops, fastest, fastest_iops }| {
            let [slow, fast] = [slowest_iops, fastest_iops].map(|iops| number::with_unit(COUNT, iops));
            let text =
                format!("copy {slowest} is the slowest with {slow} IOPS, copy {fastest} the fastest with {fast} IOPS");
            Note::new(Tone::Faint, format!("{}: {text}", job.name))
        }));
    }
    if jobs.len() > SHOWN {
        notes.push(Note::new(Tone::Faint, format!("and {} more jobs: use --format json for all", jobs.len() - SHOWN)));
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

/// Blocks that were checked, and whether that is outside of what was measured.
fn verified_in_words(job: &JobFinding, verified: Verified) -> String {
    let wrong = if verified.wrong > 0 { format!(", of which {} are wrong", verified.wrong) } else { String::new() };
    let when = if job.read.ios == 0 { " after the measurement" } else { "" };
    format!("verified {} blocks{when}{wrong}", verified.ios)
}

/// Properties that most jobs do not have.
fn remarks(job: &JobFinding) -> Option<String> {
    let mut parts = Vec::new();
    if job.syncs > 0 {
        parts.push(format!("{} fsync or fdatasync calls", job.syncs));
    }
    parts.extend(job.verified.map(|verified| verified_in_words(job, verified)));
    if job.errors > 1 {
        parts.push(format!("{} errors", job.errors));
    }
    parts.extend(job.flushes.map(|flushes| format!("{flushes} flushes, which are not I/Os")));
    let short = job.read.short.saturating_add(job.write.short).saturating_add(job.trim.short);
    match job.read.lost.zip(job.write.lost) {
        Some((read, write)) if read.saturating_add(write) > 0 => {
            parts.push(format!("{} packets were lost", read.saturating_add(write)));
        }
        Some(_) => {}
        None => parts.push("packets lost: unavailable".to_owned()),
    }
    if short > 0 {
        parts.push(format!("{short} short I/Os"));
    }
    parts.extend(job.injected_ns.map(|injected| format!("inject_ns={} {}", injected.asked, injected.in_words())));
    (!parts.is_empty()).then(|| format!("{}: {}", job.name, parts.join(", ")))
}
