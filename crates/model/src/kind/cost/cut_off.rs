//! The record of a measurement that was killed: the executions that had ended, and the windows of the one that ran.

use super::{Line, Part, Windows, misplaced};
use crate::kind::Misplaced;
use crate::plan::Phase;
use crate::record::{
    Direction, Done, Execution, IoInterval, JobRecord, Outcome, PhaseRecord, Record, Snapshot, Source, Stretch,
};
use crate::unit::Nanos;
use crate::warning::{Code, Warning};

/// Assembles it from the lines behind `begun`.
pub(super) fn record(begun: Record, lines: impl Iterator<Item = Line>) -> Result<Record, Misplaced> {
    let mut record = Record { outcome: Outcome::Interrupted, ..begun };
    let mut running: Option<(usize, Vec<Snapshot>)> = None;
    let mut count = 1;
    for (place, line) in (1..).zip(lines) {
        let missing = || misplaced(place, "is of a phase that is missing");
        match line {
            Line::Part(part) => {
                let Part { background, execution, tsc_hertz, storage, warnings } = *part;
                record.background.extend(background);
                record.host.tsc_hertz = tsc_hertz;
                (record.host.storage, record.warnings) = (storage, warnings);
                if let Some((phase, execution)) = execution {
                    if phase == record.phases.len() {
                        record.phases.push(PhaseRecord::default());
                    }
                    record.phases.get_mut(phase).ok_or_else(missing)?.executions.push(execution);
                    running = None;
                }
            }
            Line::Windows(Windows { phase, snapshots, tsc_hertz }) => {
                if phase > record.phases.len() {
                    return Err(missing());
                }
                record.host.tsc_hertz = tsc_hertz;
                match &mut running {
                    Some((same, all)) if *same == phase => all.extend(snapshots),
                    _ => running = Some((phase, snapshots)),
                }
            }
            Line::Begun(_) | Line::Measured(_) => return Err(misplaced(place, "is a second measurement")),
        }
        count = place + 1;
    }
    // An execution without its end cannot be averaged with whole ones.
    if let Some((phase, snapshots)) = running
        && phase == record.phases.len()
        && snapshots.len() > 1
    {
        let execution = execution_so_far(&record.source, phase, snapshots);
        record.phases.push(PhaseRecord { executions: vec![execution] });
        let message = "iotoll was killed while the workload ran: the figures cover the windows until then; latencies, system \
                       calls and the CPU time of each task are only known at the end of a phase";
        record.warnings.push(Warning::new(Code::Interrupted, message));
    }
    if record.phases.is_empty() {
        return Err(misplaced(count, "is missing: iotoll was killed before the first window had ended"));
    }
    Ok(record)
}

/// An execution as far as its windows contain it.
fn execution_so_far(source: &Source, phase: usize, snapshots: Vec<Snapshot>) -> Execution {
    let stretch = Stretch { snapshots, tasks: None, starved: None };
    let phase = match source {
        Source::Run(plan) => plan.phases.get(phase),
        Source::Cost { .. } => None,
    };
    let io_interval = phase.and_then(|phase| IoInterval::of_jobs(phase, &stretch));
    let jobs = all_jobs(source, phase, io_interval, &stretch).into_iter().collect();
    Execution { jobs, stretch, io_interval, ..Execution::default() }
}

/// What all jobs of a phase did, as one job: snapshots do not contain them one by one. `None` if I/Os are not counted while the
/// workload runs.
fn all_jobs(source: &Source, phase: Option<&Phase>, part: Option<IoInterval>, stretch: &Stretch) -> Option<JobRecord> {
    let counts = |snapshot: &&Snapshot| part.is_none_or(|part| snapshot.at_nanos >= part.begin_nanos);
    let mut counted = stretch.snapshots.iter().filter(counts);
    let (first, last) = (counted.next()?, counted.next_back()?);
    let (Done { ios, bytes }, end) = (first.done?, last.done?);
    let thread_nanos = first.thread_nanos().zip(last.thread_nanos()).map(|(first, last)| last.since(first));
    let (name, engine) = match (source, phase) {
        (Source::Cost { counted_by, .. }, _) => (counted_by.clone(), "counter".to_owned()),
        (Source::Run(_), phase) => {
            let jobs = || phase.into_iter().flat_map(|phase| &phase.jobs);
            let mut engines: Vec<&str> = jobs().map(|job| job.engine.name()).collect();
            engines.dedup();
            (jobs().map(|job| job.name.as_str()).collect::<Vec<_>>().join(", "), engines.join(", "))
        }
    };
    let (ios, bytes) = (end.ios.saturating_sub(ios), end.bytes.since(bytes));
    Some(JobRecord {
        name,
        engine,
        mixed: Some(Box::new(Direction { ios, bytes, ..Direction::default() })),
        wall_nanos: last.at_nanos.since(first.at_nanos),
        thread_nanos: thread_nanos.filter(|nanos| *nanos > Nanos(0)),
        ..JobRecord::default()
    })
}
