//! The counters that tell what a sliced command did: one row of the table each.

use crate::plan::value::{Quoted, Wrong};
use serde::{Deserialize, Serialize};

/// The word for a counter that the rehearsal chooses.
pub const AUTO: &str = "auto";

/// What one count is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// A byte.
    Bytes,
    /// An I/O, or a call that stands for one.
    Ios,
}

/// A counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name for `--count`.
    pub name: &'static str,
    /// What one count is.
    pub counts: Counted,
    /// What it counts, in words.
    pub what: &'static str,
}

/// The counters of a command's own processes, in the order in which the rehearsal prefers them.
pub const COUNTERS_BY_PREFERENCE: [Row; 8] = [
    row("io_uring", Counted::Ios, "completions in the rings of io_uring"),
    row(
        "udp",
        Counted::Ios,
        "datagrams that its network namespace sent and received while it ran, of all processes there",
    ),
    row("task:both", Counted::Bytes, "bytes that its processes read and wrote by system calls"),
    row("task:read", Counted::Bytes, "bytes that its processes read by system calls"),
    row("task:write", Counted::Bytes, "bytes that its processes wrote by system calls"),
    row("task:storage", Counted::Bytes, "bytes that its processes caused storage to read and write"),
    row("tcp", Counted::Bytes, "bytes that its TCP sockets received and had acknowledged"),
    row(SYSTEM_CALLS, Counted::Ios, "system calls of its processes"),
];

const fn row(name: &'static str, counts: Counted, what: &'static str) -> Row {
    Row { name, counts, what }
}

/// The row of a name.
pub fn find(name: &str) -> Option<&'static Row> {
    COUNTERS_BY_PREFERENCE.iter().find(|row| row.name == name)
}

/// The counter of system calls, which slows each of them.
pub const SYSTEM_CALLS: &str = "syscalls";

/// The reason of a counter that the user named.
pub const NAMED: &str = "--count";

/// Whether a counter counts what read and write move, so that task accounting sees it.
pub fn is_of_system_calls(name: &str) -> bool {
    ["task:both", "task:read", "task:write"].contains(&name)
}

/// Checks a name: `auto`, one of [`COUNTERS_BY_PREFERENCE`], `block:DEVICE`, `net:INTERFACE`, or the name of a probe, which the machine
/// decides.
///
/// # Errors
/// What was expected.
pub fn parse(text: &str) -> Result<String, Wrong> {
    let probe = text.contains(['.', ':']) && !text.starts_with("task:");
    if text == AUTO || find(text).is_some() || probe {
        return Ok(text.to_owned());
    }
    let names = COUNTERS_BY_PREFERENCE.map(|row| row.name).join(", ");
    Err(Wrong::new(format!("{}: expected auto, {names}, block:DEVICE, net:INTERFACE, or a probe", Quoted(text))))
}

/// The counter of a comparison in slices of commands, as the record keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkCounter {
    /// Its name.
    pub name: String,
    /// What one count is.
    pub counts: Counted,
    /// What it counts, in words.
    pub what: String,
    /// Why it was chosen, in words.
    pub reason: String,
    /// Least time that a count takes in the counted program, in nanoseconds; `None` if counting takes none, or if that is not
    /// measured (a probe).
    pub nanos_per_count: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_and_others_refused() {
        for name in COUNTERS_BY_PREFERENCE.map(|row| row.name).iter().chain(&[
            "auto",
            "block:vda",
            "net:eth0",
            "vmstat.pgfault",
        ]) {
            assert_eq!(parse(name).as_deref(), Ok(*name));
        }
        for text in ["", "rchar", "task:most"] {
            assert!(parse(text).unwrap_err().to_string().contains("expected auto, io_uring"), "{text}");
        }
    }
}
