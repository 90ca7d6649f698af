//! The kernel's native asynchronous I/O.

use super::traits::{Queue, Stages, Sync};
use super::trims::Trims;
use super::{OpenEngine, Setup, noisy_slots, open_files, sync_file};
use crate::error::{Error, Result};
use crate::workload::request_source::{Kind, Request};
use std::fs::File;
use std::io;
use sys::aio::AioContext;
use sys::ring_slots::{Transfer, Way};

struct Libaio {
    context: AioContext,
    trims: Trims,
    trimmed: Vec<(u32, i32)>,
}

pub(super) fn open(setup: &Setup) -> Result<OpenEngine> {
    let plan = setup.plan;
    let depth = plan.depth.in_flight;
    let context = AioContext::new(open_files(setup)?, noisy_slots(plan, depth)?, depth).map_err(|error| match error
        .raw_os_error()
    {
        Some(11) => Error::Refused(format!(
            "job '{}': iodepth={depth} exceeds what the system's limit of asynchronous I/Os leaves; raise sysctl fs.aio-max-nr",
            plan.name
        )),
        _ => Error::job(&plan.name, "setting up libaio", error),
    })?;
    let mut engine = Libaio { context, trims: Trims::of(setup), trimmed: Vec::with_capacity(depth as usize) };
    Ok(Box::new(move |worker| worker.run_queued(&mut engine)))
}

/// A request in the form of the rings; `None` for a trim, which they do not support.
pub(super) fn transfer(request: &Request) -> Option<Transfer> {
    let way = match request.kind {
        Kind::Read => Way::Read,
        Kind::Write => Way::Write,
        Kind::Trim => return None,
    };
    Some(Transfer { way, file: request.file, offset: request.offset, length: request.length })
}

impl Queue for Libaio {
    #[inline(always)]
    fn stage(&mut self, slot: u32, request: &Request) -> io::Result<()> {
        match transfer(request) {
            Some(transfer) => self.context.stage(slot, &transfer),
            None => {
                let file = self.context.files().get(request.file as usize);
                let result = file.map_or(-9, |file| self.trims.perform(file, request));
                self.trimmed.push((slot, result));
            }
        }
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        self.context.submit()
    }

    fn wait(&mut self, least: u32, most: u32) -> io::Result<()> {
        let trimmed = u32::try_from(self.trimmed.len()).unwrap_or(u32::MAX);
        if self.context.in_flight() == 0 {
            return Ok(());
        }
        self.context.wait(least.saturating_sub(trimmed), most)
    }

    #[inline(always)]
    fn reap(&mut self, _: u32, each: &mut dyn FnMut(u32, i32, Option<Stages>)) {
        self.context.reap(|completion| each(completion.slot, completion.result, None));
        self.trimmed.drain(..).for_each(|(slot, result)| each(slot, result, None));
    }

    fn with_memory(&mut self, slot: u32, length: u32, work: &mut dyn FnMut(&mut [u8])) {
        self.context.contents(slot, length).into_iter().for_each(work);
    }

    fn sync(&mut self, file: u32, what: Sync) -> io::Result<bool> {
        sync_file(self.context.files(), file, what)
    }

    fn submit_all(&mut self) -> io::Result<bool> {
        self.submit()?;
        Ok(!self.context.has_staged())
    }

    fn replace(&mut self, index: u32, file: File) -> io::Result<File> {
        self.context.replace_file(index, file)
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.context.syscalls() + self.trims.calls())
    }
}
