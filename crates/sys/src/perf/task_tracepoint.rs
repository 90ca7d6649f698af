//! Counts how often a process and the children that it starts later pass a tracepoint.

use super::{ATTRIBUTES_SIZE, Attributes, OPEN_CLOEXEC, TYPE_TRACEPOINT, described};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

/// Children inherit the event, and its reading includes them.
const FLAG_INHERIT: u64 = 1 << 1;

/// A counter of one tracepoint in one process.
#[derive(Debug)]
pub struct TaskTracepoint {
    event: File,
}

impl TaskTracepoint {
    /// Starts counting in `process`, which has one thread. `id` is the content of the tracepoint's file `id` in tracefs.
    ///
    /// # Errors
    /// Without permission, or if there is no such tracepoint or process; the error reports which.
    pub fn open(process: u32, id: u64) -> io::Result<Self> {
        const ANY_CPU: libc::c_int = -1;
        const NO_GROUP: libc::c_int = -1;
        let mut attributes = Attributes {
            kind: TYPE_TRACEPOINT,
            size: ATTRIBUTES_SIZE,
            config: id,
            flags: FLAG_INHERIT,
            ..Attributes::default()
        };
        let process = libc::pid_t::try_from(process).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
        // SAFETY: `attributes` is a live structure of the size that it states; the kernel reads it, and writes at most its
        // size field, only during the call.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw mut attributes, process, ANY_CPU, NO_GROUP, OPEN_CLOEXEC)
        };
        match libc::c_int::try_from(fd) {
            // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
            Ok(fd) if fd >= 0 => Ok(Self { event: unsafe { File::from_raw_fd(fd) } }),
            _ => Err(described(io::Error::last_os_error())),
        }
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
        assert!(TaskTracepoint::open(u32::MAX, 1).is_err());
    }
}
