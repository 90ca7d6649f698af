//! Latencies of each job and direction, and their precision.

use super::{SHOWN, conditions};
use crate::document::{Block, Body, Cell, Column, Note, Table, Tone};
use crate::number::{self, NANOS};
use crate::phrase::tied;
use model::finding::{JobFinding, LatencyFinding, RunFinding, StagesFinding};
use model::plan::JobPlan;

/// Percentiles with a column, in percent.
const COLUMNS: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// One row for each job and direction.
pub fn block(finding: &RunFinding) -> Block {
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
        notes.push(Note::new(Tone::Faint, "the rate stepped: percentiles are of all I/Os of all regimes"));
    }
    notes.extend(exactness(jobs).map(|text| Note::new(Tone::Faint, text)));
    Block::new("Latency", Body::Table(table)).with(notes)
}

/// The directions of a job that did I/Os, each with their number.
pub(super) fn rows(job: &JobFinding) -> Vec<(&'static str, u64, &LatencyFinding)> {
    let directions = [("read", &job.read), ("write", &job.write), ("trim", &job.trim)];
    let done = directions.into_iter().filter(|(_, direction)| direction.ios > 0);
    let rows: Vec<_> = done.map(|(name, direction)| (name, direction.ios, &direction.latency_ns)).collect();
    // A foreign program may report its I/Os without their direction.
    if rows.is_empty() && job.ios > 0 { vec![("all", job.ios, &job.latency_ns)] } else { rows }
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
    let asked = &job.latency_ns.percentiles;
    if asked.iter().map(|(percent, _)| *percent).eq(JobPlan::default().percentiles) {
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
        |of: fn(&LatencyFinding) -> Option<f64>| jobs.iter().filter_map(|job| of(&job.latency_ns)).reduce(f64::max);
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
    use crate::Ink;
    use crate::cost::fixture;
    use crate::document::{Document, Section};
    use crate::terminal::terminal;

    fn shown(jobs: &[JobFinding]) -> String {
        let finding = RunFinding { merged_jobs: jobs.to_vec(), ..fixture::psync_4k() };
        let sections = vec![Section::new("", vec![block(&finding)])];
        terminal(&Document { sections, ..Document::default() }, Ink::Plain, 100)
    }

    #[test]
    fn percentiles_without_a_column_are_named() {
        let text = shown(&fixture::psync_4k().merged_jobs);
        assert!(text.contains("p95 5.11 µs") && !text.contains("p50 3.12"), "{text}");
    }

    #[test]
    fn the_error_of_shared_timestamps_is_reported() {
        let mut jobs = fixture::two_phases().merged_jobs;
        for (job, mean) in jobs.iter_mut().zip([120.0, 80.0]) {
            job.latency_ns.stamp_error_mean = Some(mean);
            job.latency_ns.stamp_error_max = Some(mean * 10.0);
        }
        let text = shown(&jobs);
        assert!(text.contains("timestamps shared by a batch of I/Os are off by up to 120 ns on"), "{text}");
    }

    #[test]
    fn stages_stand_below_the_directions() {
        let mut jobs = fixture::psync_4k().merged_jobs;
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
        let mut jobs = fixture::psync_4k().merged_jobs;
        jobs.iter_mut().for_each(|job| job.read.ios = 0);
        assert!(shown(&jobs).contains("\n  all "));
    }
}
