//! What was read while packets were sent, before anything is computed from it.

use super::{BlastFinding, BlastPlan, at_places, quantities, study};
use model::events::Events;
use model::kind::{Envelope, Extent, Kind, Misplaced, Recorded, assembled};
use model::limit::{AtPlace, Quantity};
use model::plan::service::Service;
use model::probe::Descriptor;
use model::record::{Host, MeterStatus, Outcome};
use model::slice::RoundRecord;
use model::stored::Stored;
use model::unit::Nanos;
use model::warning::Warning;
use serde::{Deserialize, Serialize};

/// A measurement of packets, as far as it came.
#[derive(Clone, Debug)]
pub struct BlastRecord {
    /// What is known before the first packet.
    pub header: Header,
    /// Complete rounds, in order.
    pub rounds: Vec<Round>,
    /// Explaining rounds, after all others: their slices keep exact accounts or count events, which disturbs them. No other figure
    /// uses them.
    pub explaining: Vec<RoundRecord>,
    /// How it ended; `None` if it was cut off.
    pub end: Option<End>,
}

/// What is known before the first packet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Header {
    /// The first line of the record.
    #[serde(skip)]
    pub envelope: Envelope,
    /// What was planned.
    pub plan: BlastPlan,
    /// The machine that sends.
    pub host: Host,
    /// All meters: which run, and why others do not.
    pub meters: Vec<MeterStatus>,
    /// The probes.
    pub probes: Vec<Descriptor>,
    /// The events that explaining rounds count, or why they count none; `None` if none were to be counted.
    pub events: Option<Events>,
    /// Who receives.
    pub receiver: Receiver,
    /// CPUs that the sending process may use.
    pub allowed_cpus: Option<usize>,
    /// Servers that it started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
}

/// Who receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receiver {
    /// Its address and port.
    pub address: String,
    /// Whether it runs on the machine that sends, so that its cycles are in the cost.
    pub same_machine: bool,
    /// Whether it sees the same network devices as the sender.
    pub same_network: bool,
    /// Size of its receive buffer as the kernel counts it, in bytes.
    pub receive_buffer: Option<u32>,
}

/// One round: every point once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Round {
    /// The machine in each slice. A point is a case; the work of its slice is what was delivered in it.
    pub slices: RoundRecord,
    /// What became of the packets, in the order of the slices of points.
    pub deliveries: Vec<Delivery>,
}

/// What became of the packets of one execution: a slice with its warm-up, until the last packet arrived or was dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Index of the point.
    pub point: usize,
    /// Packets that the kernel accepted in the slice.
    pub slice_sent: u64,
    /// Packets that it refused in the slice.
    pub slice_failed: u64,
    /// Packets that it accepted in all.
    pub sent: u64,
    /// Packets that it refused in all, by reason.
    pub failed: Vec<Counted>,
    /// Packets that the receiver counted in all, one by one.
    pub delivered: u64,
    /// Packets that arrived after one with a higher number.
    pub reordered: u64,
    /// Packets that were dropped on the way, by place.
    pub drops: Vec<Counted>,
}

/// How often something happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// What, in words: an error, a place.
    pub what: String,
    /// How often.
    pub count: u64,
}

/// How it ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct End {
    /// The outcome.
    pub outcome: Outcome,
    /// Rate of the time-stamp counter, measured over the whole time.
    pub tsc_hertz: f64,
    /// Length of the whole measurement.
    pub nanos: Nanos,
    /// Caveats that were found during the measurement.
    pub warnings: Vec<Warning>,
}

/// Adds counts to those of the same name.
pub fn add(sums: &mut Vec<Counted>, more: &[Counted]) {
    for Counted { what, count } in more {
        match sums.iter_mut().find(|sum| sum.what == *what) {
            Some(sum) => sum.count = sum.count.saturating_add(*count),
            None => sums.push(Counted { what: what.clone(), count: *count }),
        }
    }
}

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
    const KIND: Kind = Kind {
        name: "blast",
        schema: "iotoll.blast/1",
        noun: "a blast of packets",
        made_by: "iotoll blast",
        method_version: 6,
    };
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
        study(self, stored)
    }

    fn quantities() -> Vec<Quantity> {
        quantities()
    }

    fn at_places(&self, finding: &BlastFinding, then: Option<&Stored<Self>>, metric: &str) -> Vec<AtPlace> {
        at_places(finding, self, then.map(|then| &then.record), metric)
    }
}
