//! Engines that move one block of a file at a time in this thread: psync, sync and mmap.

use super::{OpenEngine, Perform, Sync, Trims, moved, noisy_slots, open_files, result_of, sync_file};
use crate::worker_pool::JobCopy;
use crate::workload::request_source::{Kind, Request};
use lab::error::{Error, Result};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use sys::buffer::AlignedBuffer;
use sys::byte_store::ByteStore;

/// pread and pwrite: one system call per I/O.
pub(super) fn psync(copy: &JobCopy) -> Result<OpenEngine> {
    ready(copy, open_files::<OwnedFd>(copy)?)
}

/// read and write at the file's position, which lseek moves where the next I/O does not follow the last one: what programs without
/// pread do.
pub(super) fn sync(copy: &JobCopy) -> Result<OpenEngine> {
    let at_begin = |file| Positioned { file, position: Some(0) };
    ready(copy, open_files(copy)?.into_iter().map(at_begin).collect())
}

/// Copies between the job's buffer and a mapping of the file: what programs with memory-mapped files do. The kernel works in page faults and
/// writeback.
pub(super) fn mmap(copy: &JobCopy) -> Result<OpenEngine> {
    let plan = copy.plan;
    let failed = |error| Error::job(&plan.name, "mapping a file", error);
    let mut files = Vec::new();
    for (file, target) in open_files::<File>(copy)?.into_iter().zip(&copy.targets) {
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
        sys::process::explain_bus_errors();
        let mapping = ByteStore::of_file(&file, length, plan.access.changes()).map_err(failed)?;
        files.push(Mapped { mapping, file: file.into(), through: plan.direct });
    }
    ready(copy, files)
}

fn ready<F: Moves + 'static>(copy: &JobCopy, files: Vec<F>) -> Result<OpenEngine> {
    let mut engine = OneByOne { files, buffer: noisy_slots(copy.plan, 1)?, calls: 0, trims: Trims::of(copy) };
    Ok(Box::new(move |worker| worker.run_direct(&mut engine)))
}

/// An open file that blocks are moved to and from.
trait Moves {
    fn file(&self) -> &OwnedFd;
    /// Reads or writes a block: bytes moved, or minus the error number. Counts its system calls.
    fn transfer(&mut self, kind: Kind, offset: u64, memory: &mut [u8], calls: &mut u64) -> i32;
}

impl Moves for OwnedFd {
    fn file(&self) -> &OwnedFd {
        self
    }

    #[inline(always)]
    fn transfer(&mut self, kind: Kind, offset: u64, memory: &mut [u8], calls: &mut u64) -> i32 {
        loop {
            *calls += 1;
            // Raw system calls: the wrappers of the C library are cancellation points, which cost two locked
            // instructions each in a process with several threads.
            let outcome = match kind {
                Kind::Read => rustix::io::pread(&*self, &mut *memory, offset),
                Kind::Write | Kind::Trim => rustix::io::pwrite(&*self, memory, offset),
            };
            match outcome {
                Err(Errno::INTR) => {}
                Ok(bytes) => return moved(bytes),
                Err(error) => return -error.raw_os_error(),
            }
        }
    }
}

struct Positioned {
    file: OwnedFd,
    /// `None` after a failed I/O.
    position: Option<u64>,
}

impl Moves for Positioned {
    fn file(&self) -> &OwnedFd {
        &self.file
    }

    #[inline(always)]
    fn transfer(&mut self, kind: Kind, offset: u64, memory: &mut [u8], calls: &mut u64) -> i32 {
        if self.position != Some(offset) {
            *calls += 1;
            if let Err(error) = seek(&self.file, SeekFrom::Start(offset)) {
                return -error.raw_os_error();
            }
        }
        let outcome = loop {
            *calls += 1;
            let outcome = match kind {
                Kind::Read => rustix::io::read(&self.file, &mut *memory),
                Kind::Write | Kind::Trim => rustix::io::write(&self.file, memory),
            };
            if outcome != Err(Errno::INTR) {
                break outcome;
            }
        };
        self.position = outcome.ok().map(|bytes| offset + bytes as u64);
        result_of(outcome.map_err(Into::into))
    }
}

struct Mapped {
    file: OwnedFd,
    mapping: ByteStore,
    /// `direct=1`: each write is synced, as fio does it.
    through: bool,
}

impl Moves for Mapped {
    fn file(&self) -> &OwnedFd {
        &self.file
    }

    #[inline(always)]
    fn transfer(&mut self, kind: Kind, offset: u64, memory: &mut [u8], calls: &mut u64) -> i32 {
        let (offset, length) = (offset as usize, memory.len());
        if offset.checked_add(length).is_none_or(|end| end > self.mapping.len()) {
            return -14;
        }
        match kind {
            Kind::Read => self.mapping.read(offset, memory),
            Kind::Write | Kind::Trim => self.mapping.write(offset, memory),
        }
        if self.through {
            *calls += 1;
            if let Err(error) = self.mapping.sync(offset, length) {
                return result_of(Err(error));
            }
        }
        moved(length)
    }
}

struct OneByOne<F> {
    files: Vec<F>,
    buffer: AlignedBuffer,
    calls: u64,
    trims: Trims,
}

impl<F: Moves> Perform for OneByOne<F> {
    #[inline(always)]
    fn perform(&mut self, request: &Request) -> i32 {
        let Some(file) = self.files.get_mut(request.file as usize) else { return -9 };
        if request.kind == Kind::Trim {
            return self.trims.perform(file.file(), request);
        }
        let Some(memory) = self.buffer.get_mut(..request.length as usize) else { return -14 };
        file.transfer(request.kind, request.offset, memory, &mut self.calls)
    }

    fn with_memory(&mut self, length: u32, work: &mut dyn FnMut(&mut [u8])) {
        self.buffer.get_mut(..length as usize).into_iter().for_each(work);
    }

    fn sync(&mut self, file: u32, what: Sync) -> io::Result<bool> {
        sync_file(self.files.get(file as usize).map(Moves::file), what)
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.calls + self.trims.calls)
    }
}
