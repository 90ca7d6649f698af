//! The lines of a record of `run` or `cost`: one, written at the end of the measurement. Until then, and for good if iotoll is killed, a line of what
//! is known at the beginning, one of each part that was measured, and before each execution its windows.

use super::{
    Direction, Done, Execution, IoInterval, JobRecord, Outcome, PhaseRecord, Record, Snapshot, Source, Stretch,
};
use crate::kind::{Envelope, Misplaced, assembled};
use crate::plan::Phase;
use crate::storage::Storage;
use crate::unit::Nanos;
use crate::warning::{Code, Warning};
use serde::{Deserialize, Serialize};

/// A line of the record.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    Measured(Box<Record>),
    /// What is known before anything is measured, in the form of a record.
    Begun(Box<Record>),
    /// What was measured since the line before.
    Part(Box<Part>),
    /// Windows of the execution that runs. The part with the execution contains them again.
    Windows(Windows),
}

/// Windows of an execution that has not ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Windows {
    /// The index of its phase.
    pub phase: usize,
    /// The snapshots since the line before; the first line of an execution has its first snapshot.
    pub snapshots: Vec<Snapshot>,
    /// Rate of the reference clock as known by now, in hertz.
    pub tsc_hertz: f64,
}

/// A part of a measurement that has not ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    /// A stretch without the workload.
    pub background: Option<Stretch>,
    /// The index of a phase, and an execution of it.
    pub execution: Option<(usize, Execution)>,
    /// Rate of the reference clock as known by now, in hertz.
    pub tsc_hertz: f64,
    /// What holds the files, as known by now.
    pub storage: Vec<Storage>,
    /// The caveats by now.
    pub warnings: Vec<Warning>,
}

