//! read and write at the file's position, which lseek moves where the next I/O does not follow the last one: what programs without
//! pread do. One I/O at a time.

use super::traits::{Perform, Sync};
use super::trims::Trims;
use super::{OpenEngine, Setup, noisy_slots, open_files, result_of, sync_file};
use crate::error::Result;
use crate::workload::request_source::{Kind, Request};
use rustix::fs::{SeekFrom, seek};
use std::fs::File;
use std::io;
use sys::buffer::AlignedBuffer;

struct Positioned {
    /// Each with its position; `None` after a failed I/O.
    files: Vec<(File, Option<u64>)>,
    buffer: AlignedBuffer,
    calls: u64,
    trims: Trims,
}

pub(super) fn open(setup: &Setup) -> Result<OpenEngine> {
    let files = open_files(setup)?.into_iter().map(|file| (file, Some(0))).collect();
    let mut engine = Positioned { files, buffer: noisy_slots(setup.plan, 1)?, calls: 0, trims: Trims::of(setup) };
    Ok(Box::new(move |worker| worker.run_direct(&mut engine)))
}

impl Perform for Positioned {
    #[inline(always)]
    fn perform(&mut self, request: &Request) -> i32 {
        let Some((file, position)) = self.files.get_mut(request.file as usize) else { return -9 };
        if request.kind == Kind::Trim {
            return self.trims.perform(file, request);
        }
        let Some(memory) = self.buffer.get_mut(..request.length as usize) else { return -14 };
        if *position != Some(request.offset) {
            self.calls += 1;
            if let Err(error) = seek(&*file, SeekFrom::Start(request.offset)) {
                return -error.raw_os_error();
            }
        }
        let outcome = loop {
            self.calls += 1;
            let outcome = match request.kind {
                Kind::Read => rustix::io::read(&*file, &mut *memory),
                Kind::Write | Kind::Trim => rustix::io::write(&*file, memory),
            };
            if outcome != Err(rustix::io::Errno::INTR) {
                break outcome;
            }
        };
        *position = outcome.ok().map(|bytes| request.offset + bytes as u64);
        result_of(outcome.map_err(Into::into))
    }

    fn with_memory(&mut self, length: u32, work: &mut dyn FnMut(&mut [u8])) {
        self.buffer.get_mut(..length as usize).into_iter().for_each(work);
    }

    fn sync(&mut self, file: u32, what: Sync) -> io::Result<bool> {
        let Some((file, _)) = self.files.get(file as usize) else { return Ok(false) };
        sync_file(std::slice::from_ref(file), 0, what)
    }

    fn replace(&mut self, index: u32, file: File) -> io::Result<File> {
        let place = self.files.get_mut(index as usize).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(std::mem::replace(place, (file, Some(0))).0)
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.calls + self.trims.calls())
    }
}
