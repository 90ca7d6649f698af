//! Kind `compare`: a header, one line for each round, and the end. Each line is written before the next round begins.

use super::{Extent, Misplaced, Recorded, assembled};
use crate::comparison::record::{CompareRecord, End, Header, RoundRecord};
use crate::comparison::{CompareFinding, against_stored};
use crate::envelope::{Envelope, Kind};
use crate::experiment::{Experiment, Metric};
use crate::limit::{Limit, Quantity};
use crate::stored::Stored;
use crate::stored::machine::Machine;
use serde::Deserialize;

/// A line of the record.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// What is known before the first round.
    Header(Box<Header>),
    Round(RoundRecord),
    /// An explaining round. A version that does not know them does not take it for one of the answer.
    Explaining(RoundRecord),
    /// How the experiment ended.
    End(Box<End>),
}

impl Recorded for CompareRecord {
    const KIND: Kind = Kind::Compare;
    type Line = Line;
    type Plan = Experiment;
    type Finding = CompareFinding;
    const HAS_VALUES: bool = false;

    fn assemble(envelope: Envelope, lines: Vec<Line>) -> Result<Self, Misplaced> {
        let begin = |line| {
            let Line::Header(header) = line else { return None };
            let header = Header { envelope, ..*header };
            Some(Self { header, rounds: Vec::new(), explaining: Vec::new(), end: None })
        };
        assembled(lines, begin, |record, line| {
            match line {
                Line::Round(round) => record.rounds.push(round),
                Line::Explaining(round) => record.explaining.push(round),
                Line::End(end) => record.end = Some(*end),
                Line::Header(_) => return Err("is a second header".to_owned()),
            }
            Ok(())
        })
    }

    fn extent(&self) -> Extent {
        Extent { has_end: self.end.is_some(), parts: self.rounds.len(), noun: "rounds" }
    }

    fn machine(&self) -> Machine<'_> {
        let header = &self.header;
        let canaries = std::iter::once(&header.canaries).chain(self.end.as_ref().map(|end| &end.canaries)).collect();
        Machine { canaries, ..Machine::of(&header.host, &header.envelope) }
    }

    fn envelope(&self) -> &Envelope {
        &self.header.envelope
    }

    fn plan(&self) -> &Experiment {
        &self.header.experiment
    }

    fn fits(&self, plan: &Experiment) -> Result<(), String> {
        against_stored::fits(self, plan)
    }

    /// Drops latencies: they are most of a record, and percentiles are not compared with a stored record.
    fn trimmed(mut self) -> Self {
        self.rounds.iter_mut().for_each(|round| round.latencies = Vec::new());
        self
    }

    fn study(&self, stored: Option<&Stored<Self>>) -> CompareFinding {
        against_stored::study_against(self, stored)
    }

    fn quantities() -> Vec<Quantity> {
        Metric::quantities()
    }

    fn limits_mut(&mut self) -> &mut Vec<Limit> {
        &mut self.header.experiment.limits
    }

    fn has_baseline(_: &Experiment) -> bool {
        true
    }
}
