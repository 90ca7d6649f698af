//! Kernel counters that show which path the I/O took.

use super::super::stack::{Counter, Source};
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

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
