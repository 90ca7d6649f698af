//! Kernel counters that show which path the I/O took.

use super::super::stack::{Counter, Source};
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Reads each counter; those that cannot be read are absent. `file` is one of the job's.
pub(super) fn read(counters: &[Counter], file: Option<&Path>) -> BTreeMap<&'static str, i64> {
    counters.iter().filter_map(|counter| Some((counter.name, value(counter.source, file)?))).collect()
}

/// The increases between two readings. States stay as they are.
pub(super) fn increases(
    counters: &[Counter],
    before: &BTreeMap<&'static str, i64>,
    after: &BTreeMap<&'static str, i64>,
) -> BTreeMap<String, i64> {
    let increase = |counter: &Counter| {
        let after = *after.get(counter.name)?;
        let is_state = matches!(counter.source, Source::Dax | Source::FileSystem(_));
        let value = if is_state { after } else { after - before.get(counter.name)? };
        Some((counter.name.to_owned(), value))
    };
    counters.iter().filter_map(increase).collect()
}

/// All counters of a program of Ceph, from the socket of its administration: a command ends with a zero, an answer begins with
/// its length.
fn administration(socket: &str) -> Option<serde_json::Value> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    stream.write_all(b"{\"prefix\": \"perf dump\"}\0").ok()?;
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut answer = Vec::new();
    stream.take(u64::from(u32::from_be_bytes(length))).read_to_end(&mut answer).ok()?;
    serde_json::from_slice(&answer).ok()
}

/// A counter's sum over the sections that begin so; `None` if none has it.
fn ceph(all: &serde_json::Value, section: &str, name: &str) -> Option<i64> {
    let sections = all.as_object()?.iter().filter(|(key, _)| key.starts_with(section));
    let values: Vec<i64> = sections.filter_map(|(_, counters)| counters.get(name)?.as_i64()).collect();
    (!values.is_empty()).then(|| values.into_iter().sum())
}

fn value(source: Source, file: Option<&Path>) -> Option<i64> {
    match source {
        Source::Block(device, field) => {
            let text = fs::read_to_string(format!("/sys/block/{device}/stat")).ok()?;
            let fields: Vec<i64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            // All fields that count I/Os: reads, writes, discards.
            if field == usize::MAX {
                return Some([0, 4, 11].iter().filter_map(|field| fields.get(*field)).sum());
            }
            fields.get(field).copied()
        }
        Source::Sectors(names) => {
            let text = fs::read_to_string("/proc/vmstat").ok()?;
            let lines = text.lines().filter_map(|line| line.split_once(' '));
            let kibs =
                lines.filter(|(name, _)| names.contains(name)).filter_map(|(_, value)| value.parse::<i64>().ok());
            Some(kibs.sum::<i64>() * 2)
        }
        Source::Transport(name, field) => {
            let text = fs::read_to_string("/proc/self/mountstats").ok()?;
            let line = text.lines().find_map(|line| line.trim().strip_prefix("xprt:")?.trim().strip_prefix(name))?;
            line.split_whitespace().nth(field)?.parse().ok()
        }
        Source::Operation(name, field) => {
            let text = fs::read_to_string("/proc/self/mountstats").ok()?;
            let line = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))?;
            line.split_whitespace().nth(field)?.parse().ok()
        }
        Source::File(path) => fs::read_to_string(path).ok()?.trim().parse().ok(),
        Source::BytesSent(interface) => {
            let text = fs::read_to_string("/proc/net/dev").ok()?;
            let own = text.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'))?;
            // Behind eight fields of what was received.
            own.split_whitespace().nth(8)?.parse().ok()
        }
        Source::Ceph(socket, section, name) => ceph(&administration(socket)?, section, name),
        Source::Dax => {
            let state = rustix::fs::statx(CWD, file?, AtFlags::empty(), StatxFlags::BASIC_STATS).ok()?;
            Some(i64::from(state.stx_attributes.contains(StatxAttributes::DAX)))
        }
        Source::FileSystem(kind) => {
            let state = rustix::fs::statfs(file?).ok()?;
            Some(i64::from(u64::try_from(state.f_type).ok() == Some(kind)))
        }
    }
}
