//! Kind `compare`: a header, one line for each round or boot, and the end. Each line is written before the next round
//! begins.

use super::{Extent, Misplaced, Recorded, assembled};
use crate::comparison::record::{BootRecord, CompareRecord, End, Header, RoundRecord};
use crate::comparison::{CompareFinding, against_stored, boots};
use crate::envelope::{Envelope, Kind};
use crate::experiment::{Experiment, Metric};
use crate::limit::{Limit, Quantity};
use crate::record::Host;
use crate::stored::Stored;
use crate::stored::machine::Machine;
use crate::unit::Nanos;
use serde::{Deserialize, Serialize};

/// A line of the record.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// What is known before the first round.
    Header(Box<Header>),
    Round(RoundRecord),
    /// An explaining round. A version that does not know them does not take it for one of the answer.
    Explaining(RoundRecord),
    /// A complete boot of an arm.
    Boot(Box<BootLine<BootRecord, RoundRecord>>),
    /// How the experiment ended.
    End(Box<End>),
}

/// One boot, and its measurement.
#[derive(Serialize, Deserialize)]
pub struct BootLine<B, R> {
    pub boot: B,
    pub round: R,
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
            Some(Self { header, rounds: Vec::new(), explaining: Vec::new(), boots: Vec::new(), end: None })
        };
        // Boots of the current, incomplete round.
        let mut booted = Vec::new();
        assembled(lines, begin, |record, line| {
            match line {
                Line::Round(round) => record.rounds.push(round),
                Line::Explaining(round) => record.explaining.push(round),
                Line::Boot(line) => {
                    let BootLine { boot, round } = *line;
                    record.boots.push(boot);
                    booted.push(round);
                    if booted.len() >= record.header.experiment.arms.len() {
                        let begin = record.rounds.last().map_or(Nanos(0), |round| round.end_nanos);
                        record.rounds.push(boots::round(std::mem::take(&mut booted), begin));
                    }
                }
                Line::End(end) => record.end = Some(*end),
                Line::Header(_) => return Err("is a second header".to_owned()),
            }
            Ok(())
        })
    }

    fn extent(&self) -> Extent {
        // One of boots waits for the next boot, and its finding says so.
        let has_end = self.end.is_some() || self.header.experiment.boots.is_some();
        Extent { has_end, parts: self.rounds.len().max(self.boots.len()), noun: "rounds" }
    }

    /// That of the baseline, and its canaries.
    fn machine(&self) -> Machine<'_> {
        // If arms are boots, the header may describe a boot of any arm.
        let boots: Vec<_> = self.boots.iter().filter(|boot| boot.arm == 0).collect();
        let header = &self.header;
        let (host, canaries) = match boots.first() {
            Some(first) => (&first.host, boots.iter().map(|boot| &boot.canaries).collect()),
            None => {
                let ends = std::iter::once(&header.canaries).chain(self.end.as_ref().map(|end| &end.canaries));
                (&header.host, ends.collect())
            }
        };
        Machine { canaries, ..Machine::of(host, &header.envelope) }
    }

    fn header(&self) -> (&Envelope, &Host, &Experiment) {
        (&self.header.envelope, &self.header.host, &self.header.experiment)
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
