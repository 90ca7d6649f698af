//! Where tasks and interrupts come from: parents of processes, kernel threads, the devices of interrupts.

use crate::proc_files::{Stat, numbered};
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

    /// Reads the origins of all processes that exist, so that those that end soon are known too: some 15 µs for a process that is new, and
    /// 1 µs for another.
    pub(super) fn read_all(&mut self) {
        let processes = if self.same_numbers { numbered(Path::new("/proc")) } else { Vec::new() };
        let known = std::mem::take(&mut self.processes);
        let origin = |process: u32| Some((process, known.get(&process).copied().or_else(|| Origin::read(process))?));
        self.processes = processes.into_iter().filter_map(origin).collect();
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
        let read = || if self.same_numbers { Origin::read(process) } else { None };
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
    fn read(process: u32) -> Option<Self> {
        let stat = Stat::of(process)?;
        Some(Self { parent: Some(stat.parent), kernel: stat.is_kernel() })
    }
}

/// The highest number of an interrupt; 0 if unknown.
pub(super) fn highest_interrupt() -> u32 {
    numbered(Path::new(INTERRUPTS)).into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
