//! Kind `cost`: one line, written at the end of the measurement. Until then, and for good if iotoll is killed, a line of what
//! is known at the beginning, and one of each part that was measured.

use super::{Extent, Misplaced, Recorded};
use crate::envelope::{Envelope, Kind};
use crate::finding::RunFinding;
use crate::record::{Execution, Outcome, PhaseRecord, Record, Source, Stretch};
use crate::storage::Storage;
use crate::stored::Stored;
use crate::study;
use crate::warning::Warning;
use serde::{Deserialize, Serialize};

/// A line of the record.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The whole record.
    Measured(Box<Record>),
    /// What is known before anything is measured, in the form of a record.
    Begun(Box<Record>),
    /// What was measured since the line before.
    Part(Box<Part>),
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
            (Some(Line::Part(_)), _) => Err(misplaced(0, "is a part of a measurement whose beginning is missing")),
            (Some(Line::Begun(record)), second) => {
                cut_off(Self { envelope, ..*record }, second.into_iter().chain(lines))
            }
        }
    }

    fn extent(&self) -> Extent {
        // The beginning has one reading of the canaries, the end another.
        let has_end = self.canaries.len() != 1;
        let parts = self.phases.iter().map(|phase| phase.executions.len()).sum();
        Extent { has_end, parts, noun: "executions of phases" }
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
}

fn misplaced(line: usize, why: &str) -> Misplaced {
    Misplaced { line, why: why.to_owned() }
}

/// The record of a measurement that was killed: it contains the executions that had ended.
fn cut_off(begun: Record, parts: impl Iterator<Item = Line>) -> Result<Record, Misplaced> {
    let mut record = Record { outcome: Outcome::Interrupted, ..begun };
    let mut count = 1;
    for (place, line) in (1..).zip(parts) {
        let Line::Part(part) = line else { return Err(misplaced(place, "is a second measurement")) };
        let Part { background, execution, tsc_hertz, storage, warnings } = *part;
        record.background.extend(background);
        record.host.tsc_hertz = tsc_hertz;
        (record.host.storage, record.warnings) = (storage, warnings);
        if let Some((phase, execution)) = execution {
            if phase == record.phases.len() {
                record.phases.push(PhaseRecord::default());
            }
            let phase =
                record.phases.get_mut(phase).ok_or_else(|| misplaced(place, "is of a phase that is missing"))?;
            phase.executions.push(execution);
        }
        count = place + 1;
    }
    if record.phases.is_empty() {
        return Err(misplaced(count, "is missing: iotoll was killed before the first execution had ended"));
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Host;
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
        let (line, why) = refused(&[begun(), part(true, None)]);
        assert_eq!(line, 2);
        assert!(why.contains("killed before the first execution had ended"), "{why}");
    }
}
