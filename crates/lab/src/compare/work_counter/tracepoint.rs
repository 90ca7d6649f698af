//! The number of a tracepoint, which opens a counter of it.

use rustix::fd::AsFd;
use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Where tracefs usually is.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The number of a tracepoint, such as `raw_syscalls/sys_enter`.
///
/// # Errors
/// When tracefs cannot be read, or this kernel has no such tracepoint.
pub(super) fn number(tracepoint: &str) -> io::Result<u64> {
    let file = format!("events/{tracepoint}/id");
    let found = PLACES.iter().find_map(|place| fs::read_to_string(Path::new(place).join(&file)).ok());
    let text = found.map_or_else(|| read_unmounted(&file), Ok)?;
    text.trim().parse().map_err(io::Error::other)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tracepoint_is_an_error() {
        assert!(number("raw_syscalls/no_such_tracepoint").is_err());
    }
}
