//! Finding of a blast of packets → document: the answer, the table of points, what became of the packets, the curve.

#[cfg(test)]
pub(crate) mod fixture;

#[cfg(test)]
mod tests;

mod explained;
mod published;

use crate::blast::BlastFinding;
use crate::blast::finding::{Packets, PointFinding};
use crate::blast::record::Counted;
use crate::pages::words::Change;
use crate::pages::{limits, provenance, stored};
use model::elided_list::grouped;
use model::stats::Estimate;
use report::document::{
    Audience, Axis, Block, Body, Cell, Chart, Column, Document, Fact, Note, Point, Section, Sentence, Series, Table,
    Tone, tied,
};
use report::number::{self, COUNT, CYCLES, MISSING, Scale, separated};

impl crate::Finding for BlastFinding {
    fn document(&self) -> Document {
        let curves = Block::new("", Body::Charts(curves(self))).of(Audience::PAGE);
        let mut sections = vec![Section::new("", vec![points(self), laws(self)])];
        let explained = Section::on_page("Where the cycles of a packet go", explained::of_packets(self));
        sections.push(if self.points.len() > 1 { explained.in_full() } else { explained });
        sections.extend(limits::section(&self.head.limits, "point"));
        sections.extend([
            Section::new("Beside published figures", published::of_packets(self)).in_full(),
            Section::on_page("The curve", vec![curves]),
            Section::on_page("Packet accounting", packets(self)).in_full(),
            Section::on_page("Against the stored measurement", against_stored(self).into_iter().collect()),
        ]);
        Document {
            kind: "iotoll blast".to_owned(),
            lead: "Packets that the receiver counted one by one, and CPU cycles of the whole machine for each of them"
                .to_owned(),
            headline: headline(self),
            subjects: subjects(self),
            sections,
            provenance: provenance(self),
            ..Document::of(&self.head)
        }
    }
}

/// What one point does; of several, which delivers most and which is cheapest.
fn headline(finding: &BlastFinding) -> Vec<Sentence> {
    let (Some(first), false) = (finding.points.first(), finding.rounds == 0) else { return Vec::new() };
    let mut sentences = vec![Sentence {
        detail: Some(format!("sent {} kpps (packets + errors)", seed_form(first))),
        ..Sentence::plain(format!(
            "{}: {} packets/s delivered{}",
            name(first),
            tied(&number::with_unit(COUNT, first.delivered_per_second)),
            cost(first)
        ))
    }];
    let delivers = Contest {
        what: "delivers most",
        nobody: "No other delivers more than",
        wanted: Wanted::High,
        value: |point| Some(point.delivered),
        ratio: |point| point.delivered_ratio,
    };
    let costs = Contest {
        what: "costs least per packet",
        nobody: "No other costs less per packet than",
        wanted: Wanted::Low,
        value: |point| point.cycles_per_packet,
        ratio: |point| point.cycles_ratio,
    };
    sentences.extend([delivers, costs].iter().filter_map(|contest| contest.winner(finding, first)));
    let laws = finding.usl.iter().filter(|(_, law)| law.alone.is_some());
    sentences.extend(laws.map(|(method, law)| Sentence::plain(format!("{method}: {}", law.words))));
    sentences
}

/// "; 2.31 kcycles per packet", or nothing.
fn cost(point: &PointFinding) -> String {
    let cycles = point.cycles_per_packet;
    cycles.map_or_else(String::new, |cycles| format!(", {} each", tied(&number::with_unit(CYCLES, cycles.value))))
}

/// Which direction is better.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    High,
    Low,
}

/// What points are compared by.
struct Contest {
    what: &'static str,
    nobody: &'static str,
    wanted: Wanted,
    value: fn(&PointFinding) -> Option<Estimate>,
    ratio: fn(&PointFinding) -> Option<Estimate>,
}

