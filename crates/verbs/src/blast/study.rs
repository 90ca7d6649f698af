//! From a record of packets to its finding.

use super::finding::{BlastFinding, Packets, PointFinding, SinceStored};
use super::plan::{Method, ORDERED_PAYLOAD, Point, way};
use super::record::{self, BlastRecord, Delivery, Header, Round};
use model::experiment::Metric;
use model::explained::{self, DividedCost, ExplainingRounds, Explanation, PartChange};
use model::kind::{Head, Recorded};
use model::limit::{AtPlace, Quantity};
use model::probe::Kind;
use model::record::Host;
use model::scaling::{ScalabilityFinding, scalability_of};
use model::slice::{Choice, MeasuredSlices, RoundRecord, Rounds, SliceReading, why_unmetered};
use model::stats::estimate::CONFIDENCE;
use model::stats::{Estimate, Evidence, LogRatio, Neighbours, Pair, PairedRound, Resolution, log_ratio, ratio_of_sums};
use model::stored::{self, Stored, work};
use model::unit::{Bytes, Nanos};
use model::warning::{Code, Warning, gravest_first};
use model::{group_limit, number};
use std::collections::BTreeMap;

/// Computes all numbers, compared with an earlier measurement if there is one.
pub fn study(record: &BlastRecord, stored: Option<&Stored<BlastRecord>>) -> BlastFinding {
    let mut finding = alone(record);
    if let Some(stored) = stored {
        stand_beside(&mut finding, record, stored, &alone(&stored.record));
    }
    gravest_first(&mut finding.head.warnings);
    finding
}

/// Adds the comparison with an earlier measurement.
fn stand_beside(finding: &mut BlastFinding, record: &BlastRecord, stored: &Stored<BlastRecord>, before: &BlastFinding) {
    let (then, now) = (&stored.record.header, &record.header);
    for point in &mut finding.points {
        let same = |other: &&PointFinding| other.point() == point.point();
        let Some(other) = before.points.iter().find(same) else { continue };
        let cycles = point.cycles_per_packet.zip(other.cycles_per_packet);
        point.since_stored = Some(SinceStored {
            delivered: stored::since(point.delivered, other.delivered),
            cycles_per_packet: cycles.and_then(|(now, then)| stored::since(now, then)),
        });
    }
    let place = |header: &Header| if header.receiver.same_machine { "here" } else { "remote" };
    let differing = [
        work::differs("payload", then.plan.payload, now.plan.payload),
        work::differs("batch", then.plan.batch, now.plan.batch),
        work::differs("receiver", place(then), place(now)),
    ];
    stored.stand_beside(record, differing.into_iter().flatten().collect(), &mut finding.head);
}

/// The numbers of one measurement.
fn alone(record: &BlastRecord) -> BlastFinding {
    let header = &record.header;
    let end = record.end.as_ref();
    let host = Host { tsc_hertz: end.map_or(header.host.tsc_hertz, |end| end.tsc_hertz), ..header.host.clone() };
    let points = header.plan.points();
    let rounds: Vec<RoundRecord> = record.rounds.iter().map(|round| aligned(&round.slices)).collect();
    let sums = MeasuredSlices::of(points.len(), &host, None, (Choice::AllRounds, &rounds)).rounds;
    let cpus = match header.plan.submitter_cpus.len() {
        0 => header.allowed_cpus.map_or(host.cpus, |allowed| allowed.min(host.cpus)),
        several => several.min(host.cpus),
    };
    let explaining: Vec<RoundRecord> = record.explaining.iter().map(aligned).collect();
    let (explanation, costs) = divided(header, &host, &sums, &explaining);
    let found = points.iter().enumerate().zip(costs);
    let found = found.map(|(point, cost)| PointFinding { cost, ..point_finding(record, &sums, point, cpus) });
    let method = header.plan.methods.iter().map(|method| method.name()).collect::<Vec<_>>().join(",");
    let mut finding = BlastFinding {
        head: Head::of(
            BlastRecord::KIND,
            &header.envelope,
            format!("{method} packets of {} bytes to {}", header.plan.payload, header.receiver.address),
            (&host, &header.services),
            end.map(|end| (&end.outcome, end.warnings.as_slice())),
        ),
        receiver: header.receiver.clone(),
        method,
        payload_bytes: header.plan.payload,
        slice_seconds: header.plan.slice.seconds(),
        rounds: record.rounds.len() as u64,
        seconds: end.map_or(0.0, |end| end.nanos.seconds()),
        meter: sums.meter.map(|meter| meter.name().to_owned()),
        background_fraction: sums.background_fraction(),
        points: found.collect(),
        explanation,
        published: header.plan.published.clone(),
        usl: scaling(record, &sums, cpus),
    };
    caveats(record, &rounds, &sums, &mut finding);
    finding
}

