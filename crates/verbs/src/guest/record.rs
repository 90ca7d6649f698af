//! What guests counted, before anything is computed from it.

use super::{GuestFinding, GuestPlan, at_places, differences, fits, quantities, study_against};
use model::kind::{Envelope, Extent, Kind, Misplaced, Recorded, assembled};
use model::limit::{AtPlace, Quantity};
use model::record::{Host, Outcome};
use model::stored::Stored;
use model::warning::Warning;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A measurement of guests, as far as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct GuestRecord {
    /// What is known before the first guest.
    pub header: Header,
    /// What each guest counted.
    pub measured: Vec<Measured>,
    /// How it ended; `None` if it was cut off.
    pub end: Option<End>,
}

/// What is known before the first guest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The first line of the record.
    #[serde(skip)]
    pub envelope: Envelope,
    /// What was planned.
    pub plan: GuestPlan,
    /// The emulator: "QEMU 7.2.22".
    pub emulator: String,
    /// The emulated CPU, as QEMU's option names it.
    pub cpu: String,
    /// Memory of a guest in MiB.
    pub memory_mib: u32,
    /// The kernels, by the names in the plan.
    pub kernels: BTreeMap<String, KernelIdentity>,
    /// Hashes of the modules that replace those of the kernels, by `NAME=FILE`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub modules: BTreeMap<String, String>,
    /// The machine that emulates, which no count depends on.
    pub host: Host,
}

/// Which kernel it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelIdentity {
    /// `uname -r`.
    pub release: String,
    /// Hash of the image.
    pub hash: String,
}

/// What one guest counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Number of the point in the plan.
    pub point: usize,
    /// Number of the replicate, from 0.
    pub replicate: u32,
    /// I/Os in the measured part.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Nanoseconds of the guest's clock: one an instruction, and the idle time.
    pub clock_nanos: u64,
    /// The instructions.
    pub instructions: InstructionCount,
    /// Increases of the counters that show the path.
    pub counters: BTreeMap<String, i64>,
    /// Hash of everything that the guest was made of.
    pub guest: String,
}

/// Instructions of one measured part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstructionCount {
    /// All.
    pub total: u64,
    /// Of programs, not of the kernel.
    pub programs: u64,
    /// Repetitions of string instructions, each counted as one.
    pub string: u64,
    /// Instructions that lock memory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub locked: u64,
    /// By function. They sum to the total. Empty if functions were not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FunctionCount>,
}

impl InstructionCount {
    /// Those of the kernel.
    pub fn kernel(&self) -> u64 {
        self.total.saturating_sub(self.programs)
    }
}

/// Instructions in one function, without those that it called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCount {
    /// Its symbol.
    pub name: String,
    /// Its module; `None` if it is in the kernel image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The file of the program that it belongs to; `None` if it is of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Instructions.
    pub count: u64,
    /// How often it was entered: executions of its first instruction, also by a jump. 0 if that repeats itself, because its repetitions count
    /// as executions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub entries: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// The outcome.
    pub outcome: Outcome,
    /// Caveats of measuring.
    pub warnings: Vec<Warning>,
    /// Wall time.
    pub seconds: f64,
}

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
    const KIND: Kind = Kind {
        name: "guest",
        schema: "iotoll.guest/1",
        noun: "a measurement of guests",
        made_by: "iotoll guest run",
        method_version: 2,
    };
    const INSTEAD: &'static str = "several kernels";
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

    fn header(&self) -> (&Envelope, &Host, &GuestPlan) {
        (&self.header.envelope, &self.header.host, &self.header.plan)
    }

    /// Guests depend on no machine: what they were made of.
    fn differences(&self, now: &Self) -> Vec<String> {
        differences(&self.header, &now.header)
    }

    fn fits(&self, plan: &GuestPlan) -> Result<(), String> {
        fits(self, plan)
    }

    fn study(&self, stored: Option<&Stored<Self>>) -> GuestFinding {
        study_against(self, stored)
    }

    fn quantities() -> Vec<Quantity> {
        quantities()
    }

    fn at_places(&self, finding: &GuestFinding, then: Option<&Stored<Self>>, metric: &str) -> Vec<AtPlace> {
        at_places(finding, self, then.map(|then| &then.record), metric)
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
