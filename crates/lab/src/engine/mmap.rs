//! Copies between the job's buffer and a mapping of the file: what programs with memory-mapped files do. The kernel works in page faults and
//! writeback.

use super::traits::{Perform, Sync};
use super::trims::Trims;
use super::{OpenEngine, Setup, noisy_slots, open_files, result_of, sync_file};
use crate::error::{Error, Result};
use crate::workload::request_source::{Kind, Request};
use std::fs::File;
use std::io;
use sys::buffer::AlignedBuffer;
use sys::byte_store::ByteStore;

struct Mapped {
    /// Each with its mapping.
    files: Vec<(File, ByteStore)>,
    buffer: AlignedBuffer,
    /// `direct=1`: each write is synced, as fio does it.
    through: bool,
    calls: u64,
    trims: Trims,
}

pub(super) fn open(setup: &Setup) -> Result<OpenEngine> {
    let plan = setup.plan;
    let failed = |error| Error::job(&plan.name, "mapping a file", error);
    let mut files = Vec::new();
    for (file, target) in open_files(setup)?.into_iter().zip(setup.targets) {
        let end = target.span.begin.saturating_add(target.span.length).saturating_add(target.span.beyond);
        let length = usize::try_from(end).map_err(|_| failed(io::ErrorKind::OutOfMemory.into()))?;
        // A page behind the end of a file cannot be accessed. What a job writes makes its file longer anyway.
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_file() && metadata.len() < end {
            if !plan.access.changes() {
                return Err(failed(io::ErrorKind::UnexpectedEof.into()));
            }
            file.set_len(end).map_err(failed)?;
        }
        let mapping = if plan.access.changes() {
            ByteStore::of_file(&file, length)
        } else {
            ByteStore::of_file_to_read(&file, length)
        };
        files.push((file, mapping.map_err(failed)?));
    }
    let mut engine =
        Mapped { files, buffer: noisy_slots(plan, 1)?, through: plan.direct, calls: 0, trims: Trims::of(setup) };
    Ok(Box::new(move |worker| worker.run_direct(&mut engine)))
}

impl Perform for Mapped {
    #[inline(always)]
    fn perform(&mut self, request: &Request) -> i32 {
        let (offset, length) = (request.offset as usize, request.length as usize);
        let Some((file, mapping)) = self.files.get(request.file as usize) else { return -9 };
        if request.kind == Kind::Trim {
            return self.trims.perform(file, request);
        }
        let Some(memory) = self.buffer.get_mut(..length) else { return -14 };
        if offset.checked_add(length).is_none_or(|end| end > mapping.len()) {
            return -14;
        }
        match request.kind {
            Kind::Read => mapping.read(offset, memory),
            Kind::Write | Kind::Trim => mapping.write(offset, memory),
        }
        if self.through {
            self.calls += 1;
            if let Err(error) = mapping.sync(offset, length) {
                return result_of(Err(error));
            }
        }
        request.length.cast_signed()
    }

    fn with_memory(&mut self, length: u32, work: &mut dyn FnMut(&mut [u8])) {
        self.buffer.get_mut(..length as usize).into_iter().for_each(work);
    }

    fn sync(&mut self, file: u32, what: Sync) -> io::Result<bool> {
        let Some((file, _)) = self.files.get(file as usize) else { return Ok(false) };
        self.calls += 1;
        sync_file(std::slice::from_ref(file), 0, what)
    }

    fn replace(&mut self, _: u32, _: File) -> io::Result<File> {
        let why = "ioengine=mmap maps all files before the first I/O; leave create_on_open out";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.calls + self.trims.calls())
    }
}