fn point_finding(record: &BlastRecord, sums: &Rounds, (place, point): (usize, &Point), cpus: usize) -> PointFinding {
    let of_point = || record.rounds.iter().filter_map(move |round| delivery(round, place));
    let seconds: f64 = record.rounds.iter().filter_map(|round| slice_seconds(round, place)).sum();
    let per_second = |of: fn(&Delivery) -> u64| {
        let count: f64 = of_point().map(|delivery| of(delivery) as f64).sum();
        if seconds > 0.0 { count / seconds } else { 0.0 }
    };
    let estimate = |metric| Some(ratio_of_sums(&sums.pairs(metric, place)?, Neighbours::Alike)?.estimate());
    let ratio = |metric| Some(ratio_of(&sums.change(metric, 0, place).filter(|_| place > 0)?));
    let delivered = estimate(Metric::Iops).unwrap_or_else(|| Estimate::bare(0.0));
    let (mut packets, mut reordered) = (Packets::default(), 0_u64);
    for delivery in of_point() {
        packets.sent = packets.sent.saturating_add(delivery.sent);
        packets.delivered = packets.delivered.saturating_add(delivery.delivered);
        reordered = reordered.saturating_add(delivery.reordered);
        record::add(&mut packets.failed, &delivery.failed);
        record::add(&mut packets.drops, &delivery.drops);
    }
    packets.reordered = (record.header.plan.payload >= ORDERED_PAYLOAD).then_some(reordered);
    let dropped = packets.drops.iter().map(|drop| drop.count).fold(0, u64::saturating_add);
    let sent = i64::try_from(packets.sent).unwrap_or(i64::MAX);
    packets.unaccounted = sent.saturating_sub_unsigned(packets.delivered).saturating_sub_unsigned(dropped);
    PointFinding {
        method: point.method,
        submitters: point.submitters,
        task_cpu: point.task_cpu,
        batch: record.header.plan.batch_of(point.method),
        oversubscribed: point.submitters as usize > cpus,
        sent_per_second: per_second(|delivery| delivery.slice_sent),
        errors_per_second: per_second(|delivery| delivery.slice_failed),
        sent_ratio: sent_ratio(record, place).filter(|_| place > 0),
        delivered_per_second: delivered.value,
        delivered,
        delivered_ratio: ratio(Metric::Iops),
        cycles_per_packet: estimate(Metric::CyclesPerIo),
        cycles_ratio: ratio(Metric::CyclesPerIo),
        context_switches_per_packet: estimate(Metric::ContextSwitchesPerIo),
        probes_per_packet: probes(record, place),
        since_stored: None,
        cost: DividedCost::default(),
        packets,
    }
}

