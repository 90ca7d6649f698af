//! Kind `guest`: a header, one line for each guest that was measured, and the end.

use super::{Extent, Misplaced, Recorded, assembled};
use crate::envelope::{Envelope, Kind};
use crate::guest::record::{End, Header, Measured};
use crate::guest::{GuestFinding, GuestPlan, GuestRecord};
use crate::limit::{Limit, Quantity};
use crate::stored::Stored;
use crate::stored::machine::Machine;
use serde::Deserialize;

/// A line of the record.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// What is known before the first guest.
    Header(Box<Header>),
    /// What one guest counted.
    Measured(Box<Measured>),
    End(Box<End>),
}

impl Recorded for GuestRecord {
    const KIND: Kind = Kind::Guest;
    type Line = Line;
    type Plan = GuestPlan;
    type Finding = GuestFinding;

    fn assemble(envelope: Envelope, lines: Vec<Line>) -> Result<Self, Misplaced> {
        let begin = |line| {
            let Line::Header(header) = line else { return None };
            Some(Self { header: Header { envelope, ..*header }, measured: Vec::new(), end: None })
        };
        assembled(lines, begin, |record, line| {
            match line {
                Line::Measured(measured) if measured.point >= record.header.plan.points.len() => {
                    return Err("measures a point that the plan does not have".to_owned());
                }
                Line::Measured(measured) => record.measured.push(*measured),
                Line::End(end) => record.end = Some(*end),
                Line::Header(_) => return Err("is a second header".to_owned()),
            }
            Ok(())
        })
    }

    fn extent(&self) -> Extent {
        Extent { has_end: self.end.is_some(), parts: self.measured.len(), noun: "guests" }
    }

    fn machine(&self) -> Machine<'_> {
        Machine::of(&self.header.host, &self.header.envelope)
    }

    /// Guests depend on no machine: what they were made of.
    fn differences(&self, now: &Self) -> Vec<String> {
        crate::guest::differences(&self.header, &now.header)
    }

    fn envelope(&self) -> &Envelope {
        &self.header.envelope
    }

    fn plan(&self) -> &GuestPlan {
        &self.header.plan
    }

    fn fits(&self, plan: &GuestPlan) -> Result<(), String> {
        crate::guest::fits(self, plan)
    }

    fn study(&self, stored: Option<&Stored<Self>>) -> GuestFinding {
        crate::guest::study_against(self, stored)
    }

    fn quantities() -> Vec<Quantity> {
        crate::guest::quantities()
    }

    fn limits_mut(&mut self) -> &mut Vec<Limit> {
        &mut self.header.envelope.limits
    }

    fn has_baseline(plan: &GuestPlan) -> bool {
        plan.arms.len() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(points: usize) -> Line {
        Line::Header(Box::new(crate::guest::tests::record(1, points, Vec::new()).header))
    }

    fn measured(point: usize) -> Line {
        Line::Measured(Box::new(Measured { point, ..Measured::default() }))
    }

    fn assembled(lines: Vec<Line>) -> Result<GuestRecord, (usize, String)> {
        GuestRecord::assemble(Envelope::default(), lines).map_err(|misplaced| (misplaced.line, misplaced.why))
    }

    #[test]
    fn a_misplaced_line_is_named() {
        let wrong = |lines, line, why: &str| assert_eq!(assembled(lines).unwrap_err(), (line, why.to_owned()));
        wrong(vec![measured(0)], 0, "is not the header of a measurement of guests");
        wrong(vec![header(1), measured(1)], 1, "measures a point that the plan does not have");
    }
}
