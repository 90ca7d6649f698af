//! What packets say of each metric that `--fail-on` can limit: at every point, a method with a number of submitters.

use super::finding::{BlastFinding, PointFinding};
use super::record::BlastRecord;
use crate::limit::{self, AtPlace, LimitFinding, Quantity};
use crate::stats::{Estimate, Neighbours, Pair, ratio_of_sums};
use crate::stored::UnpairedChange;

const PACKETS: &str = "packets_per_second";
const CYCLES: &str = "cycles_per_packet";
const SWITCHES: &str = "context_switches_per_packet";
const LOSS: &str = "loss_share";

pub(crate) fn quantities() -> Vec<Quantity> {
    let row = |name, unit| Quantity { name, unit };
    vec![
        row(PACKETS, "packets/s"),
        row(CYCLES, "cycles/packet"),
        row(SWITCHES, "switches/packet"),
        row(LOSS, "fraction"),
    ]
}

/// Every limit of the record. `earlier` is the stored measurement.
pub(super) fn judge(
    (record, finding): (&BlastRecord, &BlastFinding),
    earlier: Option<(&BlastRecord, &BlastFinding)>,
) -> Vec<LimitFinding> {
    let at = |number: usize, point: &PointFinding, name: &str| {
        let value = value(record, (number, point), name);
        let change = earlier.map(|(record, finding)| {
            let mut points = finding.points.iter().enumerate();
            let then = points.find(|(_, other)| other.point() == point.point());
            let then = self::value(record, then.ok_or("the stored measurement has no such point")?, name)?;
            let found = UnpairedChange::since(value.clone()?, then).ok_or("it is unknown of one of the two")?;
            Ok(Estimate { value: found.change, low: found.low, high: found.high })
        });
        let several = finding.points.len() > 1;
        let cell = if several { format!("{} × {}", point.point().way(), point.submitters) } else { String::new() };
        AtPlace { cell, arm: String::new(), value, change }
    };
    limit::judge(&record.header.envelope.limits, |name| {
        let points = finding.points.iter().enumerate().filter(|_| !record.rounds.is_empty());
        points.map(|(number, point)| at(number, point, name)).collect()
    })
}

fn value(record: &BlastRecord, (number, point): (usize, &PointFinding), name: &str) -> Result<Estimate, String> {
    let found = match name {
        PACKETS => Some(point.delivered),
        CYCLES => point.cycles_per_packet,
        SWITCHES => point.context_switches_per_packet,
        _ => lost(record, number),
    };
    found.ok_or_else(|| "it is unknown; a caveat says why".to_owned())
}

/// The part of the sent packets that did not arrive, over the rounds.
fn lost(record: &BlastRecord, point: usize) -> Option<Estimate> {
    let deliveries =
        record.rounds.iter().flat_map(|round| &round.deliveries).filter(|delivery| delivery.point == point);
    let rounds: Vec<Pair> = deliveries
        .map(|delivery| Pair {
            numerator: delivery.sent as f64 - delivery.delivered as f64,
            denominator: delivery.sent as f64,
        })
        .collect();
    Some(ratio_of_sums(&rounds, Neighbours::Alike)?.estimate())
}
