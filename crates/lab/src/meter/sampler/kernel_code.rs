//! The kernel's code as it is in memory, where it has patched itself for this machine.
//!
//! A program of the kernel copies it: many kernels have no /proc/kcore.

use std::sync::atomic::Ordering;
use sys::bpf::{ArrayMap, Assembler, Condition, Helper, Program, Register, Width};

/// What is copied at once. Behind the end of a module there may be no memory.
const PIECE: usize = 256;
/// The result of the copy, and the copy.
const RESULT: i16 = 0;
const COPY: i32 = 8;

pub(super) struct KernelCode {
    map: ArrayMap,
    copying: Program,
}

impl KernelCode {
    /// `None` without the right.
    pub(super) fn open() -> Option<Self> {
        let map = ArrayMap::create("iotoll_code", 1 + PIECE / 8, 1).ok()?;
        let copying = Program::load("iotoll_code", &copying(&map)).ok()?;
        Some(Self { map, copying })
    }

    /// The bytes from one address to another, as far as they are there.
    pub(super) fn read(&self, begin: u64, end: u64) -> Vec<u8> {
        let mut code = Vec::new();
        let mut address = begin;
        while address < end && self.copying.run_here(&[address]).is_ok() {
            let mut words = self.map.words().iter().map(|word| word.load(Ordering::Relaxed));
            if words.next() != Some(0) {
                break;
            }
            code.extend(words.flat_map(u64::to_ne_bytes));
            address += PIECE as u64;
        }
        code.truncate(usize::try_from(end - begin).unwrap_or(usize::MAX));
        code
    }
}

fn copying(map: &ArrayMap) -> sys::bpf::Code<'_> {
    use Register::{R0, R1, R2, R3, R6, R7, R10};
    let mut code = Assembler::new();
    let end = code.label();
    code.load(Width::Eight, R7, R1, 0);
    code.store_constant(Width::Four, R10, -4, 0).address(R2, R10, -4).map(R1, map).call(Helper::MapLookup);
    code.jump_if_constant(R0, Condition::Equal, 0, end).copy(R6, R0);
    code.address(R1, R6, COPY).set(R2, PIECE as i32).copy(R3, R7).call(Helper::ReadKernel);
    code.store(Width::Eight, R6, RESULT, R0).bind(end).set(R0, 0).exit();
    code.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::KernelFunctions;
    use crate::skipping::note_skipped;

    #[test]
    fn a_function_of_the_kernel_is_read_up_to_its_end_and_nothing_where_there_is_no_memory() {
        let functions = KernelFunctions::of_this_kernel();
        let Some(code) = KernelCode::open().filter(|_| !functions.is_empty()) else {
            return note_skipped("kernel code", "no right to load programs, or to see addresses");
        };
        let (begin, _) = functions.named("vfs_read").unwrap();
        let end = functions.end(begin);
        let bytes = code.read(begin, end);
        assert_eq!(bytes.len() as u64, end - begin);
        assert!(bytes.iter().any(|byte| *byte != 0));
        assert!(code.read(0xffff_0000_0000_0000, 0xffff_0000_0000_0100).is_empty());
    }
}
