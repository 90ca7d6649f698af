//! Engines that move one block of a file at a time in this thread: psync, pvsync, pvsync2, sync and mmap.

use super::{OpenEngine, Perform, Sync, Trims, failed, flags, moved, noisy_slots, open_files, sync_file};
use crate::worker_pool::JobCopy;
use crate::workload::request_source::{Kind, Request};
use lab::error::{Error, Result};
use rustix::fs::{SeekFrom, seek};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv, preadv2, pwrite, pwritev, pwritev2};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use sys::buffer::AlignedBuffer;
use sys::byte_store::ByteStore;

/// pread and pwrite: one system call per I/O.
pub(super) fn psync(copy: &JobCopy) -> Result<OpenEngine> {
    alike(copy, Plain)
}

/// preadv and pwritev of one buffer.
pub(super) fn pvsync(copy: &JobCopy) -> Result<OpenEngine> {
    alike(copy, None)
}

/// preadv2 and pwritev2, which take flags.
pub(super) fn pvsync2(copy: &JobCopy) -> Result<OpenEngine> {
    let mut flags = flags(copy.plan);
    flags.set(ReadWriteFlags::HIPRI, copy.plan.calls.polled);
    alike(copy, Some(flags))
}

/// read and write at the file's position, which lseek moves where the next I/O does not follow the last one: what programs without
/// pread do.
pub(super) fn sync(copy: &JobCopy) -> Result<OpenEngine> {
    alike(copy, Position(Some(0)))
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
        files.push((file.into(), Mapped { mapping, through: plan.direct }));
    }
    ready(copy, files)
}

/// Blocks of all files are moved in one way.
fn alike<M: Moves + Clone + 'static>(copy: &JobCopy, way: M) -> Result<OpenEngine> {
    ready(copy, open_files(copy)?.into_iter().map(|file| (file, way.clone())).collect())
}

fn ready<M: Moves + 'static>(copy: &JobCopy, files: Vec<(OwnedFd, M)>) -> Result<OpenEngine> {
    let mut engine = OneByOne { files, buffer: noisy_slots(copy.plan, 1)?, calls: 0, trims: Trims::of(copy) };
    Ok(Box::new(move |worker| worker.run_direct(&mut engine)))
}

/// A way of moving blocks to and from an open file.
trait Moves {
    /// Reads or writes a block: bytes moved, or minus the error number. Counts its system calls.
    fn transfer(&mut self, file: &OwnedFd, kind: Kind, offset: u64, memory: &mut [u8], calls: &mut u64) -> i32;
}

/// Makes a system call, again where a signal interrupts it. Raw system calls: the wrappers of the C library are cancellation points, which
/// cost two locked instructions each in a process with several threads.
#[inline(always)]
fn call(calls: &mut u64, mut once: impl FnMut() -> rustix::io::Result<usize>) -> rustix::io::Result<usize> {
    loop {
        *calls += 1;
        let outcome = once();
        if outcome != Err(Errno::INTR) {
            return outcome;
        }
    }
}

/// The result of a raw system call.
#[inline(always)]
fn called(outcome: rustix::io::Result<usize>) -> i32 {
    outcome.map_or_else(|error| -error.raw_os_error(), moved)
}

#[derive(Clone)]
struct Plain;

impl Moves for Plain {
    #[inline(always)]
    fn transfer(&mut self, file: &OwnedFd, kind: Kind, offset: u64, memory: &mut [u8], calls: &mut u64) -> i32 {
        called(call(calls, || match kind {
            Kind::Read => pread(file, &mut *memory, offset),
            Kind::Write | Kind::Trim => pwrite(file, &*memory, offset),
        }))
    }
}

/// Vectors of one buffer, by the calls that take flags or those that take none.
impl Moves for Option<ReadWriteFlags> {
    #[inline(always)]
    fn transfer(&mut self, file: &OwnedFd, kind: Kind, offset: u64, memory: &mut [u8], calls: &mut u64) -> i32 {
        called(call(calls, || match (kind, *self) {
            (Kind::Read, None) => preadv(file, &mut [IoSliceMut::new(memory)], offset),
            (Kind::Read, Some(flags)) => preadv2(file, &mut [IoSliceMut::new(memory)], offset, flags),
            (_, None) => pwritev(file, &[IoSlice::new(memory)], offset),
            (_, Some(flags)) => pwritev2(file, &[IoSlice::new(memory)], offset, flags),
        }))
    }
}

/// Where the file is; `None` after a failed I/O.
#[derive(Clone)]
struct Position(Option<u64>);

impl Moves for Position {
    #[inline(always)]
    fn transfer(&mut self, file: &OwnedFd, kind: Kind, offset: u64, memory: &mut [u8], calls: &mut u64) -> i32 {
        if self.0 != Some(offset) {
            *calls += 1;
            if let Err(error) = seek(file, SeekFrom::Start(offset)) {
                return -error.raw_os_error();
            }
        }
        let outcome = call(calls, || match kind {
            Kind::Read => rustix::io::read(file, &mut *memory),
            Kind::Write | Kind::Trim => rustix::io::write(file, &*memory),
        });
        self.0 = outcome.ok().map(|bytes| offset + bytes as u64);
        called(outcome)
    }
}

struct Mapped {
    mapping: ByteStore,
    /// `direct=1`: each write is synced, as fio does it.
    through: bool,
}

impl Moves for Mapped {
    #[inline(always)]
    fn transfer(&mut self, _: &OwnedFd, kind: Kind, offset: u64, memory: &mut [u8], calls: &mut u64) -> i32 {
        let (offset, length) = (offset as usize, memory.len());
        if offset.checked_add(length).is_none_or(|end| end > self.mapping.len()) {
            return -14;
        }
        match kind {
            Kind::Read => self.mapping.read(offset, memory),
            Kind::Write | Kind::Trim => self.mapping.write(offset, memory),
        }
        *calls += u64::from(self.through);
        let synced = if self.through { self.mapping.sync(offset, length) } else { Ok(()) };
        synced.map_or_else(failed, |()| moved(length))
    }
}

struct OneByOne<M> {
    files: Vec<(OwnedFd, M)>,
    buffer: AlignedBuffer,
    calls: u64,
    trims: Trims,
}

impl<M: Moves> Perform for OneByOne<M> {
    #[inline(always)]
    fn perform(&mut self, request: &Request) -> i32 {
        let Some((file, way)) = self.files.get_mut(request.file as usize) else { return -9 };
        if request.kind == Kind::Trim {
            return self.trims.perform(file, request);
        }
        let Some(memory) = self.buffer.get_mut(..request.length as usize) else { return -14 };
        way.transfer(file, request.kind, request.offset, memory, &mut self.calls)
    }

    fn with_memory(&mut self, length: u32, work: &mut dyn FnMut(&mut [u8])) {
        self.buffer.get_mut(..length as usize).into_iter().for_each(work);
    }

    fn sync(&mut self, file: u32, what: Sync) -> io::Result<bool> {
        sync_file(self.files.get(file as usize).map(|(file, _)| file), what)
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.calls + self.trims.calls)
    }
}
