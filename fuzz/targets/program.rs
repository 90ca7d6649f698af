//! Feeds arbitrary files, as processes map them, to what `--profile` does with a program: unwinds stacks by its tables, and names its functions.

#![no_main]

use fuzz::{file_of, split};
use iotoll_fuzz as fuzz;
use lab::meter::sampler::processes::Processes;
use libfuzzer_sys::fuzz_target;
use sys::perf::{Forked, Mapped, UserRegisters};

/// No process has such a number, so nothing but the input is read.
const PROCESS: u32 = u32::MAX;
/// Where linkers place a program.
const BEGIN: u64 = 0x40_0000;
const STACK: u64 = 0x7fff_0000_0000;
const STACK_BYTES: usize = 128;

fuzz_target!(|data: &[u8]| {
    let Some(([page, frame], program)) = split::<2>(data) else { return };
    // No header refers to the end of the file, so it can be something else too.
    let Some(stack) = program.last_chunk::<STACK_BYTES>() else { return };
    let (path, inode) = file_of(program);
    let path = path.as_bytes();
    let mut processes = Processes::default();
    processes.forked(Forked { process: PROCESS, parent: PROCESS - 1 });
    let offset = u64::from(page) << 12;
    processes.mapped(&Mapped { process: PROCESS, begin: BEGIN, length: 1 << 20, offset, inode, path });
    // Every word is a return address, and a place where the program was sampled.
    for word in stack.as_chunks::<8>().0 {
        let frame = STACK + u64::from(frame);
        let registers = UserRegisters { instruction: u64::from_le_bytes(*word), stack: STACK, frame, link: 0 };
        for place in processes.unwind(PROCESS, registers, stack).0 {
            let function = processes.function(place);
            assert!(!function.name.is_empty());
        }
    }
});
