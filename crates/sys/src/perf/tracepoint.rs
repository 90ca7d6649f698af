//! Tracepoints of the kernel: their names, and how often one is passed by a process and the children that it starts later.

use super::{Attributes, TYPE_TRACEPOINT, open_event};
use rustix::fd::AsFd;
use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Where tracefs usually is.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The number that the kernel has given a tracepoint, such as `raw_syscalls`, `sys_enter`.
///
/// # Errors
/// When tracefs may not be read, or this kernel has no such tracepoint; the text says which, and how to mend it.
fn number(group: &str, name: &str) -> io::Result<u64> {
    let file = format!("events/{group}/{name}/id");
    let text = read(&file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other(format!("there is no tracepoint {group}:{name} in tracefs")),
        _ => io::Error::other(format!("the tracepoint {group}:{name} in tracefs: {error}; run as root")),
    })?;
    text.trim().parse().map_err(|_| io::Error::other(format!("tracefs, {file}: is not a number")))
}

/// The tracepoints of this machine: `sched:sched_switch`. A module that is loaded later adds its own.
///
/// # Errors
/// When tracefs may not be read.
pub fn available_tracepoints() -> io::Result<Vec<String>> {
    let text = read("available_events").map_err(|error| {
        io::Error::new(error.kind(), format!("the names of tracepoints in tracefs: {error}; run as root"))
    })?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Reads a file of tracefs.
fn read(file: &str) -> io::Result<String> {
    let mounted = PLACES.into_iter().map(Path::new).find(|place| fs::read_dir(place.join("events")).is_ok());
    match mounted {
        Some(place) => fs::read_to_string(place.join(file)),
        None => read_unmounted(file),
    }
}

/// Reads a file of tracefs where it is mounted nowhere, by a mount that no other process sees and that ends with this call.
fn read_unmounted(file: &str) -> io::Result<String> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(context.as_fd())?;
    let mount = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY)?;
    let mut text = String::new();
    File::from(openat(mount, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?).read_to_string(&mut text)?;
    Ok(text)
}

/// The count of one event.
fn passes(mut event: &File) -> io::Result<u64> {
    let mut bytes = [0; 8];
    event.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

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
        let config = number(group, name)?;
        let attributes = Attributes { kind: TYPE_TRACEPOINT, config, flags: FLAG_INHERIT, ..Attributes::default() };
        let process = libc::pid_t::try_from(process).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
        open_event(attributes, process, ANY_CPU).map(|event| Self { event: File::from(event) })
    }

    /// Passes since the counter was opened, of the process and its children, ended ones too.
    ///
    /// # Errors
    /// As read(2).
    pub fn read(&self) -> io::Result<u64> {
        passes(&self.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tracepoint_is_an_error_that_names_it() {
        assert!(number("no", "such").unwrap_err().to_string().contains("no:such"));
    }

    #[test]
    fn tracepoints_are_listed_or_the_error_says_how_to_mend_it() {
        match available_tracepoints() {
            Ok(names) => assert!(names.iter().any(|name| name == "sched:sched_switch"), "{names:?}"),
            Err(error) => assert!(error.to_string().contains("run as root"), "{error}"),
        }
    }

    #[test]
    fn a_missing_process_is_an_error() {
        assert!(TaskTracepoint::open(u32::MAX, "sched", "sched_switch").is_err());
    }
}
