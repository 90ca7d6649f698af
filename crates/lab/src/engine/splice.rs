//! Data through a pipe: splice from and to the file, vmsplice to and from memory. One I/O at a time.

use super::traits::{Perform, Sync};
use super::trims::Trims;
use super::{OpenEngine, Setup, noisy_slots, open_files, replaced, result_of, sync_file};
use crate::error::{Error, Result};
use crate::workload::request_source::{Kind, Request};
use std::fs::File;
use std::io;
use sys::buffer::AlignedBuffer;
use sys::splice_pipe::SplicePipe;

struct Splice {
    files: Vec<File>,
    buffer: AlignedBuffer,
    pipe: SplicePipe,
    trims: Trims,
}

pub(super) fn open(setup: &Setup) -> Result<OpenEngine> {
    let pipe = SplicePipe::new().map_err(|error| Error::job(&setup.plan.name, "making a pipe", error))?;
    let trims = Trims::of(setup)?;
    let mut engine = Splice { files: open_files(setup)?, buffer: noisy_slots(setup.plan, 1)?, pipe, trims };
    Ok(Box::new(move |worker| worker.run_direct(&mut engine)))
}

impl Perform for Splice {
    #[inline(always)]
    fn perform(&mut self, request: &Request) -> i32 {
        let Some(file) = self.files.get(request.file as usize) else { return -9 };
        if request.kind == Kind::Trim {
            return self.trims.perform(file, request);
        }
        let Some(memory) = self.buffer.get_mut(..request.length as usize) else { return -14 };
        result_of(match request.kind {
            Kind::Read => self.pipe.read(file, request.offset, memory),
            Kind::Write | Kind::Trim => self.pipe.write(file, request.offset, memory),
        })
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
        Some(self.pipe.syscalls() + self.trims.calls())
    }
}
