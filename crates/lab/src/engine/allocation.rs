//! fallocate and ftruncate in place of data: what a file system does to give a file room. No byte is moved; a request's length counts as its
//! bytes, as in fio.

use super::traits::{Perform, Sync};
use super::{OpenEngine, Setup, open_files, replaced, result_of, sync_file};
use crate::error::Result;
use crate::workload::request_source::{Kind, Request};
use model::plan::EngineKind;
use rustix::fs::{FallocateFlags, fallocate, ftruncate};
use std::fs::File;
use std::io;

struct Allocation {
    files: Vec<File>,
    truncates: bool,
    calls: u64,
}

pub(super) fn open(setup: &Setup) -> Result<OpenEngine> {
    let truncates = setup.plan.engine == EngineKind::Ftruncate;
    let mut engine = Allocation { files: open_files(setup)?, truncates, calls: 0 };
    Ok(Box::new(move |worker| worker.run_direct(&mut engine)))
}

impl Perform for Allocation {
    #[inline(always)]
    fn perform(&mut self, request: &Request) -> i32 {
        let Some(file) = self.files.get(request.file as usize) else { return -9 };
        let keep = FallocateFlags::KEEP_SIZE;
        self.calls += 1;
        let outcome = match request.kind {
            // As in fio, the size of a block does not matter to ftruncate.
            _ if self.truncates => ftruncate(file, request.offset),
            // No job of this engine reads.
            Kind::Read | Kind::Write => fallocate(file, FallocateFlags::empty(), request.offset, request.length.into()),
            Kind::Trim => fallocate(file, keep | FallocateFlags::PUNCH_HOLE, request.offset, request.length.into()),
        };
        result_of(outcome.map(|()| request.length as usize).map_err(Into::into))
    }

    fn sync(&mut self, file: u32, what: Sync) -> io::Result<bool> {
        sync_file(&self.files, file, what)
    }

    fn replace(&mut self, index: u32, file: File) -> io::Result<File> {
        replaced(&mut self.files, index, file)
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.calls)
    }
}
