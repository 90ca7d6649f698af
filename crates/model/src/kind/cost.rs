//! Kind `cost`: one line, written at the end of the measurement. Until then, and for good if iotoll is killed, a line of what
//! is known at the beginning, one of each part that was measured, and before each execution its windows.

mod cut_off;

use super::{Extent, Misplaced, Recorded};
use crate::envelope::{Envelope, Kind};
use crate::experiment::Metric;
use crate::finding::RunFinding;
use crate::limit::{Limit, Quantity};
use crate::record::{Execution, Record, Snapshot, Source, Stretch};
use crate::storage::Storage;
use crate::stored::Stored;
use crate::stored::machine::Machine;
use crate::study;
use crate::warning::Warning;
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

impl Recorded for Record {
    const KIND: Kind = Kind::Cost;
    type Line = Line;
    type Plan = Source;
    type Finding = RunFinding;

    fn assemble(envelope: Envelope, lines: Vec<Line>) -> Result<Self, Misplaced> {
        let mut lines = lines.into_iter();
        match (lines.next(), lines.next()) {
            (None, _) => Err(misplaced(0, "is missing: nothing was measured")),
            (Some(Line::Measured(record)), None) => Ok(Self { envelope, ..*record }),
            (Some(Line::Measured(_)), Some(_)) => Err(misplaced(1, "is a second measurement")),
            (Some(Line::Part(_) | Line::Windows(_)), _) => {
                Err(misplaced(0, "is a part of a measurement whose beginning is missing"))
            }
            (Some(Line::Begun(record)), second) => {
                cut_off::record(Self { envelope, ..*record }, second.into_iter().chain(lines))
            }
        }
    }

    fn extent(&self) -> Extent {
        // The beginning has one reading of the canaries, the end another.
        let has_end = self.canaries.len() != 1;
        let parts = self.phases.iter().map(|phase| phase.executions.len()).sum();
        Extent { has_end, parts, noun: "executions of phases" }
    }

    fn machine(&self) -> Option<Machine<'_>> {
        Some(self.machine())
    }

    fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    fn plan(&self) -> &Source {
        &self.source
    }

    fn fits(&self, plan: &Source) -> Result<(), String> {
        study::against_stored::fits(self, plan)
    }

    fn study(&self, stored: Option<&Stored<Self>>) -> RunFinding {
        study::study_against(self, stored)
    }

    fn quantities() -> Vec<Quantity> {
        Metric::quantities()
    }

    fn limits_mut(&mut self) -> &mut Vec<Limit> {
        &mut self.envelope.limits
    }
}

fn misplaced(line: usize, why: &str) -> Misplaced {
    Misplaced { line, why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Done, Host, Outcome};
    use crate::unit::{Bytes, Nanos};
    use crate::warning::Code;
    use serde_json::json;

    fn lines(texts: &[serde_json::Value]) -> Result<Record, Misplaced> {
        let lines = texts.iter().map(|text| serde_json::from_value(text.clone()).unwrap()).collect();
        Record::assemble(Envelope::new(Kind::Cost, 0.0, Vec::new()), lines)
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
        assert_eq!(record.study(None).outcome, Outcome::Interrupted);
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
        assert_eq!((phase.ios, phase.iops, phase.wall_seconds), (Some(4000), Some(1000.0), 4.0));
        let caveats: Vec<_> = finding.warnings.iter().filter(|warning| warning.code == Code::Interrupted).collect();
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
        assert!(refused(&[part(true, None)]).1.contains("beginning is missing"));
        assert!(refused(&[begun(), begun()]).1.contains("second"));
        // No memory is set aside for phases that nobody measured.
        assert_eq!(refused(&[begun(), part(false, Some(usize::MAX))]), (1, "is of a phase that is missing".to_owned()));
        assert_eq!(refused(&[begun(), windows(9, &[1, 2])]), (1, "is of a phase that is missing".to_owned()));
        assert!(refused(&[windows(0, &[1, 2])]).1.contains("beginning is missing"));
        let (line, why) = refused(&[begun(), part(true, None)]);
        assert_eq!(line, 2);
        assert!(why.contains("killed before the first window had ended"), "{why}");
    }
}