impl Contest {
    /// "sendmmsg, 1 submitter delivers most: 2.10 [2.01, 2.19] × sendto, 1 submitter". The winner is chosen among many, so the sentence tells
    /// how many it is not distinguishable from. `None` without another point.
    fn winner(&self, finding: &BlastFinding, first: &PointFinding) -> Option<Sentence> {
        let value = |point: &PointFinding| match ((self.value)(point), self.wanted) {
            (None, _) => f64::NEG_INFINITY,
            (Some(one), Wanted::High) => one.value,
            (Some(one), Wanted::Low) => -one.value,
        };
        let others = finding.points.iter().filter(|point| !std::ptr::eq(*point, first));
        let others = others.filter_map(|point| Some((point, (self.ratio)(point)?)));
        let (winner, ratio) = others.max_by(|(one, _), (other, _)| value(one).total_cmp(&value(other)))?;
        if value(winner) <= value(first) {
            return Some(Sentence::plain(format!("{} {}", self.nobody, name(first))));
        }
        let better = |end: f64| if self.wanted == Wanted::High { end > 1.0 } else { end < 1.0 };
        let (tone, doubt) = match ratio.ends().map(|(low, high)| (better(low), better(high))) {
            Some((true, true)) => (Tone::Own, ""),
            Some((false, false)) => (Tone::Bad, ""),
            _ => (Tone::Plain, ", which may be chance"),
        };
        let rival = |point: &&PointFinding| {
            !std::ptr::eq(*point, winner) && overlaps((self.value)(point), (self.value)(winner))
        };
        let rivals: Vec<String> = finding.points.iter().filter(rival).map(name).collect();
        let detail = match rivals.as_slice() {
            [] => None,
            [one] => Some(format!("not distinguishable from {one}")),
            several => Some(format!("not distinguishable from {} others", several.len())),
        };
        let said = format!("{} × {}{doubt}", times(ratio), name(first));
        Some(Sentence { detail, ..Sentence::judged(format!("{} {}", name(winner), self.what), tone, said) })
    }
}

/// Whether two intervals overlap, or one is unknown.
fn overlaps(one: Option<Estimate>, other: Option<Estimate>) -> bool {
    let both = one.and_then(|one| one.ends()).zip(other.and_then(|other| other.ends()));
    both.is_none_or(|((low, high), (other_low, other_high))| low <= other_high && other_low <= high)
}

/// "2.10 [2.01, 2.19]".
fn times(ratio: Estimate) -> String {
    let ends = ratio.ends().map(|(low, high)| format!(" [{low:.2}, {high:.2}]")).unwrap_or_default();
    tied(&format!("{:.2}{ends}", ratio.value))
}

fn subjects(finding: &BlastFinding) -> Vec<Fact> {
    let mut ways: Vec<String> = finding.points.iter().map(|point| point.point().way()).collect();
    ways.dedup();
    let of = |way: String| {
        let batch = finding.points.iter().find(|point| point.point().way() == way).map_or(1, |point| point.batch);
        let text = if batch == 1 { "a call for each packet".to_owned() } else { format!("{batch} packets in a call") };
        Fact::new(way, text)
    };
    ways.into_iter().map(of).collect()
}

/// The points, one row each.
fn points(finding: &BlastFinding) -> Block {
    let probes: Vec<&String> =
        finding.points.first().map(|point| point.probes_per_packet.keys().collect()).unwrap_or_default();
    let mut columns = vec![
        Column::rows("method"),
        Column::number("submitters"),
        Column::number("sent kpps"),
        Column::number("delivered/s"),
        Column::number("±"),
        Column::number("cycles/packet"),
        Column::number("±"),
        Column::number("switches").spare(2),
    ];
    columns.extend(probes.iter().map(|probe| Column::number(probe.trim_start_matches("softirqs.")).spare(1)));
    let mut table = Table::new(columns);
    let told = |point: &PointFinding| {
        point.context_switches_per_packet.filter(|switches| switches.low.is_some_and(|low| low > 0.0))
    };
    let greatest = finding.points.iter().map(|point| point.delivered_per_second).fold(0.0, f64::max);
    let delivered = Scale::of(COUNT, greatest);
    let dearest = finding.points.iter().filter_map(|point| point.cycles_per_packet).map(|cycles| cycles.value);
    let cycles = Scale::of(CYCLES, dearest.fold(0.0, f64::max));
    for point in &finding.points {
        let ends = |units, estimate: Option<Estimate>| {
            let text = estimate.map(|one| number::plus_minus_in(units, one.value, one.low, one.high));
            Cell::new(Tone::Faint, text.unwrap_or_else(|| MISSING.to_owned()))
        };
        let unit = |number: String, unit: &str| if unit.is_empty() { number } else { format!("{number} {unit}") };
        let submitters = format!("{}{}", point.submitters, if point.oversubscribed { " *" } else { "" });
        let mut cells = vec![
            Cell::from(point.point().way()),
            Cell::from(submitters),
            Cell::from(seed_form(point)),
            Cell::new(Tone::Strong, unit(delivered.cell(point.delivered_per_second), delivered.unit)),
            ends(COUNT, Some(point.delivered)),
            Cell::new(
                Tone::Strong,
                point
                    .cycles_per_packet
                    .map_or_else(|| MISSING.to_owned(), |one| unit(cycles.cell(one.value), cycles.unit)),
            ),
            ends(CYCLES, point.cycles_per_packet),
            few(told(point)),
        ];
        cells.extend(probes.iter().map(|probe| few(point.probes_per_packet.get(*probe).copied().flatten())));
        table.row(cells);
    }
    if table.rows.is_empty() {
        return Block::new("", Body::Notes);
    }
    let counters = if probes.is_empty() { "" } else { " and counters" };
    let unknown =
        if finding.points.iter().all(|point| told(point).is_some()) { "" } else { "; — where not different from 0" };
    let mut notes = vec![Note::remark(format!(
        "Sent kpps: thousands of packets per second that the kernel accepted + refused. Switches{counters}: per delivered packet{unknown}."
    ))];
    if finding.points.iter().any(|point| point.oversubscribed) {
        notes.push(Note::remark("* more submitters than CPUs: they wait for CPUs, and are not in a fit"));
    }
    Block::new("", Body::Table(table)).with(notes)
}

