//! Kind `cost`: one line, written at the end of the measurement.

use super::{Misplaced, Recorded};
use crate::envelope::{Envelope, Kind};
use crate::finding::RunFinding;
use crate::record::{Record, Source};
use crate::stored::Stored;
use crate::study;
use serde::Deserialize;

/// A line of the record.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The whole record.
    Measured(Box<Record>),
}

impl Recorded for Record {
    const KIND: Kind = Kind::Cost;
    type Line = Line;
    type Plan = Source;
    type Finding = RunFinding;

    fn assemble(envelope: Envelope, lines: Vec<Line>) -> Result<Self, Misplaced> {
        let mut lines = lines.into_iter().map(|Line::Measured(record)| record);
        let misplaced = |line, why: &str| Misplaced { line, why: why.to_owned() };
        let record = lines.next().ok_or_else(|| misplaced(0, "is missing: nothing was measured"))?;
        match lines.next() {
            None => Ok(Self { envelope, ..*record }),
            Some(_) => Err(misplaced(1, "is a second measurement")),
        }
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