/// The cost of each point, divided, and its change against the first.
fn divided(header: &Header, host: &Host, sums: &Rounds, rounds: &[RoundRecord]) -> (Explanation, Vec<DividedCost>) {
    let pairs: Vec<(usize, usize)> = (0..sums.cases()).map(|point| (0, point)).collect();
    let explaining = ExplainingRounds { cases: sums.cases(), host, counter: None, rounds };
    let (mut explanation, mut costs) = explaining.divide(sums, header.events.as_ref(), &pairs);
    for cost in &mut costs {
        let size = |it: &PartChange| it.candidate.value;
        cost.accounts.sort_by(|one, other| size(&other.per_io).total_cmp(&size(&one.per_io)));
        cost.accounts.sort_by_key(|account| account.kind.is_none());
        cost.events.sort_by(|one, other| size(&other.per_io).total_cmp(&size(&one.per_io)));
    }
    explanation.unexplained = explained::reason(&header.meters).filter(|_| rounds.is_empty());
    (explanation, costs)
}

/// The candidate divided by the baseline.
fn ratio_of(change: &LogRatio) -> Estimate {
    change.change(CONFIDENCE).map(|change| change + 1.0)
}

/// Packets of a point that the kernel accepted per second, divided by those of the first point.
fn sent_ratio(record: &BlastRecord, place: usize) -> Option<Estimate> {
    let pair = |round: &Round, point: usize| {
        let numerator = delivery(round, point)?.slice_sent as f64;
        Some(Pair { numerator, denominator: slice_seconds(round, point)? })
    };
    let paired = |round: &Round| Some(PairedRound { baseline: pair(round, 0)?, candidate: pair(round, place)? });
    let packets = Resolution { numerator: 1.0, denominator: 1e-9, readings: 2.0 };
    Some(ratio_of(&log_ratio(&record.rounds.iter().map(paired).collect::<Option<Vec<_>>>()?, packets)?))
}

/// What became of the packets of a point in a round.
fn delivery(round: &Round, point: usize) -> Option<&Delivery> {
    round.deliveries.iter().find(|delivery| delivery.point == point)
}

/// Length of the slice of a point in a round.
fn slice_seconds(round: &Round, point: usize) -> Option<f64> {
    let slice = round.slices.slices.iter().find(|slice| slice.case == Some(point))?;
    match &slice.reading {
        SliceReading::Slice { work, .. } => Some(work.wall_nanos.seconds()),
        SliceReading::Execution(_) | SliceReading::Command { .. } => None,
    }
}

/// The increase of each counter per delivered packet, with what it increases without packets.
fn probes(record: &BlastRecord, point: usize) -> BTreeMap<String, Option<Estimate>> {
    let counters = record.header.probes.iter().enumerate().filter(|(_, probe)| probe.kind == Kind::Counter);
    let per_packet = |number: usize| {
        let pairs = record.rounds.iter().map(|round| {
            let slice = round.slices.slices.iter().find(|slice| slice.case == Some(point))?;
            let SliceReading::Slice { before, after, work, .. } = &slice.reading else { return None };
            let value = |readings: &model::record::Snapshot| *readings.probes.as_ref()?.values.get(number)?;
            Some(Pair { numerator: value(after)? - value(before)?, denominator: work.ios as f64 })
        });
        Some(ratio_of_sums(&pairs.collect::<Option<Vec<_>>>()?, Neighbours::Alike)?.estimate())
    };
    counters.map(|(number, probe)| (probe.name.clone(), per_packet(number))).collect()
}

/// The law of each method, if the number of submitters was varied.
fn scaling(record: &BlastRecord, sums: &Rounds, cpus: usize) -> BTreeMap<String, ScalabilityFinding> {
    /// Of fewer numbers nobody expects a law.
    const FEWEST: usize = 3;
    let plan = &record.header.plan;
    if plan.submitters.len() < FEWEST {
        return BTreeMap::new();
    }
    let law = |(method, task_cpu): (Method, Option<u32>)| {
        let (points, name) = (plan.points(), way(method, task_cpu));
        let cases = points.iter().enumerate().filter(|(_, point)| (point.method, point.task_cpu) == (method, task_cpu));
        let cases: Vec<(f64, usize)> = cases.map(|(place, point)| (f64::from(point.submitters), place)).collect();
        let mut found = scalability_of(&cases, sums, cpus);
        (found.arm, found.axis) = (name.clone(), "submitters".to_owned());
        (name, found)
    };
    plan.ways().into_iter().map(law).collect()
}

