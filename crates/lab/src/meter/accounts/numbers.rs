//! The numbers of a process and its threads, as programs in the kernel see them.

use crate::meter::kernel_types::KernelTypes;
use std::sync::atomic::Ordering;
use sys::bpf::{ArrayMap, Assembler, Condition, Error, Helper, Program, Register, Width};

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
