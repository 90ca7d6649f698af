//! What to record: a worker, and how often it is read; and what the recorder read, before anything is computed from it.

use super::{FtqFinding, at_places, quantities, study};
use model::group_limit::GroupLimit;
use model::kind::{Envelope, Extent, Kind, Misplaced, Recorded, assembled};
use model::limit::{AtPlace, Quantity};
use model::plan::Plan;
use model::plan::service::Service;
use model::probe::Descriptor;
use model::record::{Host, Outcome};
use model::stored::Stored;
use model::unit::Nanos;
use model::warning::Warning;
use serde::{Deserialize, Serialize};

/// Quantum of the seed's figures: 440 µs.
pub const QUANTUM: Nanos = Nanos(440_000);
/// Shortest quantum: a reading of the worker alone takes about 1 µs, one probe of /proc/vmstat 27 µs.
pub const SHORTEST_QUANTUM: Nanos = Nanos(10_000);
/// Most quanta of one recording: an hour of quanta of 440 µs is 8.2 million.
pub const MOST_QUANTA: u64 = 20_000_000;

/// A plan for `iotoll ftq`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FtqPlan {
    /// The worker whose progress is read.
    pub worker: Worker,
    /// Time between two deadlines of the recorder.
    pub quantum: Nanos,
    /// Length of the recording.
    pub duration: Nanos,
    /// CPU of the recorder; `None` if the scheduler chooses.
    pub recorder_cpu: Option<u32>,
    /// CPU of the worker, if iotoll starts it; `None` if the scheduler chooses.
    pub worker_cpu: Option<u32>,
    /// Seed of random offsets and of the study's shuffled series.
    pub seed: u64,
}

/// Whose progress is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Worker {
    /// One thread of iotoll that does the I/O of this plan, which has one job, without pause.
    Job(Box<Plan>),
    /// One thread of iotoll that computes without pause (`--cpu`): FTQ itself.
    #[default]
    Cpu,
    /// A command that iotoll starts.
    Command(Vec<String>),
    /// A process that runs already (`--pid`).
    Process(u32),
}

/// A recording, as far as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct FtqRecord {
    /// What is known before the first reading.
    pub header: Header,
    /// The readings in order of time, in pieces as they were saved.
    pub chunks: Vec<Chunk>,
    /// How it ended; `None` if it was cut off.
    pub end: Option<End>,
}

/// What is known before the first reading.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The first line of the record.
    #[serde(skip)]
    pub envelope: Envelope,
    /// What was planned.
    pub plan: FtqPlan,
    /// The machine.
    pub host: Host,
    /// The worker in words: "ioengine=psync rw=write bs=4k filename=/data/f".
    pub worker: String,
    /// Where the worker's amount was read, in words: "bytes that its system calls wrote (/proc/PID/io, wchar)".
    pub counted_by: String,
    /// What is counted: `bytes`, or `steps` of computing.
    pub unit: String,
    /// The probes, in the order of [`Chunk::probes`].
    pub probes: Vec<Descriptor>,
    /// Servers that it started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
}

/// Consecutive readings, by column. A reading is a row; every column has as many rows as `at`.
///
/// Amounts are cumulative counters. A reading belongs to the deadline that it was taken after: deadlines that passed
/// before it have no reading, and nothing is invented for them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chunk {
    /// When the reading began, since the recording began.
    pub at: Vec<Nanos>,
    /// Amount that the worker did until then, since it began.
    pub amount: Vec<u64>,
    /// By probe its values; `None` if it could not be read.
    pub probes: Vec<Vec<Option<f64>>>,
}

/// How it ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// The outcome.
    pub outcome: Outcome,
    /// Caveats of recording.
    pub warnings: Vec<Warning>,
    /// What the recorder itself cost.
    pub recorder: RecorderCost,
    /// The system calls or I/Os that the worker made, if it counts them.
    pub ios: Option<u64>,
    /// The limits of its control groups before the first reading and after the last; empty if they have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group_limits: Vec<Vec<GroupLimit>>,
}

/// What the recorder itself cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecorderCost {
    /// CPU that it ran on, if it was pinned.
    pub cpu: Option<u32>,
    /// CPU time of its thread.
    pub cpu_nanos: Nanos,
    /// Time of all readings.
    pub reading_nanos: Nanos,
    /// Longest reading.
    pub longest_reading_nanos: Nanos,
}

impl Chunk {
    /// Whether every column has as many rows as there are times, which ascend.
    pub fn is_table(&self, probes: usize) -> bool {
        let rows = self.at.len();
        self.amount.len() == rows
            && self.probes.len() == probes
            && self.probes.iter().all(|column| column.len() == rows)
            && self.at.is_sorted()
    }

    /// Whether it begins before an earlier one ends.
    pub fn is_before(&self, earlier: Option<&Self>) -> bool {
        let last = earlier.and_then(|chunk| chunk.at.last());
        matches!((last, self.at.first()), (Some(last), Some(first)) if first < last)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The quantum of records in tests, in nanoseconds.
    pub(crate) const QUANTUM: f64 = 440_000.0;

    /// A record of a process that does I/O, with these times in nanoseconds and amounts, and these probes.
    pub(crate) fn record_of(
        rows: impl Iterator<Item = (u64, u64)>,
        probes: Vec<(Descriptor, Vec<Option<f64>>)>,
    ) -> FtqRecord {
        let (at, amount) = rows.map(|(at, amount)| (Nanos(at), amount)).unzip();
        let (descriptors, probes) = probes.into_iter().unzip();
        let chunk = Chunk { at, amount, probes };
        let plan = FtqPlan {
            worker: Worker::Process(1),
            quantum: Nanos(QUANTUM as u64),
            duration: chunk.at.last().copied().unwrap_or_default(),
            seed: 1,
            ..FtqPlan::default()
        };
        let header = Header { plan, unit: "bytes".to_owned(), probes: descriptors, ..Header::default() };
        FtqRecord { header, chunks: vec![chunk], end: Some(End::default()) }
    }
}

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
    const KIND: Kind =
        Kind { name: "ftq", schema: "iotoll.ftq/1", noun: "a recording", made_by: "iotoll ftq", method_version: 3 };
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
        study(self, stored)
    }

    fn quantities() -> Vec<Quantity> {
        quantities()
    }

    fn at_places(&self, finding: &FtqFinding, then: Option<&Stored<Self>>, metric: &str) -> Vec<AtPlace> {
        at_places(finding, self, then.map(|then| &then.record), metric)
    }
}
