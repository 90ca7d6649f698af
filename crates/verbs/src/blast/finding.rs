//! All numbers that a report of packets may show.
//!
//! This is also the JSON of `blast`, schema `iotoll.blast/1`: fields are added, never renamed. `null` means unknown.

use super::plan::{Method, Point, PublishedPackets};
use super::record::{Counted, Receiver};
use model::explained::{DividedCost, Explanation};
use model::kind::Head;
use model::scaling::ScalabilityFinding;
use model::stats::Estimate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The results of sending packets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlastFinding {
    /// Where it came from, and how it ended.
    #[serde(flatten)]
    pub head: Head,
    /// Who receives.
    pub receiver: Receiver,
    /// Names of the methods, separated by commas.
    pub method: String,
    /// Bytes of payload in each packet.
    pub payload_bytes: u32,
    /// Length of a slice.
    pub slice_seconds: f64,
    /// Rounds that were measured.
    pub rounds: u64,
    /// Length of the whole measurement.
    pub seconds: f64,
    /// Name of the meter that gives the cycles; `null` if none could.
    pub meter: Option<String>,
    /// Busy fraction of the machine without packets, which is subtracted.
    pub background_fraction: Option<f64>,
    /// Each method with each number of submitters.
    pub points: Vec<PointFinding>,
    /// What explaining rounds found.
    #[serde(flatten)]
    pub explanation: Explanation,
    /// Published figures, to stand beside the points.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub published: Vec<PublishedPackets>,
    /// The fitted rate of N submitters, by method, if their number was varied.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub usl: BTreeMap<String, ScalabilityFinding>,
}

model::headed!(BlastFinding);

/// A method with a number of submitters.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PointFinding {
    /// The method.
    pub method: Method,
    /// Number of sending threads.
    pub submitters: u32,
    /// CPU of the thread that drains the ring of `ring-task`, if it was pinned.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub task_cpu: Option<u32>,
    /// Packets of one call.
    pub batch: u32,
    /// Whether there are more submitters than CPUs that they may use.
    pub oversubscribed: bool,
    /// Packets that the kernel accepted per second.
    pub sent_per_second: f64,
    /// Packets that the kernel accepted per second, divided by those of the first point.
    pub sent_ratio: Option<Estimate>,
    /// Packets that it refused per second.
    pub errors_per_second: f64,
    /// Packets that the receiver counted per second.
    pub delivered_per_second: f64,
    /// The same with its interval.
    pub delivered: Estimate,
    /// Delivered packets per second, divided by those of the first point.
    pub delivered_ratio: Option<Estimate>,
    /// Cycles of the whole machine per delivered packet, without the background.
    pub cycles_per_packet: Option<Estimate>,
    /// Cycles per delivered packet, divided by those of the first point.
    pub cycles_ratio: Option<Estimate>,
    /// Context switches per delivered packet, without the background.
    pub context_switches_per_packet: Option<Estimate>,
    /// Increase of each counter among the probes per delivered packet; `null` if it could not be read.
    pub probes_per_packet: BTreeMap<String, Option<Estimate>>,
    /// Change against the stored measurement, if it has this point.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub since_stored: Option<SinceStored>,
    /// Its cost, divided, and its change against the first point.
    #[serde(flatten)]
    pub cost: DividedCost,
    /// What became of all packets of this point, with those outside the slices.
    pub packets: Packets,
}

impl PointFinding {
    /// The point of the plan.
    pub fn point(&self) -> Point {
        Point { method: self.method, submitters: self.submitters, task_cpu: self.task_cpu }
    }
}

/// How a point changed since an earlier measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SinceStored {
    /// Of delivered packets per second.
    pub delivered: Option<Estimate>,
    /// Of cycles per delivered packet.
    pub cycles_per_packet: Option<Estimate>,
}

/// What became of packets: sent = delivered + dropped + unaccounted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packets {
    /// Packets that the kernel accepted.
    pub sent: u64,
    /// Packets that the receiver counted.
    pub delivered: u64,
    /// Packets that arrived after one with a higher number; `null` for payloads that are too short to tell.
    pub reordered: Option<u64>,
    /// Packets that the kernel refused, by reason; not in `sent`.
    pub failed: Vec<Counted>,
    /// Packets that were dropped on the way, by place.
    pub drops: Vec<Counted>,
    /// Packets that no counter explains; negative if counters contain foreign packets.
    pub unaccounted: i64,
}
