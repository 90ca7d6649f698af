//! Engines on the asynchronous rings of the kernel: libaio, and io_uring, which has one ring per job, with registered buffers, files and
//! ring descriptor unless the job disables them.

use super::{OpenEngine, Queue, Stages, Sync, Trims, flags, noisy_slots, open_files, sync_file};
use crate::worker_pool::JobCopy;
use crate::workload::request_source::{Kind, Request};
use lab::error::{Error, Result};
use model::plan::JobPlan;
use std::io;
use sys::aio::AioContext;
use sys::ring_slots::{Ring, Transfer, Way};
use sys::uring::{Asking, BlockRing};

/// Most buffers that the kernel registers with a ring; the ring itself may have twice as many entries.
const MOST_BUFFERS: u32 = 16_384;

pub(super) fn libaio(copy: &JobCopy) -> Result<OpenEngine> {
    let (plan, depth) = (copy.plan, copy.plan.depth.in_flight);
    let context = AioContext::new(open_files(copy)?, noisy_slots(plan, depth)?, depth);
    let context = context.map_err(|error| match error.raw_os_error() {
        Some(11) => {
            let limit = "exceeds what the system's limit of asynchronous I/Os leaves; raise sysctl fs.aio-max-nr";
            Error::refused(plan, format_args!("iodepth={depth} {limit}"))
        }
        _ => Error::job(&plan.name, "setting up libaio", error),
    });
    Ok(ready(context?, copy))
}

pub(super) fn io_uring(copy: &JobCopy) -> Result<OpenEngine> {
    let (plan, depth) = (copy.plan, copy.plan.depth.in_flight);
    let (files, slots) = (open_files(copy)?, noisy_slots(plan, depth)?);
    let ring = BlockRing::new(files, slots, depth, asking(plan));
    Ok(ready(ring.map_err(|error| unusable(plan, depth, error))?, copy))
}

fn asking(plan: &JobPlan) -> Asking {
    let calls = plan.calls;
    Asking {
        registered_buffers: calls.fixed_buffers.unwrap_or(true),
        registered_files: calls.registered_files.unwrap_or(true),
        polled: calls.polled,
        submission_thread: calls.submission_thread,
        force_async: calls.force_async,
        flags: flags(plan).bits().cast_signed(),
    }
}

fn unusable(plan: &JobPlan, depth: u32, error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(1 | 38) => {
            let mend = "set sysctl kernel.io_uring_disabled=0, use a container whose seccomp profile allows it, or use ioengine=libaio";
            Error::refused(plan, format_args!("io_uring is not allowed here ({error}); {mend}"))
        }
        Some(22) if depth > MOST_BUFFERS => {
            let mend = format_args!("use at most {MOST_BUFFERS}, or 32768 with fixedbufs=0");
            Error::refused(plan, format_args!("iodepth={depth} exceeds the limit of io_uring; {mend}"))
        }
        _ => Error::job(&plan.name, "setting up io_uring", error),
    }
}

fn ready(ring: impl Ring + 'static, copy: &JobCopy) -> OpenEngine {
    let trimmed = Vec::with_capacity(copy.plan.depth.in_flight as usize);
    let mut engine = OnRing { ring, trims: Trims::of(copy), trimmed };
    Box::new(move |worker| worker.run_queued(&mut engine))
}

struct OnRing<R> {
    ring: R,
    /// A ring does not trim: that is done when it is staged.
    trims: Trims,
    trimmed: Vec<(u32, i32)>,
}

impl<R: Ring> Queue for OnRing<R> {
    #[inline(always)]
    fn stage(&mut self, slot: u32, request: &Request) -> io::Result<()> {
        let way = match request.kind {
            Kind::Read => Way::Read,
            Kind::Write => Way::Write,
            Kind::Trim => {
                let file = self.ring.slots().files().get(request.file as usize);
                let result = file.map_or(-9, |file| self.trims.perform(file, request));
                self.trimmed.push((slot, result));
                return Ok(());
            }
        };
        let Request { file, offset, length, .. } = *request;
        self.ring.stage(slot, &Transfer { way, file, offset, length })
    }

    fn submit(&mut self) -> io::Result<()> {
        self.ring.submit()
    }

    fn wait(&mut self, least: u32, most: u32) -> io::Result<()> {
        let trimmed = u32::try_from(self.trimmed.len()).unwrap_or(u32::MAX);
        if self.ring.slots().in_flight() == 0 {
            return Ok(());
        }
        self.ring.wait(least.saturating_sub(trimmed), most)
    }

    #[inline(always)]
    fn reap(&mut self, most: u32, each: &mut dyn FnMut(u32, i32, Option<Stages>)) {
        self.ring.reap(most, |completion| each(completion.slot, completion.result, None));
        self.trimmed.drain(..).for_each(|(slot, result)| each(slot, result, None));
    }

    fn with_memory(&mut self, slot: u32, length: u32, work: &mut dyn FnMut(&mut [u8])) {
        self.ring.contents(slot, length).into_iter().for_each(work);
    }

    fn sync(&mut self, file: u32, what: Sync) -> io::Result<bool> {
        sync_file(self.ring.slots().files().get(file as usize), what)
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.ring.syscalls() + self.trims.calls)
    }
}
