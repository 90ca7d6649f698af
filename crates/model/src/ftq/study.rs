//! From a recording to its finding.

use super::finding::{FtqFinding, Noise, Pictures, SCHEMA};
use super::record::FtqRecord;
use crate::record::Outcome;
use crate::stored::Stored;

/// Computes all numbers of a recording, compared with an earlier one if there is one.
pub fn study(record: &FtqRecord, _stored: Option<&Stored<FtqRecord>>) -> FtqFinding {
    let header = &record.header;
    let quantum = header.plan.quantum.as_f64() / 1e9;
    let rows: Vec<(f64, u64)> = record
        .chunks
        .iter()
        .flat_map(|chunk| chunk.at.iter().zip(&chunk.amount).map(|(at, amount)| (at.as_f64() / 1e9, *amount)))
        .collect();
    let amount = rows.last().map_or(0, |last| last.1) - rows.first().map_or(0, |first| first.1);
    let seconds = rows.last().map_or(0.0, |last| last.0) - rows.first().map_or(0.0, |first| first.0);
    let mut pictures = Pictures::default();
    for pair in rows.windows(2) {
        let [(before, done_before), (at, done)] = pair else { continue };
        let span = ((at - before) / quantum).round().max(1.0);
        pictures.seconds.push(*at);
        pictures.spans.push(span as u32);
        pictures.amount_per_quantum.push(done.saturating_sub(*done_before) as f64 / span);
    }
    FtqFinding {
        schema: SCHEMA.to_owned(),
        method_version: header.envelope.method_version,
        started_unix_seconds: header.envelope.started_unix_seconds,
        command_line: header.envelope.command_line.clone(),
        host: header.host.clone(),
        worker: header.worker.clone(),
        counted_by: header.counted_by.clone(),
        unit: header.unit.clone(),
        quantum_seconds: quantum,
        quanta: pictures.spans.iter().map(|span| u64::from(*span)).sum(),
        readings: rows.len() as u64,
        late: pictures.spans.iter().filter(|span| **span > 1).count() as u64,
        longest_span: u64::from(pictures.spans.iter().copied().max().unwrap_or(0)),
        bytes: (header.unit == "bytes").then_some(amount),
        amount,
        seconds,
        amount_per_second: if seconds > 0.0 { amount as f64 / seconds } else { 0.0 },
        recorder: record.end.as_ref().map_or_else(Default::default, |end| end.recorder.clone()),
        noise: Noise::default(),
        periodic: Vec::new(),
        stalls: Vec::new(),
        stall_count: 0,
        probes: Vec::new(),
        against: None,
        outcome: record.end.as_ref().map_or(Outcome::Interrupted, |end| end.outcome.clone()),
        warnings: record.end.as_ref().map_or_else(Vec::new, |end| end.warnings.clone()),
        pictures,
    }
}
