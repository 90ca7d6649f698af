//! Bytes read from storage for a process and its descendants: `read_bytes` of /proc/PID/io (CONFIG_TASK_IO_ACCOUNTING).
//!
//! The kernel adds the reads of an ended child to the parent that waited for it, so the sum of a tree loses nothing of
//! children that were waited for. It excludes pages found in memory and includes read-ahead.

use model::unit::Bytes;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// A tree of more processes is not read: each takes some 20 µs.
const MOST_PROCESSES: usize = 256;

/// Bytes read from storage for this process and the children that it waited for; `None` if the kernel does not report
/// it.
pub(crate) fn own_storage_read() -> Option<Bytes> {
    read_bytes(&fs::read_to_string("/proc/self/io").ok()?)
}

/// The same for another process.
pub(crate) fn storage_read_of(process: u32) -> Option<Bytes> {
    read_bytes(&fs::read_to_string(Path::new("/proc").join(process.to_string()).join("io")).ok()?)
}

/// The same for a process and its live descendants; ended ones count with the parent that waited for them.
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
            // The reads of another user's process are unknown, so the sum is too.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return None,
            // A process that has just ended is missing only until its parent waits for it.
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
    fn a_tree_includes_the_reads_of_its_processes() {
        let Some(own) = own_storage_read() else { return };
        assert!(storage_read_of_tree(std::process::id()).unwrap() >= own);
        assert_eq!(storage_read_of_tree(u32::MAX), None, "no such process");
    }
}
