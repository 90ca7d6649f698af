//! pread and pwrite: one system call per I/O, one I/O at a time.

use super::traits::{Perform, Sync};
use super::trims::Trims;
use super::{OpenEngine, Setup, moved, noisy_slots, open_files, replaced, sync_file};
use crate::error::Result;
use crate::workload::request_source::{Kind, Request};
use std::fs::File;
use std::io;
use sys::buffer::AlignedBuffer;

struct Psync {
    files: Vec<File>,
    buffer: AlignedBuffer,
    calls: u64,
    trims: Trims,
}

pub(super) fn open(setup: &Setup) -> Result<OpenEngine> {
    let (files, buffer) = (open_files(setup)?, noisy_slots(setup.plan, 1)?);
    let mut engine = Psync { files, buffer, calls: 0, trims: Trims::of(setup) };
    Ok(Box::new(move |worker| worker.run_direct(&mut engine)))
}

impl Perform for Psync {
    #[inline(always)]
    fn perform(&mut self, request: &Request) -> i32 {
        let Some(file) = self.files.get(request.file as usize) else { return -9 };
        if request.kind == Kind::Trim {
            return self.trims.perform(file, request);
        }
        let Some(memory) = self.buffer.get_mut(..request.length as usize) else { return -14 };
        loop {
            self.calls += 1;
            // Raw system calls: the wrappers of the C library are cancellation points, which cost two locked
            // instructions each in a process with several threads.
            let outcome = match request.kind {
                Kind::Read => rustix::io::pread(file, &mut *memory, request.offset),
                Kind::Write | Kind::Trim => rustix::io::pwrite(file, memory, request.offset),
            };
            match outcome {
                Err(rustix::io::Errno::INTR) => {}
                Ok(bytes) => return moved(bytes),
                Err(error) => return -error.raw_os_error(),
            }
        }
    }

    fn with_memory(&mut self, length: u32, work: &mut dyn FnMut(&mut [u8])) {
        self.buffer.get_mut(..length as usize).into_iter().for_each(work);
    }

    fn sync(&mut self, file: u32, what: Sync) -> io::Result<bool> {
        sync_file(&self.files, file, what)
    }

    fn replace(&mut self, index: u32, file: File) -> io::Result<File> {
        replaced(&mut self.files, index, file)
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.calls + self.trims.calls())
    }
}