/// The record of its lines.
pub(crate) fn assemble(envelope: Envelope, lines: Vec<Line>) -> Result<Record, Misplaced> {
    let count = lines.len();
    let mut is_whole = false;
    let begin = |line| match line {
        Line::Measured(record) => {
            is_whole = true;
            Some(Record { envelope, ..*record })
        }
        Line::Begun(record) => Some(Record { envelope, outcome: Outcome::Interrupted, ..*record }),
        Line::Part(_) | Line::Windows(_) => None,
    };
    let mut running: Option<(usize, Vec<Snapshot>)> = None;
    let mut record = assembled(lines, begin, |record: &mut Record, line| {
        let missing = || "is of a phase that is missing".to_owned();
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
            Line::Begun(_) | Line::Measured(_) => return Err("is a second measurement".to_owned()),
        }
        Ok(())
    })?;
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
    if record.phases.is_empty() && !is_whole {
        let why = "is missing: iotoll was killed before the first window had ended".to_owned();
        return Err(Misplaced { line: count, why });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Metric;
    use crate::kind::Recorded;
    use crate::record::Host;
    use crate::unit::Bytes;
    use serde_json::json;

    fn lines(texts: &[serde_json::Value]) -> Result<Record, Misplaced> {
        let lines = texts.iter().map(|text| serde_json::from_value(text.clone()).unwrap()).collect();
        assemble(Envelope::new(Record::KIND, 0.0, Vec::new()), lines)
    }

    fn begun() -> serde_json::Value {
        let record = Record {
            envelope: Envelope::default(),
            source: Source::Cost { command: vec!["true".to_owned()], counted_by: String::new() },
            host: Host { tsc_hertz: 1e9, ..Host::default() },
            meters: Vec::new(),
            probes: Vec::new(),
            events: None,
            canaries: Vec::new(),
            background: Vec::new(),
            phases: Vec::new(),
            outcome: Outcome::Completed,
            warnings: Vec::new(),
            place: None,
            services: Vec::new(),
        };
        json!({ "begun": record })
    }

    fn part(background: bool, phase: Option<usize>) -> serde_json::Value {
        let part = Part {
            background: background.then(Stretch::default),
            execution: phase.map(|phase| (phase, Execution::default())),
            tsc_hertz: 2e9,
            storage: Vec::new(),
            warnings: Vec::new(),
        };
        json!({ "part": part })
    }

    #[test]
    fn a_measurement_that_was_killed_contains_the_executions_that_had_ended() {
        let record =
            lines(&[begun(), part(true, None), part(false, Some(0)), part(false, Some(0)), part(false, Some(1))]);
        let record = record.unwrap();
        let executions: Vec<usize> = record.phases.iter().map(|phase| phase.executions.len()).collect();
        assert_eq!((record.background.len(), executions), (1, vec![2, 1]));
        assert_eq!((record.outcome.clone(), record.host.tsc_hertz), (Outcome::Interrupted, 2e9));
        assert_eq!(record.study(None).head.outcome, Outcome::Interrupted);
    }

    /// Snapshots of these seconds, with a thousand I/Os in each.
    fn windows(phase: usize, seconds: &[u64]) -> serde_json::Value {
        let snapshot = |second: &u64| Snapshot {
            at_nanos: Nanos::from_secs(*second),
            done: Some(Done { ios: second * 1000, bytes: Bytes(second * 4_096_000) }),
            ..Snapshot::default()
        };
        let snapshots = seconds.iter().map(snapshot).collect();
        json!({ "windows": Windows { phase, snapshots, tsc_hertz: 3e9 } })
    }

    #[test]
    fn a_measurement_that_was_killed_contains_the_windows_of_the_execution_that_ran() {
        let record = lines(&[begun(), part(true, None), windows(0, &[5, 6]), windows(0, &[7, 9])]).unwrap();
        assert_eq!(record.host.tsc_hertz, 3e9);
        let finding = record.study(None);
        let [phase] = finding.phases.as_slice() else { panic!("{finding:?}") };
        assert_eq!((phase.ios, phase.value(Metric::Iops), phase.wall_seconds), (Some(4000), Some(1000.0), 4.0));
        let caveats: Vec<_> =
            finding.head.warnings.iter().filter(|warning| warning.code == Code::Interrupted).collect();
        assert!(matches!(caveats.as_slice(), [one] if one.message.contains("killed")), "{caveats:?}");
    }

    #[test]
    fn windows_do_not_count_beside_whole_executions() {
        // The execution contains its windows; another one of the same phase had no end.
        let record = lines(&[begun(), windows(0, &[5, 6]), part(false, Some(0)), windows(0, &[8, 9])]).unwrap();
        let [phase] = record.phases.as_slice() else { panic!("{record:?}") };
        assert!(matches!(phase.executions.as_slice(), [only] if only.stretch.snapshots.is_empty()));
        // A phase without a whole execution is in the record, even if it is the second.
        let record = lines(&[begun(), part(false, Some(0)), windows(1, &[8, 9])]).unwrap();
        assert_eq!(record.phases.len(), 2);
        // One snapshot is no window.
        assert!(lines(&[begun(), windows(0, &[5])]).is_err());
    }

    #[test]
    fn lines_in_the_wrong_place_are_refused() {
        let refused = |texts: &[serde_json::Value]| {
            let Misplaced { line, why } = lines(texts).unwrap_err();
            (line, why)
        };
        assert_eq!(refused(&[]).0, 0);
        assert_eq!(refused(&[part(true, None)]), (0, "is not the header of a run".to_owned()));
        assert!(refused(&[begun(), begun()]).1.contains("second"));
        // No memory is set aside for phases that nobody measured.
        assert_eq!(refused(&[begun(), part(false, Some(usize::MAX))]), (1, "is of a phase that is missing".to_owned()));
        assert_eq!(refused(&[begun(), windows(9, &[1, 2])]), (1, "is of a phase that is missing".to_owned()));
        assert!(refused(&[windows(0, &[1, 2])]).1.contains("not the header"));
        let (line, why) = refused(&[begun(), part(true, None)]);
        assert_eq!(line, 2);
        assert!(why.contains("killed before the first window had ended"), "{why}");
    }
}