fn caveats(record: &BlastRecord, rounds: &[RoundRecord], sums: &Rounds, finding: &mut BlastFinding) {
    let limits = record.rounds.iter().flat_map(|round| round.slices.limits());
    finding.head.warnings.extend(group_limit::caveats(limits, "slices"));
    let mut add = |code, message: String| finding.head.warnings.push(Warning::new(code, message));
    if record.rounds.is_empty() {
        return;
    }
    for point in &finding.points {
        let name = format!("{} with {}", point.point().way(), submitters(point.submitters));
        let packets = &point.packets;
        let unaccounted = packets.unaccounted;
        if unaccounted != 0 {
            let foreign = if unaccounted < 0 {
                "more arrived or were dropped than were sent: another sender uses the receiver or the same devices"
            } else {
                "no counter that iotoll reads explains them: a queue of this host that drops without a word (tc -s qdisc), or a \
                 device or host on the way; devices count the segments of one send, and the fragments of one packet, otherwise"
            };
            add(
                Code::PacketsUnaccounted,
                format!(
                    "{name}: {} of {} sent packets are unaccounted for; {foreign}",
                    number::separated(&unaccounted.unsigned_abs().to_string()),
                    number::separated(&packets.sent.to_string()),
                ),
            );
        }
        if packets.delivered == 0 {
            add(Code::WorkUnknown, format!("{name}: no packet was delivered, so no cost per packet exists"));
        }
    }
    if !record.header.receiver.same_machine {
        let message =
            "the receiver runs on another machine: cycles and switches are those of the sending machine alone";
        add(Code::RemoteReceiver, message.to_owned());
    }
    if finding.meter.is_none() {
        add(Code::MeterUnavailable, why_unmetered(rounds, &record.header.meters).to_owned());
    } else if let Some(busy) = sums.never_idle() {
        let message = format!(
            "the machine was {:.0} % busy without packets, so their cost cannot be told from that of others; end other programs",
            busy * 100.0
        );
        add(Code::BackgroundSqueezed, message);
    }
}

/// "1 submitter", "8 submitters".
fn submitters(number: u32) -> String {
    format!("{number} submitter{}", if number == 1 { "" } else { "s" })
}

/// The receiver is read at slightly other times than the machine. What was delivered between two snapshots is in proportion.
fn aligned(round: &RoundRecord) -> RoundRecord {
    let mut round = round.clone();
    for slice in &mut round.slices {
        if let SliceReading::Slice { before, after, work, .. } = &mut slice.reading
            && work.wall_nanos > Nanos(0)
        {
            let between = after.at_nanos.since(before.at_nanos);
            let part = between.as_f64() / work.wall_nanos.as_f64();
            work.ios = (work.ios as f64 * part).round() as u64;
            work.bytes = Bytes((work.bytes.as_f64() * part).round() as u64);
            work.wall_nanos = between;
        }
    }
    round
}

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

/// A metric at every point.
pub fn at_places(finding: &BlastFinding, now: &BlastRecord, then: Option<&BlastRecord>, name: &str) -> Vec<AtPlace> {
    let then = then.map(|then| (then, alone(then)));
    let at = |(number, point): (usize, &PointFinding)| {
        let value = value(now, (number, point), name);
        let change = then.as_ref().map(|(record, finding)| {
            let mut points = finding.points.iter().enumerate();
            let then = points.find(|(_, other)| other.point() == point.point());
            let then = self::value(record, then.ok_or("the stored measurement has no such point")?, name)?;
            let found = stored::since(value.clone()?, then);
            Ok(found.ok_or("it is unknown of one of the two")?)
        });
        let several = finding.points.len() > 1;
        let cell = if several { format!("{} × {}", point.point().way(), point.submitters) } else { String::new() };
        AtPlace { cell, arm: String::new(), value, change }
    };
    finding.points.iter().enumerate().filter(|_| !now.rounds.is_empty()).map(at).collect()
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
