//! Finds where the kernel's description of a task has the numbers of its thread and process.
//!
//! Kernels differ, and many do not describe their structures (BTF). But a thread knows its own numbers, and they stand
//! side by side: two threads copy their own description, and only one place has the right numbers in both.

use super::layout::header_word;
use std::sync::atomic::Ordering;
use sys::bpf::{ArrayMap, Assembler, Condition, Helper, Program, Register, Width};

/// The description's part that is searched; it is between 7 and 13 KiB long, and the numbers are in its first 4 KiB unless
/// the kernel was built for debugging.
const BYTES: i32 = 8192;
const WORDS: usize = 1024;
/// Words of the copy: the numbers, the result, the description.
const NUMBERS: i16 = 0;
const RESULT: i16 = 8;
const COPY: i16 = 16;

/// What the kernel says about this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Calibration {
    /// Its number in the initial namespace of processes.
    pub(super) process: u32,
    /// Where a task has the number of its thread, and behind it the number of its process.
    pub(super) offset: Option<i32>,
}

/// A thread's description of itself.
struct Description {
    process: u32,
    thread: u32,
    bytes: Vec<u8>,
}

impl Calibration {
    /// # Errors
    /// When no program can be run.
    pub(super) fn now() -> Result<Self, sys::bpf::Error> {
        let map = ArrayMap::create("iotoll_task", WORDS + header_word(COPY), 1)?;
        let copying = match Program::load("iotoll_task", &copying(&map)) {
            Ok(program) => program,
            // Without the helper (lockdown), the numbers of this process are still known.
            Err(_) => Program::load("iotoll_task", &telling(&map))?,
        };
        let first = describe(&map, &copying)?;
        let second = describe(&map, &copying)?;
        Ok(Self { process: first.process, offset: common_place(&first, &second) })
    }
}

/// Writes the numbers of the current task.
fn numbers(map: &ArrayMap) -> (Assembler<'_>, sys::bpf::Label) {
    use Register::{R0, R1, R2, R6, R10};
    let mut code = Assembler::new();
    let end = code.label();
    code.store_constant(Width::Four, R10, -4, 0).address(R2, R10, -4).map(R1, map).call(Helper::MapLookup);
    code.jump_if_constant(R0, Condition::Equal, 0, end).copy(R6, R0);
    code.call(Helper::ProcessAndThread).store(Width::Eight, R6, NUMBERS, R0);
    code.store_constant(Width::Eight, R6, RESULT, -1);
    (code, end)
}

/// A program that writes the numbers and the description of the current task.
fn copying(map: &ArrayMap) -> sys::bpf::Code<'_> {
    use Register::{R0, R1, R2, R3, R6};
    let (mut code, end) = numbers(map);
    code.call(Helper::Task).copy(R3, R0).address(R1, R6, COPY.into()).set(R2, BYTES).call(Helper::ReadKernel);
    code.store(Width::Eight, R6, RESULT, R0).bind(end).set(R0, 0).exit();
    code.finish()
}

/// A program that writes only the numbers.
fn telling(map: &ArrayMap) -> sys::bpf::Code<'_> {
    let (mut code, end) = numbers(map);
    code.bind(end).set(Register::R0, 0).exit();
    code.finish()
}

/// Runs the program in a thread of its own, whose number is not the number of the process.
fn describe(map: &ArrayMap, program: &Program) -> Result<Description, sys::bpf::Error> {
    std::thread::scope(|scope| match scope.spawn(|| program.run_here(&[])).join() {
        Ok(run) => run,
        Err(panic) => std::panic::resume_unwind(panic),
    })?;
    let words: Vec<u64> = map.words().iter().map(|word| word.load(Ordering::Relaxed)).collect();
    let word = |offset| words.get(header_word(offset)).copied().unwrap_or(0);
    let copied = word(RESULT) == 0;
    let words = words.iter().skip(header_word(COPY)).filter(|_| copied);
    let (process, thread) = split(word(NUMBERS));
    Ok(Description { process, thread, bytes: words.flat_map(|word| word.to_ne_bytes()).collect() })
}

/// Process and thread of a task's key.
pub(super) fn split(key: u64) -> (u32, u32) {
    // Both halves fit.
    let half = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(0);
    (half(key >> 32), half(key))
}

/// The only place where both descriptions have the numbers of their thread and process.
fn common_place(first: &Description, second: &Description) -> Option<i32> {
    let second = second.places();
    let common: Vec<usize> = first.places().into_iter().filter(|place| second.contains(place)).collect();
    match common.as_slice() {
        [only] => i32::try_from(*only).ok(),
        _ => None,
    }
}

impl Description {
    fn places(&self) -> Vec<usize> {
        let pair = [self.thread.to_ne_bytes(), self.process.to_ne_bytes()].concat();
        let aligned = self.bytes.windows(pair.len()).enumerate().step_by(4);
        aligned.filter(|(_, bytes)| *bytes == pair.as_slice()).map(|(place, _)| place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(thread: u32, words: &[u32]) -> Description {
        Description { process: 7, thread, bytes: words.iter().flat_map(|word| word.to_ne_bytes()).collect() }
    }

    #[test]
    fn the_place_is_the_only_one_with_both_numbers() {
        let first = description(8, &[0, 8, 7, 1, 8, 7]);
        let second = description(9, &[0, 1, 2, 1, 9, 7]);
        assert_eq!(common_place(&first, &second), Some(16));
        assert_eq!(common_place(&first, &description(9, &[0; 6])), None);
        let twice = description(9, &[0, 9, 7, 1, 9, 7]);
        assert_eq!(common_place(&first, &twice), None);
        assert_eq!(common_place(&first, &description(9, &[])), None);
    }

    #[test]
    fn a_key_has_the_process_above_the_thread() {
        assert_eq!(split(7 << 32 | 8), (7, 8));
    }
}
