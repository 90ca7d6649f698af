//! The study of arbitrary records ends without a panic.

use super::explaining::{explained, planted};
use super::*;
use crate::compare::record::CaseLatency;
use crate::hostile::{Vandal, changes};
use model::histogram::Histogram;
use model::limit::{Limit, judge};
use model::record::{Direction, Execution, IoInterval, JobRecord, Latency};

fn any_load(round: usize, case: usize) -> Load {
    Load { nanos_per_io: 1000 + wobble(round, case), ios: 1000 }
}

/// Includes latencies, so that percentiles are compared.
fn slices() -> CompareRecord {
    let mut record = record(experiment(Draft::default()), 12, any_load);
    for round in &mut record.rounds {
        let latency = |case| {
            let mut ticks = Histogram::new();
            (1..5).for_each(|place| ticks.record(1000 * place, 300));
            CaseLatency { case, ticks, injected_ns: None }
        };
        round.latencies = [0, 1].map(latency).to_vec();
    }
    record
}

fn sweep() -> CompareRecord {
    let axis = axis("bs", &["4k", "16k", "64k"]);
    record(experiment(Draft { axes: vec![axis], against_itself: true, ..Draft::default() }), 11, any_load)
}

/// The slices as whole executions of a program that reports its I/O.
fn executions() -> CompareRecord {
    let mut record = record(experiment(Draft::default()), 11, any_load);
    record.header.schedule = Schedule::Executions;
    execute(&mut record.rounds, |ends, work| {
        let percentiles = [50.0, 99.0, 99.9].map(|percent| (percent, Nanos(900))).to_vec();
        let latency = Latency::Reported { mean_nanos: 500.0, max_nanos: Nanos(1000), percentiles };
        let read = Direction { ios: work.ios, bytes: work.bytes, short: 0, latency };
        let io_interval = IoInterval { begin_nanos: ends[0].at_nanos, end_nanos: ends[1].at_nanos };
        Execution {
            jobs: vec![JobRecord { read, ..JobRecord::default() }, JobRecord::default()],
            stretch: window(ends),
            io_interval: Some(io_interval),
            command_cpu_nanos: Some(work.thread_nanos),
            ..Execution::default()
        }
    });
    record
}

/// Most changed records must still be valid; all of those are studied, with limits that are changed too.
fn studied(record: &CompareRecord) -> u64 {
    let limits = ["cycles_per_io > +1%", "iops < -1%"].map(|limit| Limit::parse(limit, &Metric::quantities()).unwrap());
    let vandal = Vandal::new(&(record, limits));
    let mut studied = 0;
    for seed in 0..changes() {
        let changed = serde_json::from_value::<(CompareRecord, Vec<Limit>)>(vandal.changed(seed));
        let Ok((changed, limits)) = changed else { continue };
        judge(&limits, |metric| changed.at_places(&changed.study(None), None, metric));
        let mut progress = Progress::new(&changed.header);
        changed.rounds.iter().for_each(|round| progress.add(round));
        progress.standing();
        studied += 1;
    }
    studied
}

#[test]
fn changed_records_are_studied_or_refused() {
    let explained = explained(Draft::default(), 1, 11, planted);
    let records = [("slices", slices()), ("sweep", sweep()), ("executions", executions()), ("explained", explained)];
    for (kind, record) in records {
        assert!(study(&record).cells[0].metrics["iops"].change.is_some(), "{kind}");
        let studied = studied(&record);
        assert!((changes() / 4..changes()).contains(&studied), "{kind}: {studied}");
    }
}

/// Every counter at its maximum, in every round.
#[test]
fn sums_beyond_64_bits_do_not_panic() {
    const MOST: u64 = u64::MAX;
    let full = format!("{{\"buckets\":[[5,{MOST}]],\"sum\":{MOST},\"max\":5}}");
    let full: Histogram = serde_json::from_str(&full).unwrap();
    let most = |direction: &mut Direction| (direction.ios, direction.bytes) = (MOST, Bytes(MOST));
    for mut record in [slices(), executions()] {
        // Every third round has too few I/Os for a percentile, so that rounds are merged.
        let joined = record.rounds.iter_mut().enumerate().filter(|(number, _)| number % 3 != 2);
        for latency in joined.flat_map(|(_, round)| &mut round.latencies) {
            latency.ticks = full.clone();
        }
        for slice in record.rounds.iter_mut().flat_map(|round| &mut round.slices) {
            match &mut slice.reading {
                SliceReading::Slice { work, .. } => (work.ios, work.bytes) = (MOST, Bytes(MOST)),
                SliceReading::Command { last, .. } => last.count = Some(MOST),
                SliceReading::Execution(execution) => {
                    for job in &mut execution.jobs {
                        [&mut job.read, &mut job.write, &mut job.trim].into_iter().for_each(most);
                    }
                }
            }
        }
        let found = study(&record);
        assert!(found.cells[0].metrics["iops"].change.is_some());
    }
}
