//! All numbers of a blast of packets in raw units, one row each.

use crate::document::{Cell, Column, Table};
use model::blast::BlastFinding;
use model::stats::Estimate;

const COLUMNS: [&str; 8] = ["method", "submitters", "metric", "of", "unit", "value", "low", "high"];

pub(super) fn table(finding: &BlastFinding) -> Table {
    let mut table = Table::new(COLUMNS.map(Column::text).to_vec());
    for point in &finding.points {
        let mut line = |metric: &str, of: &str, unit: &str, value: Option<Estimate>| {
            let (method, submitters) = (point.point().way(), point.submitters.to_string());
            let names = [&method, &submitters, metric, of, unit].map(Cell::from);
            let numbers = [value.map(|one| one.value), value.and_then(|one| one.low), value.and_then(|one| one.high)];
            table.row(names.into_iter().chain(numbers.map(Cell::number)).collect());
        };
        let bare = |value: f64| Some(Estimate::bare(value));
        line("sent", "", "packets/s", bare(point.sent_per_second));
        line("errors", "", "packets/s", bare(point.errors_per_second));
        line("delivered", "", "packets/s", Some(point.delivered));
        line("sent_ratio", "", "", point.sent_ratio);
        line("delivered_ratio", "", "", point.delivered_ratio);
        line("cycles_per_packet", "", "cycles", point.cycles_per_packet);
        line("cycles_ratio", "", "", point.cycles_ratio);
        line("context_switches_per_packet", "", "switches", point.context_switches_per_packet);
        for (probe, per_packet) in &point.probes_per_packet {
            line("probe_per_packet", probe, "", *per_packet);
        }
        for account in &point.accounts {
            line("account_cycles_per_packet", &account.name, "cycles", Some(account.cycles_per_packet));
            if let Some(change) = account.change_cycles_per_packet {
                line("account_change_cycles_per_packet", &account.name, "cycles", Some(change));
            }
        }
        for event in &point.events {
            line("event_per_packet", &event.name, "", Some(event.count_per_packet));
            if let Some(change) = event.change_per_packet {
                line("event_change_per_packet", &event.name, "", Some(change));
            }
        }
        let packets = &point.packets;
        for (metric, count) in [
            ("packets_sent", packets.sent as f64),
            ("packets_delivered", packets.delivered as f64),
            ("packets_unaccounted", packets.unaccounted as f64),
        ] {
            line(metric, "", "packets", bare(count));
        }
        line("packets_reordered", "", "packets", packets.reordered.and_then(|count| bare(count as f64)));
        for drop in &packets.drops {
            line("packets_dropped", &drop.what, "packets", bare(drop.count as f64));
        }
        for failed in &packets.failed {
            line("packets_refused", &failed.what, "packets", bare(failed.count as f64));
        }
    }
    table
}
