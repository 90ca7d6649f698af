//! The page cache of the machine: how much of it waits to be written, and how much was read from storage.

use crate::proc_files::{children_of, of_lines, of_list, threads_of};
use model::unit::Bytes;
use std::fs;
use std::io::ErrorKind;

/// Pages of the machine that wait to be written, or are being written.
pub(crate) fn dirty() -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/vmstat").ok()?;
    let pages = of_list(&text, "nr_dirty")?.saturating_add(of_list(&text, "nr_writeback")?);
    Some(Bytes(pages.saturating_mul(u64::try_from(rustix::param::page_size()).ok()?)))
}

// What was read from storage: `read_bytes` of /proc/PID/io (CONFIG_TASK_IO_ACCOUNTING). The kernel adds the reads of an ended child to the
// parent that waited for it, so the sum of a tree loses nothing of children that were waited for. It excludes pages found in memory and
// includes read-ahead.

/// A tree of more processes is not read: each takes some 20 µs.
const MOST_PROCESSES: usize = 256;

/// Bytes read from storage for this process and the children that it waited for; `None` if the kernel does not report
/// it.
pub fn own_storage_read() -> Option<Bytes> {
    of_lines(&fs::read_to_string("/proc/self/io").ok()?, "read_bytes").map(Bytes)
}

/// The same for another process.
pub fn storage_read_of(process: u32) -> Option<Bytes> {
    of_lines(&fs::read_to_string(format!("/proc/{process}/io")).ok()?, "read_bytes").map(Bytes)
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
        match fs::read_to_string(format!("/proc/{process}/io")) {
            Ok(text) => sum = Some(sum.unwrap_or(Bytes(0)) + Bytes(of_lines(&text, "read_bytes")?)),
            // The reads of another user's process are unknown, so the sum is too.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return None,
            // A process that has just ended is missing only until its parent waits for it.
            Err(_) => {}
        }
        processes.extend(threads_of(process).flat_map(|(_, thread)| children_of(process, thread)));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_bytes_is_the_line_of_that_name() {
        let text = "rchar: 6976\nwchar: 0\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 8192\n";
        assert_eq!(of_lines(text, "read_bytes"), Some(4096));
        assert_eq!(of_lines("rchar: 1\n", "read_bytes"), None);
        assert_eq!(of_lines("read_bytes: much\n", "read_bytes"), None);
    }

    #[test]
    fn a_tree_includes_the_reads_of_its_processes() {
        let Some(own) = own_storage_read() else { return };
        assert!(storage_read_of_tree(std::process::id()).unwrap() >= own);
        assert_eq!(storage_read_of_tree(u32::MAX), None, "no such process");
    }
}
