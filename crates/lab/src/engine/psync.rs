//! pread and pwrite: one system call an I/O, one I/O at a time.

use super::{Ready, Setup, noisy_slots, open_files, result_of, sync_all, trim};
use crate::error::Result;
use crate::workload::request_source::{Kind, Request};
use crate::workload::worker::{Perform, Sync};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use sys::buffer::AlignedBuffer;

struct Psync {
    files: Vec<File>,
    buffer: AlignedBuffer,
    calls: u64,
}

pub(super) fn open(setup: &Setup) -> Result<Ready> {
    let mut engine = Psync { files: open_files(setup)?, buffer: noisy_slots(setup.plan, 1)?, calls: 0 };
    Ok(Box::new(move |worker| worker.run_direct(&mut engine)))
}

impl Perform for Psync {
    #[inline(always)]
    fn perform(&mut self, request: &Request) -> i32 {
        let Some(file) = self.files.get(request.file as usize) else { return -9 };
        let Some(memory) = self.buffer.get_mut(..request.length as usize) else { return -14 };
        loop {
            self.calls += 1;
            let outcome = match request.kind {
                Kind::Read => file.read_at(memory, request.offset),
                Kind::Write => file.write_at(memory, request.offset),
                Kind::Trim => return trim(file, request.offset, request.length),
            };
            match outcome {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return result_of(outcome),
            }
        }
    }

    fn sync(&mut self, what: Sync) -> io::Result<()> {
        sync_all(&self.files, what)
    }

    fn crossings(&self) -> Option<u64> {
        Some(self.calls)
    }
}
