//! Where tasks and interrupts come from: parents of processes, kernel threads, the devices of interrupts, and the numbers that programs
//! in the kernel see of them.

use crate::meter::kernel_types::KernelTypes;
use crate::proc_files::{Stat, numbered};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use sys::bpf::{ArrayMap, Assembler, Condition, Error, Helper, Program, Register, Width};

/// What was read for processes and interrupts.
#[derive(Debug)]
pub(super) struct Origins {
    /// Whether /proc has the same numbers as the kernel: not in another namespace of processes.
    same_numbers: bool,
    /// The parent of a process and whether it is a thread of the kernel, as /proc says.
    processes: HashMap<u32, (Option<u32>, bool)>,
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
        let origin = |process: u32| Some((process, known.get(&process).copied().or_else(|| read(process))?));
        self.processes = processes.into_iter().filter_map(origin).collect();
    }

    /// The parent of each process that was read.
    pub(super) fn parents(&self) -> HashMap<u32, u32> {
        self.processes.iter().filter_map(|(process, (parent, _))| Some((*process, (*parent)?))).collect()
    }

    /// Whether a process is a thread of the kernel. `forked_by` is its parent if it was forked since all were read.
    pub(super) fn is_kernel(&mut self, process: u32, forked_by: Option<u32>) -> bool {
        if let Some(parent) = forked_by {
            return parent == KTHREADD;
        }
        let read = || if self.same_numbers { read(process) } else { None };
        self.processes.entry(process).or_insert_with(|| read().unwrap_or_default()).1
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

fn read(process: u32) -> Option<(Option<u32>, bool)> {
    Stat::of(process).map(|stat| (Some(stat.parent), stat.is_kernel()))
}

/// The highest number of an interrupt; 0 if unknown.
pub(super) fn highest_interrupt() -> u32 {
    numbered(Path::new(INTERRUPTS)).into_iter().max().unwrap_or(0)
}

/// The number of this process in the initial namespace of processes.
///
/// # Errors
/// When no program can be run.
pub(super) fn own_process() -> Result<u32, Error> {
    use Register::{R0, R1, R2, R6, R10};
    let map = ArrayMap::create("iotoll_task", 1, 1)?;
    let mut code = Assembler::new();
    let end = code.label();
    code.store_constant(Width::Four, R10, -4, 0).address(R2, R10, -4).map(R1, &map).call(Helper::MapLookup);
    code.jump_if_constant(R0, Condition::Equal, 0, end).copy(R6, R0);
    code.call(Helper::ProcessAndThread).store(Width::Eight, R6, 0, R0).bind(end).set(R0, 0).exit();
    Program::load("iotoll_task", &code.finish())?.run_here(&[])?;
    Ok(map.words().first().map_or(0, |word| split(word.load(Ordering::Relaxed)).0))
}

/// Where the kernel's description of a task has the number of its thread, and behind it that of its process.
pub(super) fn place_in_task() -> Option<i32> {
    let types = KernelTypes::of_this_kernel(&["task_struct"], &[]).ok()?;
    let [thread, process] = ["pid", "tgid"].map(|member| Some(types.member("task_struct", member).ok()?.byte));
    i32::try_from(thread.filter(|thread| process == Some(thread + 4))?).ok()
}

/// Process and thread of a task's key.
pub(super) fn split(key: u64) -> (u32, u32) {
    // Both halves fit.
    let half = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(0);
    (half(key >> 32), half(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_process_has_its_forker_and_a_child_of_kthreadd_is_the_kernels() {
        let mut origins = Origins::new(true);
        assert!(!origins.is_kernel(u32::MAX, Some(9)) && !origins.is_kernel(u32::MAX - 2, None));
        assert!(origins.is_kernel(u32::MAX - 1, Some(KTHREADD)));
        origins.read_all();
        assert!(origins.processes.contains_key(&std::process::id()));
        let mut elsewhere = Origins::new(false);
        elsewhere.read_all();
        assert!(!elsewhere.is_kernel(KTHREADD, None));
    }
}
