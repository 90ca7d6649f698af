//! What became of the packets: sent = delivered + dropped + unaccounted.

use super::{remark, short_name};
use crate::document::{Block, Body, Cell, Column, Fact, Table, Tone};
use crate::number::{self, MISSING};
use crate::phrase::tied;
use model::blast::BlastFinding;
use model::blast::finding::Packets;
use model::blast::record::Counted;
use model::thousands::separated;

/// Of packets that the kernel did not accept.
const REFUSED: &str = "refused";

/// The table of the identity, and where packets were dropped or refused, if any were.
pub(super) fn blocks(finding: &BlastFinding) -> Vec<Block> {
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
    let notes = vec![remark(
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
