//! Kind `ftq`: a header, pieces of the series, and the end.

use super::{Extent, Misplaced, Recorded, assembled};
use crate::envelope::{Envelope, Kind};
use crate::ftq::record::{Chunk, End, Header, Worker};
use crate::ftq::{FtqFinding, FtqPlan, FtqRecord};
use crate::limit::{Limit, Quantity};
use crate::record::Host;
use crate::stored::Stored;
use serde::Deserialize;

/// A line of the record.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// What is known before the first reading.
    Header(Box<Header>),
    /// Readings.
    Chunk(Chunk),
    End(Box<End>),
}

impl Recorded for FtqRecord {
    const KIND: Kind = Kind::Ftq;
    type Line = Line;
    type Plan = FtqPlan;
    type Finding = FtqFinding;

    fn assemble(envelope: Envelope, lines: Vec<Line>) -> Result<Self, Misplaced> {
        let begin = |line| {
            let Line::Header(header) = line else { return None };
            Some(Self { header: Header { envelope, ..*header }, chunks: Vec::new(), end: None })
        };
        assembled(lines, begin, |record, line| {
            match line {
                Line::Chunk(chunk) if !chunk.is_table(record.header.probes.len()) => {
                    return Err("has columns of different lengths".to_owned());
                }
                Line::Chunk(chunk) if chunk.is_before(record.chunks.last()) => {
                    return Err("goes back in time".to_owned());
                }
                Line::Chunk(chunk) => record.chunks.push(chunk),
                Line::End(end) => record.end = Some(*end),
                Line::Header(_) => return Err("is a second header".to_owned()),
            }
            Ok(())
        })
    }

    fn extent(&self) -> Extent {
        Extent { has_end: self.end.is_some(), parts: self.chunks.len(), noun: "pieces of the series" }
    }

    fn header(&self) -> (&Envelope, &Host, &FtqPlan) {
        (&self.header.envelope, &self.header.host, &self.header.plan)
    }

    fn fits(&self, plan: &FtqPlan) -> Result<(), String> {
        let computes = |plan: &FtqPlan| plan.worker == Worker::Cpu;
        if computes(self.plan()) == computes(plan) {
            Ok(())
        } else {
            Err("one of the recordings is of a thread that computes, the other of I/O".to_owned())
        }
    }

    fn study(&self, stored: Option<&Stored<Self>>) -> FtqFinding {
        crate::ftq::study(self, stored)
    }

    fn quantities() -> Vec<Quantity> {
        crate::ftq::quantities()
    }

    fn limits_mut(&mut self) -> &mut Vec<Limit> {
        &mut self.header.envelope.limits
    }
}
