//! Engines issue I/O for the measured loop, by [`Perform`] or [`Queue`]. To add one, write its file, a row of `TABLE`, and a row of `engines!` in the model.

mod busy;
mod control;
mod mem;
mod nbd;
mod one_by_one;
pub(crate) mod pacing;
mod rings;
mod rr;
pub mod tally;
pub mod worker;

use crate::worker_pool::JobCopy;
use crate::workload::payload::fill_once;
use crate::workload::request_source::Request;
use crate::workload::target::{self, LayoutProgress, Span, Target};
use lab::created::Created;
use lab::error::{Error, Result};
use model::plan::{EngineKind, JobPlan, Medium, Size};
pub use nbd::tuning as path_tuning;
use rustix::fs::FallocateFlags;
use rustix::io::ReadWriteFlags;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use sys::buffer::AlignedBuffer;
use worker::Worker;

/// An open engine, ready to run, also several times. It belongs to the thread that opened it, as the ring of io_uring
/// does.
pub type OpenEngine = Box<dyn FnMut(&mut Worker) -> Result<()>>;

/// Opens an engine, with the rate of the time-stamp counter; everything that takes time or memory happens here.
type Open = fn(&JobCopy) -> Result<OpenEngine>;

const TABLE: [(EngineKind, Open); 13] = [
    (EngineKind::Null, busy::null),
    (EngineKind::Spin, busy::spin),
    (EngineKind::Work, busy::work),
    (EngineKind::Mem, mem::open),
    (EngineKind::Rr, rr::open),
    (EngineKind::Psync, one_by_one::psync),
    (EngineKind::Pvsync, one_by_one::pvsync),
    (EngineKind::Pvsync2, one_by_one::pvsync2),
    (EngineKind::Sync, one_by_one::sync),
    (EngineKind::Mmap, one_by_one::mmap),
    (EngineKind::Libaio, rings::libaio),
    (EngineKind::IoUring, rings::io_uring),
    (EngineKind::Nbd, nbd::open),
];

/// An engine that completes a request before it returns.
pub trait Perform {
    /// Bytes moved, or minus the error number.
    fn perform(&mut self, request: &Request) -> i32;
    /// Passes the memory of the next or last I/O of this length to `work`, if the engine has one.
    fn with_memory(&mut self, _length: u32, _work: &mut dyn FnMut(&mut [u8])) {}
    /// Makes what was written to a file durable. Returns whether that took a call or a request, or nothing has to be done.
    fn sync(&mut self, _file: u32, _what: Sync) -> io::Result<bool> {
        Ok(true)
    }
    /// System calls so far; `None` for an engine that makes none.
    fn syscalls(&self) -> Option<u64> {
        None
    }
}

/// An engine that has several requests in flight, each in a slot.
pub trait Queue {
    /// Adds a request to the next batch.
    fn stage(&mut self, slot: u32, request: &Request) -> io::Result<()>;
    /// Submits the batch.
    fn submit(&mut self) -> io::Result<()>;
    /// Submits the batch and waits until `least` are done; takes at most `most`.
    fn wait(&mut self, least: u32, most: u32) -> io::Result<()>;
    /// Takes completed requests: slot, bytes moved or minus the error number, and the times of its stages if the engine
    /// measures them.
    fn reap(&mut self, most: u32, each: &mut dyn FnMut(u32, i32, Option<Stages>));
    /// Passes the memory of a slot that is not in flight to `work`, if the engine has one.
    fn with_memory(&mut self, _slot: u32, _length: u32, _work: &mut dyn FnMut(&mut [u8])) {}
    /// As [`Perform::sync`]; called with nothing in flight.
    fn sync(&mut self, file: u32, what: Sync) -> io::Result<bool>;
    /// I/Os count from this instant, for a queue that logs them.
    fn count_from(&mut self, _now: u64) {}
    /// System calls so far; `None` for an engine that makes none.
    fn syscalls(&self) -> Option<u64>;
}

/// Times at which a request went from one stage to the next, in ticks. The first stage starts when it is issued, the
/// last ends when it is reaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    /// Its first byte is sent now.
    pub handed_over: u64,
    /// The system call that sent its last byte returned; `None` if the engine does not measure that.
    pub sent: Option<u64>,
    /// Its reply was received and parsed.
    pub answered: u64,
}

/// What to make durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// fsync(2): data and metadata.
    All,
    /// fdatasync(2): what is needed to read the data back.
    Data,
}

/// Gives an engine that performs each I/O at once the interface of a queue: performs an I/O when it is staged, and keeps the result until
/// it is reaped.
pub struct Immediate<'a, E: ?Sized> {
    engine: &'a mut E,
    done: Vec<(u32, i32)>,
}

impl<'a, E: ?Sized> Immediate<'a, E> {
    pub fn new(engine: &'a mut E, depth: u32) -> Self {
        Self { engine, done: Vec::with_capacity(depth as usize) }
    }
}

