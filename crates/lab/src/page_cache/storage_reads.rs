//! What storage read for a process and its descendants: `read_bytes` of /proc/PID/io (CONFIG_TASK_IO_ACCOUNTING).
//!
//! The kernel adds what an ended child read to the parent that waited for it, so a tree's sum never loses anything that
//! somebody waited for. Pages that were found in memory are not in it, read-ahead is.

use model::unit::Bytes;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// A tree of more processes than this is not read: each takes some 20 µs.
const MOST_PROCESSES: usize = 256;

/// What storage has read for this process and for the children that it waited for; `None` where the kernel does not tell.
pub(crate) fn own_storage_read() -> Option<Bytes> {
    read_bytes(&fs::read_to_string("/proc/self/io").ok()?)
}

/// The same of another process.
pub(crate) fn storage_read_of(process: u32) -> Option<Bytes> {
    read_bytes(&fs::read_to_string(Path::new("/proc").join(process.to_string()).join("io")).ok()?)
}

/// The same of a process and all of its descendants that live; those that ended count with whoever waited for them.
pub(crate) fn storage_read_of_tree(root: u32) -> Option<Bytes> {
    let mut processes = vec![root];
    let (mut place, mut sum) = (0, None);
    while let Some(&process) = processes.get(place) {
        place += 1;
        if place > MOST_PROCESSES {
            return None;
        }
        let folder = Path::new("/proc").join(process.to_string());
        match fs::read_to_string(folder.join("io")) {
            Ok(text) => sum = Some(sum.unwrap_or(Bytes(0)) + read_bytes(&text)?),
            // Another user's: what it read is not known, so neither is the sum.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return None,
            // One that has just ended is nobody's loss but for the moment until it is waited for.
            Err(_) => {}
        }
        let tasks = fs::read_dir(folder.join("task")).into_iter().flatten().flatten();
        let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        processes.extend(
            children
                .flat_map(|text| text.split_whitespace().filter_map(|child| child.parse().ok()).collect::<Vec<u32>>()),
        );
    }
    sum
}

fn read_bytes(text: &str) -> Option<Bytes> {
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes:"))?;
    line.trim().parse().ok().map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_bytes_is_the_line_of_that_name() {
        let text = "rchar: 6976\nwchar: 0\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 8192\n";
        assert_eq!(read_bytes(text), Some(Bytes(4096)));
        assert_eq!(read_bytes("rchar: 1\n"), None);
        assert_eq!(read_bytes("read_bytes: much\n"), None);
    }

    #[test]
    fn a_tree_holds_what_its_processes_read() {
        let Some(own) = own_storage_read() else { return };
        assert!(storage_read_of_tree(std::process::id()).unwrap() >= own);
        assert_eq!(storage_read_of_tree(u32::MAX), None, "no such process");
    }
}