/// A small count per packet.
fn few(estimate: Option<Estimate>) -> Cell {
    match estimate {
        Some(one) if number::is_about_0(one.value) || one.value < 0.0 => Cell::from("about 0"),
        Some(one) => Cell::from(number::significant(one.value)),
        None => Cell::from(MISSING),
    }
}

/// The law of each method.
fn laws(finding: &BlastFinding) -> Block {
    let law = |(method, law): (&String, &model::scaling::ScalabilityFinding)| {
        let coefficients = law.contention.zip(law.coherency).map(|(contention, coherency)| {
            let part = |one: Estimate| {
                let ends = one.ends().map(|ends| <[f64; 2]>::from(ends).map(number::significant).join(", "));
                let ends = ends.map(|ends| format!(" [{ends}]")).unwrap_or_default();
                format!("{}{ends}", number::significant(one.value))
            };
            format!(" (contention {}, coherency {})", part(contention), part(coherency))
        });
        Fact::new(format!("Scaling of {method}"), format!("{}{}", law.words, coefficients.unwrap_or_default()))
    };
    let (fitted, not): (Vec<_>, Vec<_>) = finding.usl.iter().partition(|(_, law)| law.contention.is_some());
    let mut facts: Vec<Fact> = fitted.into_iter().map(law).collect();
    // Mostly the same reason for all.
    let reasons = grouped(not.into_iter().map(|(method, law)| (law.words.as_str(), method.as_str())));
    facts.extend(reasons.into_iter().map(|(words, methods)| {
        let whom =
            if methods.len() == finding.usl.len() && methods.len() > 1 { "all".to_owned() } else { methods.join(", ") };
        Fact::new(format!("Scaling of {whom}"), words)
    }));
    Block::new("", Body::Facts(facts))
}

/// Delivered packets and cycles over the submitters, if their number was varied.
fn curves(finding: &BlastFinding) -> Vec<Chart> {
    let mut numbers: Vec<u32> = finding.points.iter().map(|point| point.submitters).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() < 2 {
        return Vec::new();
    }
    let methods = subjects(finding);
    let chart = |title: &str, units, of: fn(&PointFinding) -> Option<Estimate>| Chart {
        title: title.to_owned(),
        x: Axis::Named(numbers.iter().map(|number| (f64::from(*number), number.to_string())).collect()),
        y: Axis::Amount { units, from_zero: true },
        marks: Vec::new(),
        series: methods
            .iter()
            .enumerate()
            .map(|(subject, method)| {
                let points = finding.points.iter().filter(|point| point.point().way() == method.label);
                let points = points.filter_map(|point| {
                    let one = of(point)?;
                    let hint = format!("{}: {}", name(point), number::with_unit(units, one.value));
                    Some(Point { ends: one.ends(), hint, ..Point::new(f64::from(point.submitters), one.value) })
                });
                Series { subject, joined: true, dot: 3, points: points.collect() }
            })
            .collect(),
    };
    vec![
        chart("Delivered packets per second, by number of submitters", COUNT, |point| Some(point.delivered)),
        chart("Cycles of the whole machine per delivered packet", CYCLES, |point| point.cycles_per_packet),
    ]
}

fn against_stored(finding: &BlastFinding) -> Option<Block> {
    let stored = finding.head.stored.as_ref()?;
    let change = |change: Option<Estimate>| tied(&Change::from(change).whole());
    let facts = finding.points.iter().filter_map(|point| {
        let since = point.since_stored?;
        let text =
            format!("delivered {}, cycles per packet {}", change(since.delivered), change(since.cycles_per_packet));
        Some(Fact::new(name(point), text))
    });
    let caution = "the two were not measured side by side: the changes contain all that differs between then and now";
    Some(stored::block("measurement", stored, facts.collect(), caution, []))
}