impl<E: Perform + ?Sized> Queue for Immediate<'_, E> {
    #[inline(always)]
    fn stage(&mut self, slot: u32, request: &Request) -> io::Result<()> {
        self.done.push((slot, self.engine.perform(request)));
        Ok(())
    }

    #[inline(always)]
    fn submit(&mut self) -> io::Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn wait(&mut self, _: u32, _: u32) -> io::Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn reap(&mut self, most: u32, each: &mut dyn FnMut(u32, i32, Option<Stages>)) {
        let count = self.done.len().min(most as usize);
        self.done.drain(..count).for_each(|(slot, result)| each(slot, result, None));
    }

    fn with_memory(&mut self, _: u32, length: u32, work: &mut dyn FnMut(&mut [u8])) {
        self.engine.with_memory(length, work);
    }

    fn sync(&mut self, file: u32, what: Sync) -> io::Result<bool> {
        self.engine.sync(file, what)
    }

    fn syscalls(&self) -> Option<u64> {
        self.engine.syscalls()
    }
}

/// Finds or makes what one copy of a job works on: its files, its part of a remote export, or, for an engine without
/// I/O, a span of its own.
///
/// # Errors
/// Refused or failed, with the fix; files made so far are in `created`.
pub fn prepare(plan: &JobPlan, copy: u32, created: &Created, progress: LayoutProgress) -> Result<Vec<Target>> {
    let span = match plan.engine.medium() {
        Medium::Files => return target::prepare(plan, copy, created, progress),
        Medium::Remote => nbd::span(plan, copy)?,
        Medium::Nothing => {
            let length = match plan.target.size {
                Some(Size::Bytes(bytes)) => bytes.0,
                _ => plan.buffer_bytes() << 16,
            };
            Span { begin: 0, length, beyond: 0 }
        }
    };
    Ok(vec![Target { path: PathBuf::new(), span }])
}

/// Opens the engine of a job.
///
/// # Errors
/// What is missing, in one line: a file, memory, a system call that is not allowed.
pub fn open(copy: &JobCopy) -> Result<OpenEngine> {
    let row = TABLE.iter().find(|(kind, _)| *kind == copy.plan.engine);
    let (_, open) = row.ok_or_else(|| Error::Refused(format!("engine {:?} is not built in", copy.plan.engine)))?;
    open(copy)
}

/// The files of a job. The loops hold them as `OwnedFd`: the descriptor of a `File` costs a call into the standard library per I/O.
fn open_files<F: From<File>>(copy: &JobCopy) -> Result<Vec<F>> {
    copy.targets.iter().map(|target| target::open(copy.plan, target).map(F::from)).collect()
}

/// Bytes of one slot: the largest block, in whole pages so that every slot suits O_DIRECT.
fn slot_bytes(plan: &JobPlan) -> usize {
    usize::try_from(plan.slot_bytes().max(1)).unwrap_or(usize::MAX).next_multiple_of(4096)
}

/// Memory of `count` slots, filled with data that neither compresses nor repeats, unless the job has other content.
fn noisy_slots(plan: &JobPlan, count: u32) -> Result<AlignedBuffer> {
    let failed = |error| Error::job(&plan.name, format!("{count} I/O buffers of {} bytes", slot_bytes(plan)), error);
    let length = slot_bytes(plan).checked_mul(count as usize);
    let length = length.ok_or_else(|| failed(io::ErrorKind::OutOfMemory.into()))?;
    let mut buffer = AlignedBuffer::zeroed(length).map_err(failed)?;
    fill_once(plan, &mut buffer, slot_bytes(plan), |memory| target::fill_with_noise(memory, &mut 0x5eed));
    Ok(buffer)
}

/// What each read and write of a job asks the kernel for.
fn flags(plan: &JobPlan) -> ReadWriteFlags {
    /// RWF_DONTCACHE of linux/fs.h (6.14).
    const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);
    let mut flags = ReadWriteFlags::empty();
    flags.set(ReadWriteFlags::NOWAIT, plan.calls.nowait);
    flags.set(DONTCACHE, plan.calls.uncached);
    flags
}

/// fsync or fdatasync of a file.
fn sync_file(file: Option<&OwnedFd>, what: Sync) -> io::Result<bool> {
    let Some(file) = file else { return Ok(false) };
    rustix::io::retry_on_intr(|| match what {
        Sync::All => rustix::fs::fsync(file),
        Sync::Data => rustix::fs::fdatasync(file),
    })?;
    Ok(true)
}

/// Trims as fio makes them: of a device with BLKDISCARD, of a file by punching a hole. One system call each.
struct Trims {
    /// Whether it is a device: found out before the first I/O, so that no trim has to ask.
    devices: Vec<bool>,
    calls: u64,
}

impl Trims {
    fn of(copy: &JobCopy) -> Self {
        let is_device = |path| std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device());
        Self { devices: copy.targets.iter().map(|target| is_device(&target.path)).collect(), calls: 0 }
    }

    /// Not inlined, so that the loops of reads and writes stay small.
    #[inline(never)]
    fn perform(&mut self, file: &OwnedFd, request: &Request) -> i32 {
        let (offset, length) = (request.offset, u64::from(request.length));
        self.calls += 1;
        let outcome = if self.devices.get(request.file as usize) == Some(&true) {
            sys::device::discard(file, offset, length)
        } else {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            rustix::fs::fallocate(file, hole, offset, length).map_err(Into::into)
        };
        outcome.map_or_else(failed, |()| moved(request.length as usize))
    }
}

/// Bytes as a result: those of a block above 2 GiB are negative numbers below the errors.
fn moved(bytes: usize) -> i32 {
    u32::try_from(bytes).unwrap_or(u32::MAX).cast_signed()
}

/// An error as a result: minus its number, down to −4095.
fn failed(error: io::Error) -> i32 {
    -error.raw_os_error().unwrap_or(5)
}

#[cfg(test)]
mod conformance;
