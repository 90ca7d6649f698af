//! Where tasks and interrupts come from: parents of processes, kernel threads, the devices of interrupts.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// What /proc says about a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) parent: Option<u32>,
    pub(super) kernel: bool,
}

/// What was read for processes and interrupts.
#[derive(Debug)]
pub(super) struct Origins {
    /// Whether /proc has the same numbers as the kernel: not in another namespace of processes.
    same_numbers: bool,
    processes: HashMap<u32, Origin>,
    devices: HashMap<u32, String>,
}

/// The process that starts the kernel's threads.
const KTHREADD: u32 = 2;
const INTERRUPTS: &str = "/sys/kernel/irq";

impl Origins {
    pub(super) fn new(same_numbers: bool) -> Self {
        Self { same_numbers, processes: HashMap::new(), devices: HashMap::new() }
    }

    /// Reads the origins of all processes that exist, so that those that end soon are known too: some 15 µs a process.
    pub(super) fn read_all(&mut self) {
        let processes = if self.same_numbers { numbered(Path::new("/proc")) } else { Vec::new() };
        let read = |process| Origin::read(Path::new("/proc"), process).map(|origin| (process, origin));
        self.processes = processes.into_iter().filter_map(read).collect();
    }

    /// The parent of each process that was read.
    pub(super) fn parents(&self) -> HashMap<u32, u32> {
        self.processes.iter().filter_map(|(process, origin)| Some((*process, origin.parent?))).collect()
    }

    /// The origin of a process. `forked_by` is its parent if it was forked since all were read.
    pub(super) fn of(&mut self, process: u32, forked_by: Option<u32>) -> Origin {
        if let Some(parent) = forked_by {
            return Origin { parent: Some(parent), kernel: parent == KTHREADD };
        }
        let read = || if self.same_numbers { Origin::read(Path::new("/proc"), process) } else { None };
        *self.processes.entry(process).or_insert_with(|| read().unwrap_or_default())
    }

    /// The names of the devices of an interrupt, or its number.
    pub(super) fn device(&mut self, number: u32) -> &str {
        self.devices.entry(number).or_insert_with(|| {
            let actions = fs::read_to_string(format!("{INTERRUPTS}/{number}/actions")).unwrap_or_default();
            match actions.trim() {
                "" => format!("irq {number}"),
                actions => actions.to_owned(),
            }
        })
    }
}

impl Origin {
    fn read(proc: &Path, process: u32) -> Option<Self> {
        // As proc_pid_stat(5); the name may contain any byte.
        let stat = fs::read(proc.join(process.to_string()).join("stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        let flags: u64 = fields.nth(4)?.parse().ok()?;
        /// linux/sched.h
        const PF_KTHREAD: u64 = 0x0020_0000;
        Some(Self { parent: Some(parent), kernel: flags & PF_KTHREAD != 0 })
    }
}

/// The highest number of an interrupt; 0 if unknown.
pub(super) fn highest_interrupt() -> u32 {
    numbered(Path::new(INTERRUPTS)).into_iter().max().unwrap_or(0)
}

/// Entries of a directory whose names are numbers.
fn numbered(directory: &Path) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_tells_parents_and_kernel_threads() {
        let directory = tempfile::tempdir().unwrap();
        let write = |process: u32, text: &str| {
            fs::create_dir_all(directory.path().join(process.to_string())).unwrap();
            fs::write(directory.path().join(process.to_string()).join("stat"), text).unwrap();
        };
        write(5, "5 (a) b (c) S 2 0 0 0 -1 2129984 0 0");
        write(6, "6 (x) S 5 0 0 0 -1 4194304 0 0");
        let read = |process| Origin::read(directory.path(), process);
        assert_eq!(read(5), Some(Origin { parent: Some(2), kernel: true }));
        assert_eq!(read(6), Some(Origin { parent: Some(5), kernel: false }));
        assert_eq!(read(7), None);
    }

    #[test]
    fn a_forked_process_has_its_forker_and_a_child_of_kthreadd_is_the_kernels() {
        let mut origins = Origins::new(true);
        assert_eq!(origins.of(u32::MAX, Some(9)), Origin { parent: Some(9), kernel: false });
        assert_eq!(origins.of(u32::MAX - 1, Some(KTHREADD)), Origin { parent: Some(KTHREADD), kernel: true });
        assert_eq!(origins.of(u32::MAX - 2, None), Origin::default());
        origins.read_all();
        assert!(origins.processes.contains_key(&std::process::id()));
        let mut elsewhere = Origins::new(false);
        elsewhere.read_all();
        assert_eq!(elsewhere.of(std::process::id(), None), Origin::default());
    }
}
