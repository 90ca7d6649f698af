//! Counts how often a process and the children that it starts later pass a tracepoint.

use super::{Attributes, TYPE_TRACEPOINT, open_event, tracepoint};
use std::fs::File;
use std::io::{self, Read};

/// Children inherit the event, and its reading includes them.
const FLAG_INHERIT: u64 = 1 << 1;

/// A counter of one tracepoint in one process.
#[derive(Debug)]
pub struct TaskTracepoint {
    event: File,
}

impl TaskTracepoint {
    /// Starts counting in `process`, which has one thread.
    ///
    /// # Errors
    /// Without permission, or if there is no such tracepoint or process; the error reports which.
    pub fn open(process: u32, group: &str, name: &str) -> io::Result<Self> {
        const ANY_CPU: libc::c_int = -1;
        let config = tracepoint::number(group, name)?;
        let attributes = Attributes { kind: TYPE_TRACEPOINT, config, flags: FLAG_INHERIT, ..Attributes::default() };
        let process = libc::pid_t::try_from(process).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
        open_event(attributes, process, ANY_CPU).map(|event| Self { event: File::from(event) })
    }

    /// Passes since the counter was opened, of the process and its children, ended ones too.
    ///
    /// # Errors
    /// As read(2).
    pub fn read(&self) -> io::Result<u64> {
        let mut bytes = [0u8; 8];
        (&self.event).read_exact(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_process_is_an_error() {
        assert!(TaskTracepoint::open(u32::MAX, "sched", "sched_switch").is_err());
    }
}