fn provenance(finding: &BlastFinding) -> Vec<Fact> {
    let receiver = &finding.receiver;
    let place = match (receiver.same_machine, receiver.same_network) {
        (true, true) => "on this machine",
        (true, false) => "on this machine, in another network namespace",
        (false, _) => "on another machine, whose cycles are not in the cost",
    };
    let buffer = receiver
        .receive_buffer
        .map(|bytes| format!("; receive buffer {}", tied(&number::with_unit(number::BYTES, f64::from(bytes)))));
    let background = match finding.background_fraction {
        Some(busy) => {
            format!("; {} of the machine busy without packets, which is subtracted", tied(&number::percent(busy)))
        }
        None => String::new(),
    };
    let cycles = match &finding.meter {
        Some(meter) => format!("{}; meter {meter}{background}", provenance::cycles(&finding.head.host, meter == "pmu")),
        None => format!("{MISSING} no meter of the whole machine read all slices"),
    };
    let host = provenance::of_host(&finding.head.host, Audience::POST.or(Audience::PAGE));
    let made_by = provenance::made_by(&finding.head);
    let facts = vec![
        Fact::new("Receiver", format!("{} {place}{}", receiver.address, buffer.unwrap_or_default())),
        Fact::new(
            "Slices",
            format!(
                "{} of {} each, in random order; measured for {}",
                finding.rounds,
                tied(&number::seconds(finding.slice_seconds)),
                tied(&number::seconds(finding.seconds))
            ),
        ),
        Fact::new("Cycles", cycles),
    ];
    [facts, provenance::services(&finding.head.services).collect(), host, vec![made_by]].concat()
}

/// Of packets that the kernel did not accept.
const REFUSED: &str = "refused";

/// The table of the identity, and where packets were dropped or refused, if any were.
fn packets(finding: &BlastFinding) -> Vec<Block> {
    let mut table = Table::new(vec![
        Column::rows("packets of"),
        Column::number("sent"),
        Column::number("= delivered"),
        Column::number("+ dropped"),
        Column::number("+ unknown"),
        Column::number("out of order").spare(1),
    ]);
    let mut places = Vec::new();
    for point in finding.points.iter().filter(|_| finding.rounds > 0) {
        let packets = &point.packets;
        let dropped: u64 = packets.drops.iter().map(|drop| drop.count).fold(0, u64::saturating_add);
        let sign = if packets.unaccounted < 0 { "−" } else { "" };
        let tone = if packets.unaccounted == 0 { Tone::Plain } else { Tone::Bad };
        table.row(vec![
            Cell::from(short_name(point)),
            Cell::from(whole(packets.sent)),
            Cell::new(Tone::Strong, whole(packets.delivered)),
            Cell::from(whole(dropped)),
            Cell::new(tone, format!("{sign}{}", whole(packets.unaccounted.unsigned_abs()))),
            Cell::from(packets.reordered.map_or_else(|| MISSING.to_owned(), whole)),
        ]);
        let texts: Vec<String> = [("dropped", &packets.drops), (REFUSED, &packets.failed)]
            .into_iter()
            .flat_map(|(what, counted)| counted.iter().map(move |counted| told(what, counted, packets)))
            .collect();
        if !texts.is_empty() {
            places.push(Fact::new(short_name(point), texts.join("; ")));
        }
    }
    let notes = vec![Note::remark(
        "Counted over each slice with its warm-up, until the last packet arrived or was dropped. Refused packets are not in sent.",
    )];
    let notes = if table.rows.is_empty() { Vec::new() } else { notes };
    vec![
        Block::new("Packet accounting", Body::Table(table)).with(notes),
        Block::new("Where packets were dropped or refused", Body::Facts(places)),
    ]
}

/// "20,000 dropped (0.8 %): receive buffer of the socket".
fn told(what: &str, counted: &Counted, packets: &Packets) -> String {
    // What was refused was not sent, so its whole is what was tried.
    let refused: f64 = packets.failed.iter().map(|failed| failed.count as f64).sum();
    let whole = packets.sent as f64 + if what == REFUSED { refused } else { 0.0 };
    let part = number::percent(counted.count as f64 / whole);
    format!("{} ({}): {}", tied(&format!("{} {what}", self::whole(counted.count))), tied(&part), counted.what)
}

fn whole(count: u64) -> String {
    separated(&count.to_string())
}

/// "sendto, 1 submitter" without what all points share.
pub fn name(point: &PointFinding) -> String {
    let noun = if point.submitters == 1 { "submitter" } else { "submitters" };
    format!("{}, {} {noun}", point.point().way(), point.submitters)
}

/// The same in a table: "sendto × 4".
pub fn short_name(point: &PointFinding) -> String {
    format!("{} × {}", point.point().way(), point.submitters)
}

/// Thousands of packets per second as netblast's users write them: sent + errors.
pub fn seed_form(point: &PointFinding) -> String {
    format!("{:.0}+{:.0}", point.sent_per_second / 1e3, point.errors_per_second / 1e3)
}
