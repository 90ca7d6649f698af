//! The amount that the worker has done so far, and where it is read.

use crate::engine::ledger::LiveCounters;
use crate::error::{Error, Result};
use crate::probe::{ProbeSet, WorkerTask};
use model::plan::Access;
use model::probe::{Kind, Probe};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Where the amount of a worker is read.
pub(super) enum Amount {
    /// Bytes that a worker thread of iotoll has done.
    Bytes(Arc<LiveCounters>),
    /// Steps that a worker thread of iotoll has computed.
    Steps(Arc<LiveCounters>),
    /// Bytes of the system calls of a process.
    Process(ProcessIo),
    /// A probe that the user named.
    Probe(ProbeSet),
}

/// An amount with its words for the record.
pub(super) struct Counted {
    pub amount: Amount,
    /// Where it is read, in words.
    pub by: String,
    /// What is counted.
    pub unit: String,
}

impl Amount {
    /// The amount now; `None` if the worker or its counter is gone. Does not allocate.
    pub fn read(&mut self) -> Option<u64> {
        match self {
            Self::Bytes(live) => Some(live.bytes()),
            Self::Steps(live) => Some(live.ios()),
            Self::Process(io) => io.read(),
            Self::Probe(probes) => {
                let mut value = [None];
                probes.read_into(&mut value);
                let [value] = value;
                value.map(|value| value as u64)
            }
        }
    }
}

/// /proc/PID/io of a process: the bytes that its system calls read and wrote, in all its threads and in children that it
/// waited for. It does not see io_uring and memory maps, and sendfile(2) counts as reading and as writing.
pub(super) struct ProcessIo {
    file: File,
    reads: bool,
    writes: bool,
}

impl ProcessIo {
    fn read(&mut self) -> Option<u64> {
        let mut bytes = [0; 512];
        let length = self.file.read_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(bytes.get(..length)?).ok()?;
        let of = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
        let read = if self.reads { of("rchar:")? } else { 0 };
        let wrote = if self.writes { of("wchar:")? } else { 0 };
        Some(read + wrote)
    }
}

/// The amount of a process by its system calls, in these directions.
///
/// # Errors
/// Refused, when there is no such process, or this user may not see its I/O.
pub(super) fn of_process(process: u32, access: Access) -> Result<Counted> {
    let path = format!("/proc/{process}/io");
    let (reads, writes, by) = match access {
        Access::Read => (true, false, "read (/proc/PID/io, rchar)"),
        Access::Write => (false, true, "wrote (/proc/PID/io, wchar)"),
        _ => (true, true, "read and wrote (/proc/PID/io, rchar + wchar)"),
    };
    let refused = |error: std::io::Error| {
        let mend = match error.kind() {
            ErrorKind::NotFound => format!("there is no process {process}; pgrep finds processes by name"),
            ErrorKind::PermissionDenied => {
                format!("{path}: {error}; it belongs to another user: run as root, or name a counter with --count")
            }
            _ => format!("{path}: {error}; name a counter with --count"),
        };
        Error::Refused(mend)
    };
    let mut io = ProcessIo { file: File::open(&path).map_err(refused)?, reads, writes };
    // Opening succeeds without the permission to read.
    let mut byte = [0];
    io.file.read_at(&mut byte, 0).map_err(refused)?;
    io.read().ok_or_else(|| refused(std::io::Error::other("has no rchar and wchar")))?;
    Ok(Counted { amount: Amount::Process(io), by: format!("bytes that its system calls {by}"), unit: "bytes".into() })
}

/// The amount by a probe that the user named.
///
/// # Errors
/// Refused, when it cannot be read, or is not a counter.
pub(super) fn of_probe(probe: &Probe, task: WorkerTask) -> Result<Counted> {
    let descriptor = &probe.descriptor;
    if descriptor.kind != Kind::Counter {
        let name = &descriptor.name;
        return Err(Error::Refused(format!("--count {name}: is a gauge; name a counter, which only grows")));
    }
    let probes = ProbeSet::open_beside(std::slice::from_ref(probe), Some(task))?;
    let unit = if descriptor.unit.is_empty() { "counts" } else { &descriptor.unit };
    Ok(Counted {
        amount: Amount::Probe(probes),
        by: format!("{} (probe {})", descriptor.meaning, descriptor.name),
        unit: unit.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_process_is_counted_by_direction() {
        let mut wrote = of_process(std::process::id(), Access::Write).unwrap();
        let mut both = of_process(std::process::id(), Access::ReadWrite).unwrap();
        let (before, before_both) = (wrote.amount.read().unwrap(), both.amount.read().unwrap());
        tempfile::tempfile().unwrap().write_all(&[1; 100_000]).unwrap();
        let after = wrote.amount.read().unwrap();
        assert!((100_000..10_000_000).contains(&(after - before)), "{before} {after}");
        assert!(both.amount.read().unwrap() >= before_both + 100_000);
    }

    #[test]
    fn a_process_that_is_not_there_is_refused() {
        let why = of_process(u32::MAX / 4, Access::Write).err().unwrap().to_string();
        assert!(why.contains("there is no process"), "{why}");
    }

    #[test]
    fn only_a_counter_counts() {
        let task = WorkerTask::Process(std::process::id());
        let of = |name: &str| of_probe(&Probe::parse(name).unwrap(), task);
        assert!(of("dirty").err().unwrap().to_string().contains("is a gauge"));
        let mut faults = of("page_faults").unwrap();
        assert!(faults.amount.read() > Some(0));
        assert_eq!(faults.unit, "faults");
    }
}
