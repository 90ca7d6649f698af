//! The calls that take a vector of buffers, with one buffer: readv and writev at the file's position, preadv and pwritev, preadv2 and
//! pwritev2 with their flags. One I/O at a time.

use super::traits::{Perform, Sync};
use super::trims::Trims;
use super::{OpenEngine, Setup, noisy_slots, open_files, replaced, result_of, sync_file};
use crate::error::Result;
use crate::workload::request_source::{Kind, Request};
use model::plan::EngineKind;
use rustix::fs::{SeekFrom, seek};
use rustix::io::{Errno, ReadWriteFlags};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use sys::buffer::AlignedBuffer;

/// Which calls.
enum Calls {
    /// readv, writev, and lseek where an I/O does not follow the last one; the position of each file, `None` after a failed I/O.
    AtPosition(Vec<Option<u64>>),
    /// preadv, pwritev.
    Plain,
    /// preadv2, pwritev2.
    Flagged(ReadWriteFlags),
}

struct Vectored {
    files: Vec<File>,
    buffer: AlignedBuffer,
    how: Calls,
    calls: u64,
    trims: Trims,
}

pub(super) fn open(setup: &Setup) -> Result<OpenEngine> {
    let files = open_files(setup)?;
    let how = match setup.plan.engine {
        EngineKind::Vsync => Calls::AtPosition(vec![Some(0); files.len()]),
        EngineKind::Pvsync2 => Calls::Flagged(flags(setup)),
        _ => Calls::Plain,
    };
    let mut engine = Vectored { files, buffer: noisy_slots(setup.plan, 1)?, how, calls: 0, trims: Trims::of(setup)? };
    Ok(Box::new(move |worker| worker.run_direct(&mut engine)))
}

/// RWF_DONTCACHE of linux/fs.h (6.14).
pub(super) const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

fn flags(setup: &Setup) -> ReadWriteFlags {
    let calls = &setup.plan.calls;
    let mut flags = ReadWriteFlags::empty();
    flags.set(ReadWriteFlags::HIPRI, calls.polled);
    flags.set(ReadWriteFlags::NOWAIT, calls.nowait);
    flags.set(DONTCACHE, calls.uncached);
    flags
}

impl Perform for Vectored {
    #[inline(always)]
    fn perform(&mut self, request: &Request) -> i32 {
        let Some(file) = self.files.get(request.file as usize) else { return -9 };
        if request.kind == Kind::Trim {
            return self.trims.perform(file, request);
        }
        let Some(memory) = self.buffer.get_mut(..request.length as usize) else { return -14 };
        let reads = request.kind == Kind::Read;
        let offset = request.offset;
        if let Calls::AtPosition(positions) = &self.how
            && positions.get(request.file as usize) != Some(&Some(offset))
        {
            self.calls += 1;
            if let Err(error) = seek(file, SeekFrom::Start(offset)) {
                return -error.raw_os_error();
            }
        }
        let outcome = loop {
            self.calls += 1;
            let outcome = match (&self.how, reads) {
                (Calls::AtPosition(_), true) => rustix::io::readv(file, &mut [IoSliceMut::new(memory)]),
                (Calls::AtPosition(_), false) => rustix::io::writev(file, &[IoSlice::new(memory)]),
                (Calls::Plain, true) => rustix::io::preadv(file, &mut [IoSliceMut::new(memory)], offset),
                (Calls::Plain, false) => rustix::io::pwritev(file, &[IoSlice::new(memory)], offset),
                (Calls::Flagged(flags), true) => {
                    rustix::io::preadv2(file, &mut [IoSliceMut::new(memory)], offset, *flags)
                }
                (Calls::Flagged(flags), false) => rustix::io::pwritev2(file, &[IoSlice::new(memory)], offset, *flags),
            };
            if outcome != Err(Errno::INTR) {
                break outcome;
            }
        };
        if let Calls::AtPosition(positions) = &mut self.how
            && let Some(position) = positions.get_mut(request.file as usize)
        {
            *position = outcome.ok().map(|bytes| offset + bytes as u64);
        }
        result_of(outcome.map_err(Into::into))
    }

    fn with_memory(&mut self, length: u32, work: &mut dyn FnMut(&mut [u8])) {
        self.buffer.get_mut(..length as usize).into_iter().for_each(work);
    }

    fn sync(&mut self, file: u32, what: Sync) -> io::Result<bool> {
        sync_file(&self.files, file, what)
    }

    fn replace(&mut self, index: u32, file: File) -> io::Result<File> {
        if let Calls::AtPosition(positions) = &mut self.how
            && let Some(position) = positions.get_mut(index as usize)
        {
            *position = Some(0);
        }
        replaced(&mut self.files, index, file)
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.calls + self.trims.calls())
    }
}
