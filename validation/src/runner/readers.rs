//! Values that no path finds: computed from the record that a command saved, or from its output file.

mod accounts;
mod ftq;
mod regimes;

use crate::bench::Bench;
use crate::bench::rounds::{deviation, median};
use anyhow::{Context, ensure};
use model::meter::Meter;
use model::record::{Mode, Record, Snapshot, Stretch};
use serde_json::Value;
use std::collections::BTreeMap;

/// A name, the names of its values, and a function from the words behind the name to these values.
type Reader = (&'static str, &'static [&'static str], fn(&Bench, &[String]) -> anyhow::Result<Vec<f64>>);

const TABLE: [Reader; 6] = [
    ("accounts", &["net", "gross", "busy", "count", "other", "of_all", "stolen"], accounts::read),
    ("counting", &["counts_per_io", "nanos_per_count", "slower", "of_the_run"], counting),
    ("idle slices", &["count", "middle", "usual", "deviation"], idle_slices),
    ("kept", &["kept"], kept),
    ("regimes", &["two", "rests"], regimes::read),
    ("shuffled", &["shuffled"], ftq::shuffled),
];

/// The values of a reader, by the words of an arm.
pub fn read(bench: &Bench, words: &[String]) -> anyhow::Result<BTreeMap<String, f64>> {
    let Some((name, words)) = words.split_first() else { return Ok(BTreeMap::new()) };
    let (_, names, of) =
        TABLE.iter().find(|row| row.0 == name).with_context(|| format!("no reader is named {name}"))?;
    Ok(names.iter().map(|&name| name.to_owned()).zip(of(bench, words)?).collect())
}

/// The lines of the record.
pub fn lines_of_record(bench: &Bench) -> anyhow::Result<Vec<Value>> {
    let text = std::fs::read_to_string(bench.path("record/record.jsonl")).context("no record was saved")?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// The record of a finished run or command.
fn record(bench: &Bench) -> anyhow::Result<Record> {
    let mut last = lines_of_record(bench)?.pop().context("an empty record")?;
    Ok(serde_json::from_value(last.get_mut("measured").context("an unfinished record")?.take())?)
}

/// Of the only execution.
fn stretch(record: &Record) -> anyhow::Result<&Stretch> {
    let execution = record.phases.first().and_then(|phase| phase.executions.first()).context("no execution")?;
    Ok(&execution.stretch)
}

/// The snapshots at both ends of each window.
fn windows(stretch: &Stretch) -> impl Iterator<Item = (&Snapshot, &Snapshot)> {
    stretch.snapshots.iter().zip(stretch.snapshots.iter().skip(1))
}

/// What counting events adds to an I/O: its time in the windows in which events are counted, beside that in the undisturbed ones.
fn counting(bench: &Bench, _: &[String]) -> anyhow::Result<Vec<f64>> {
    let record = record(bench)?;
    let (mut quiet, mut counted, mut counts, mut all) = ((0.0, 0.0), (0.0, 0.0), 0.0, 0.0);
    for (before, after) in windows(stretch(&record)?) {
        let nanos = after.at_nanos.since(before.at_nanos).as_f64();
        all += nanos;
        if let (Mode::Quiet, Some(first), Some(last)) = (before.mode, before.done, after.done) {
            quiet = (quiet.0 + nanos, quiet.1 + last.ios.saturating_sub(first.ios) as f64);
        }
        for events in &after.events {
            let done = events.done.map_or(0.0, |done| done.ios as f64);
            counted = (counted.0 + events.end_nanos.since(events.begin_nanos).as_f64(), counted.1 + done);
            counts += events.counts.values().map(|count| *count as f64).sum::<f64>();
        }
    }
    ensure!(quiet.1 > 0.0 && counted.1 > 0.0 && counts > 0.0, "nothing was counted");
    let (without, with, counts_per_io) = (quiet.0 / quiet.1, counted.0 / counted.1, counts / counted.1);
    let slower = with / without - 1.0;
    Ok(vec![counts_per_io, (with - without) / counts_per_io, slower, slower * counted.0 / all])
}

/// The part of the time in which accounts were kept.
fn kept(bench: &Bench, _: &[String]) -> anyhow::Result<Vec<f64>> {
    let record = record(bench)?;
    let (mut kept, mut all) = (0.0, 0.0);
    for (before, after) in windows(stretch(&record)?) {
        let nanos = after.at_nanos.since(before.at_nanos).as_f64();
        all += nanos;
        kept += if before.mode == Mode::Alone(Meter::Accounts) { nanos } else { 0.0 };
    }
    Ok(vec![kept / all])
}

/// Busy CPUs, less those of its thread, in the slices of a comparison in which a load ran (`true`) or none (`false`): how many slices, their
/// median, the median deviation from it, and the standard deviation.
fn idle_slices(bench: &Bench, words: &[String]) -> anyhow::Result<Vec<f64>> {
    let mut found = Vec::new();
    for line in lines_of_record(bench)? {
        for slice in line.pointer("/round/slices").and_then(Value::as_array).into_iter().flatten() {
            let reading = slice.pointer("/reading/slice").context("a slice has no reading")?;
            let at = |end: &str, key: &str| reading.pointer(&format!("/{end}/{key}")).and_then(Value::as_f64);
            let grown = |key: &str| Some(at("after", key)? - at("before", key)?);
            let count = |name: &str| grown(&format!("counts/timer_list/{name}"));
            let (length, idle) =
                count("at_nanos").zip(count("total")).context("the idle clock cannot be read: run as root")?;
            let cpus = at("after", "counts/timer_list/cpus").unwrap_or(0.0);
            let own = grown("own_nanos").unwrap_or(0.0) + at("work", "thread_nanos").unwrap_or(0.0);
            let wanted = words.first().is_some_and(|word| *word == (!slice["case"].is_null()).to_string());
            found.extend(wanted.then_some(cpus - (idle + own) / length));
        }
    }
    let middle = median(&found);
    let usual = median(&found.iter().map(|busy| (busy - middle).abs()).collect::<Vec<_>>());
    Ok(vec![found.len() as f64, middle, usual, deviation(&found)])
}

/// For the test of experiment files.
#[cfg(test)]
pub fn values_of(words: &[String]) -> Vec<String> {
    let Some(name) = words.first() else { return Vec::new() };
    let row = TABLE.iter().find(|row| row.0 == name).unwrap_or_else(|| panic!("no reader is named {name}"));
    row.1.iter().map(|&name| name.to_owned()).collect()
}
