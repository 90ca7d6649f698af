//! Kind `blast`: a header, rounds, and the end.

use super::{Extent, Misplaced, Recorded, assembled};
use crate::blast::record::{End, Header, Round};
use crate::blast::{BlastFinding, BlastPlan, BlastRecord};
use crate::envelope::{Envelope, Kind};
use crate::limit::{Limit, Quantity};
use crate::record::Host;
use crate::slice::RoundRecord;
use crate::stored::Stored;
use serde::Deserialize;

/// A line of the record.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// What is known before the first packet.
    Header(Box<Header>),
    Round(Box<Round>),
    /// An explaining round.
    Explaining(RoundRecord),
    End(Box<End>),
}

impl Recorded for BlastRecord {
    const KIND: Kind = Kind::Blast;
    type Line = Line;
    type Plan = BlastPlan;
    type Finding = BlastFinding;

    fn assemble(envelope: Envelope, lines: Vec<Line>) -> Result<Self, Misplaced> {
        let begin = |line| {
            let Line::Header(header) = line else { return None };
            Some(Self { header: Header { envelope, ..*header }, rounds: Vec::new(), explaining: Vec::new(), end: None })
        };
        assembled(lines, begin, |record, line| {
            match line {
                Line::Round(_) if record.end.is_some() => return Err("is a round after the end".to_owned()),
                Line::Round(round) => record.rounds.push(*round),
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

    fn header(&self) -> (&Envelope, &Host, &BlastPlan) {
        (&self.header.envelope, &self.header.host, &self.header.plan)
    }

    fn fits(&self, plan: &BlastPlan) -> Result<(), String> {
        let ours = self.plan().points();
        if plan.points().iter().any(|point| ours.contains(point)) {
            Ok(())
        } else {
            Err("the two have no method with the same number of submitters in common".to_owned())
        }
    }

    fn study(&self, stored: Option<&Stored<Self>>) -> BlastFinding {
        crate::blast::study(self, stored)
    }

    fn quantities() -> Vec<Quantity> {
        crate::blast::quantities()
    }

    fn limits_mut(&mut self) -> &mut Vec<Limit> {
        &mut self.header.envelope.limits
    }
}
