//! Kind `ftq`: a header, pieces of the series, and the end.

use super::{Extent, Misplaced, Recorded, begun, misplaced};
use crate::envelope::{Envelope, Kind};
use crate::ftq::record::{Chunk, End, Header, Worker};
use crate::ftq::{FtqFinding, FtqPlan, FtqRecord};
use crate::limit::{Limit, Quantity};
use crate::stored::Stored;
use crate::stored::machine::Machine;
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
        let header = |line| if let Line::Header(header) = line { Some(*header) } else { None };
        let (header, lines) = begun(lines, header, "a recording")?;
        let header = Header { envelope, ..header };
        let mut record = Self { header, chunks: Vec::new(), end: None };
        for (number, line) in lines {
            match line {
                Line::Chunk(chunk) => {
                    if !chunk.is_table(record.header.probes.len()) {
                        return Err(misplaced(number, "has columns of different lengths"));
                    }
                    if chunk.is_before(record.chunks.last()) {
                        return Err(misplaced(number, "goes back in time"));
                    }
                    record.chunks.push(chunk);
                }
                Line::End(end) => record.end = Some(*end),
                Line::Header(_) => return Err(misplaced(number, "is a second header")),
            }
        }
        Ok(record)
    }

    fn extent(&self) -> Extent {
        Extent { has_end: self.end.is_some(), parts: self.chunks.len(), noun: "pieces of the series" }
    }

    fn machine(&self) -> Option<Machine<'_>> {
        Some(Machine::of(&self.header.host, &self.header.envelope))
    }

    fn envelope(&self) -> &Envelope {
        &self.header.envelope
    }

    fn plan(&self) -> &FtqPlan {
        &self.header.plan
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
