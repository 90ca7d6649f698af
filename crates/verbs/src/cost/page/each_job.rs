//! The jobs one by one: the I/O of each, and the cost of its own threads.

use super::SHOWN;
use super::conditions;
use model::finding::{CopiesApart, JobFinding, LatencyFinding, RunFinding, StagesFinding};
use model::plan::JobPlan;
use model::record::Verified;
use report::document::{Audience, Block, Body, Cell, Column, Note, Table, Tone, tied};
use report::number::{self, BYTES, COUNT, CYCLES, MISSING, NANOS, Scale};

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
        let counted =
            |text: String| if job.all.ios == 0 && job.all.bytes > 0 { number::MISSING.to_owned() } else { text };
        let errors = if job.errors == 0 { Tone::Plain } else { Tone::Bad };
        table.row(vec![
            name(job).into(),
            job.engine.as_str().into(),
            counted(number::count(job.all.ios)).into(),
            number::with_unit(BYTES, job.all.bytes as f64).into(),
            of_one_rate(counted(number::with_unit(COUNT, job.all.iops))).into(),
            of_one_rate(number::bytes_per_second(job.all.bytes_per_second)).into(),
            job.ios_per_crossing.map_or_else(|| MISSING.to_owned(), number::significant).into(),
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
        notes.push(Note::remark(text));
    }
    if shown().any(|job| conditions::is_mixed(finding, job)) {
        let text = "the rate stepped, so a rate or mean over all of it is not shown; see the regimes";
        notes.push(Note::remark(text));
    }
    for job in shown() {
        let error = job.error.iter();
        notes.extend(error.map(|error| Note::new(Tone::Bad, format!("error  {}: {error}", job.name))));
        notes.extend(remarks(job).map(Note::remark));
        notes.extend(job.copies_apart.map(|CopiesApart { slowest, slowest_iops, fastest, fastest_iops }| {
            let [slow, fast] = [slowest_iops, fastest_iops].map(|iops| number::with_unit(COUNT, iops));
            let text =
                format!("copy {slowest} is the slowest with {slow} IOPS, copy {fastest} the fastest with {fast} IOPS");
            Note::remark(format!("{}: {text}", job.name))
        }));
    }
    if jobs.len() > SHOWN {
        notes.push(Note::remark(format!("and {} more jobs: use --format json for all", jobs.len() - SHOWN)));
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
    match job.all.lost {
        Some(0) => {}
        Some(lost) => parts.push(format!("{lost} packets were lost")),
        None => parts.push("packets lost: unavailable".to_owned()),
    }
    if job.all.short > 0 {
        parts.push(format!("{} short I/Os", job.all.short));
    }
    parts.extend(job.injected_ns.map(|injected| format!("inject_ns={} {}", injected.asked, injected.in_words())));
    (!parts.is_empty()).then(|| format!("{}: {}", job.name, parts.join(", ")))
}

/// Percentiles with a column, in percent.
const COLUMNS: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// One row for each job and direction.
pub fn latencies(finding: &RunFinding) -> Block {
    let jobs = &finding.merged_jobs;
    let mut table = Table::new(vec![
        Column::rows("direction"),
        Column::number("I/Os").spare(0),
        Column::number("mean").spare(3),
        Column::number("p50"),
        Column::number("p90").spare(1),
        Column::number("p99"),
        Column::number("p99.9").spare(4),
        Column::number("p99.99").spare(2),
        Column::number("max"),
    ]);
    let mut notes = Vec::new();
    for job in jobs.iter().take(SHOWN) {
        let mixed = conditions::is_mixed(finding, job);
        for (direction, ios, latency) in rows(job) {
            let label = if jobs.len() > 1 { format!("{} {direction}", job.name) } else { direction.to_owned() };
            table.row(cells(label, &number::count(ios), latency, mixed));
        }
        // The rows of stages have no count of their own.
        for (stage, latency) in job.stages_ns.iter().flat_map(StagesFinding::named) {
            table.sub_row(cells(stage.to_owned(), "", latency, mixed));
        }
        let name = if jobs.len() > 1 { format!("{}: ", job.name) } else { String::new() };
        notes.extend(asked_for(job).map(|text| Note::new(Tone::Plain, name + &text)));
    }
    if jobs.iter().take(SHOWN).any(|job| conditions::is_mixed(finding, job)) {
        notes.push(Note::remark("the rate stepped: percentiles are of all I/Os of all regimes"));
    }
    notes.extend(exactness(jobs).map(Note::remark));
    Block::new("Latency", Body::Table(table)).with(notes)
}

/// The directions of a job that did I/Os, each with their number.
pub(super) fn rows(job: &JobFinding) -> Vec<(&'static str, u64, &LatencyFinding)> {
    let directions = [("read", &job.read), ("write", &job.write), ("trim", &job.trim)];
    let done = directions.into_iter().filter(|(_, direction)| direction.ios > 0);
    let rows: Vec<_> = done.map(|(name, direction)| (name, direction.ios, &direction.latency_ns)).collect();
    // A foreign program may report its I/Os without their direction.
    if rows.is_empty() && job.all.ios > 0 { vec![("all", job.all.ios, &job.all.latency_ns)] } else { rows }
}

/// If the rate stepped (`mixed`), the mean describes no part of the job; a percentile is still one of its I/Os.
fn cells(label: String, ios: &str, latency: &LatencyFinding, mixed: bool) -> Vec<Cell> {
    let LatencyFinding { mean, p50, p90, p99, p999, p9999, max, .. } = latency;
    let mean = if mixed { &None } else { mean };
    let mut cells = vec![label.into(), ios.into()];
    cells.extend([mean, p50, p90, p99, p999, p9999, max].map(|value| Cell::from(number::known(NANOS, *value))));
    cells
}

/// Requested percentiles without a column. fio's default list was not requested.
fn asked_for(job: &JobFinding) -> Option<String> {
    let asked = &job.all.latency_ns.percentiles;
    if asked.iter().map(|(percent, _)| *percent).eq(JobPlan::default().reporting.percentiles) {
        return None;
    }
    let others = asked.iter().filter(|(percent, _)| !COLUMNS.contains(percent));
    let others = others.map(|(percent, value)| tied(&format!("p{percent} {}", number::known(NANOS, *value))));
    let others = others.collect::<Vec<_>>();
    (!others.is_empty()).then(|| others.join(", "))
}

/// The maximum error of percentiles, over all jobs.
fn exactness(jobs: &[JobFinding]) -> Option<String> {
    let worst =
        |of: fn(&LatencyFinding) -> Option<f64>| jobs.iter().filter_map(|job| of(&job.all.latency_ns)).reduce(f64::max);
    let mut parts = Vec::new();
    if let Some(fraction) = worst(|latency| latency.bucket_error_fraction) {
        parts.push(format!("percentile error at most {}", tied(&number::percent(fraction))));
    }
    if let Some(mean) = worst(|latency| latency.stamp_error_mean) {
        let largest = number::known(NANOS, worst(|latency| latency.stamp_error_max));
        let mean = number::with_unit(NANOS, mean);
        parts.push(format!(
            "timestamps shared by a batch of I/Os are off by up to {} on average, at most {}",
            tied(&mean),
            tied(&largest)
        ));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::page::fixture;
    use report::Ink;
    use report::document::{Document, Section};
    use report::text::terminal;

    fn shown(jobs: &[JobFinding]) -> String {
        let finding = RunFinding { merged_jobs: jobs.to_vec(), ..fixture::named("psync_4k") };
        let sections = vec![Section::new("", vec![latencies(&finding)])];
        terminal(&Document { sections, ..Document::default() }, Ink::Plain, 100)
    }

    #[test]
    fn percentiles_without_a_column_are_named() {
        let text = shown(&fixture::named("psync_4k").merged_jobs);
        assert!(text.contains("p95 5.11 µs") && !text.contains("p50 3.12"), "{text}");
    }

    #[test]
    fn the_error_of_shared_timestamps_is_reported() {
        let mut jobs = fixture::named("two_phases").merged_jobs;
        for (job, mean) in jobs.iter_mut().zip([120.0, 80.0]) {
            job.all.latency_ns.stamp_error_mean = Some(mean);
            job.all.latency_ns.stamp_error_max = Some(mean * 10.0);
        }
        let text = shown(&jobs);
        assert!(text.contains("timestamps shared by a batch of I/Os are off by up to 120 ns on"), "{text}");
    }

    #[test]
    fn stages_stand_below_the_directions() {
        let mut jobs = fixture::named("psync_4k").merged_jobs;
        let latency = |mean| LatencyFinding { mean: Some(mean), ..LatencyFinding::default() };
        let stages = StagesFinding {
            backlog_wait: latency(1e3),
            sending: None,
            round_trip: latency(2e3),
            delivery: latency(4e3),
        };
        jobs.iter_mut().for_each(|job| job.stages_ns = Some(stages.clone()));
        let text = shown(&jobs);
        let lines: Vec<&str> = text.lines().skip_while(|line| !line.contains("read")).take(4).collect();
        for (line, (name, mean)) in
            lines.iter().skip(1).zip([("backlog wait", "1.00"), ("round trip", "2.00"), ("delivery", "4.00")])
        {
            assert!(line.trim_start().starts_with(name) && line.contains(mean), "{text}");
        }
    }

    #[test]
    fn i_os_of_unknown_direction_have_a_row() {
        let mut jobs = fixture::named("psync_4k").merged_jobs;
        jobs.iter_mut().for_each(|job| job.read.ios = 0);
        assert!(shown(&jobs).contains("\n  all "));
    }
}
