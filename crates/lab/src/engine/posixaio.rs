//! aio_read, aio_write and aio_fsync: threads of the C library perform the I/O.

mod library_threads;

use super::libaio::transfer;
use super::traits::{Queue, Stages, Sync};
use super::trims::Trims;
use super::{OpenEngine, Setup, noisy_slots, open_files};
use crate::error::{Error, Result};
use crate::workload::request_source::Request;
pub(crate) use library_threads::{Share, ended_beside, nanos as library_nanos, thread_ids as library_thread_ids};
use std::fs::File;
use std::io;
use std::sync::Arc;
use sys::posix_aio::PosixAio;

struct Posixaio {
    aio: PosixAio,
    trims: Trims,
    trimmed: Vec<(u32, i32)>,
    share: Arc<Share>,
}

pub(super) fn open(setup: &Setup) -> Result<OpenEngine> {
    let plan = setup.plan;
    let depth = plan.depth.in_flight;
    let failed = |error| Error::job(&plan.name, "setting up posixaio", error);
    let aio = PosixAio::new(open_files(setup)?, noisy_slots(plan, depth)?, depth).map_err(failed)?;
    let share = Share::join().map_err(failed)?;
    let trimmed = Vec::with_capacity(depth as usize);
    let mut engine = Posixaio { aio, trims: Trims::of(setup)?, trimmed, share };
    Ok(Box::new(move |worker| {
        worker.helped_by_library(&engine.share);
        worker.run_queued(&mut engine)
    }))
}

impl Drop for Posixaio {
    fn drop(&mut self) {
        self.share.leave();
    }
}

impl Queue for Posixaio {
    #[inline(always)]
    fn stage(&mut self, slot: u32, request: &Request) -> io::Result<()> {
        match transfer(request) {
            Some(transfer) => self.aio.start(slot, &transfer),
            None => {
                let file = self.aio.files().get(request.file as usize);
                let result = file.map_or(-9, |file| self.trims.perform(file, request));
                self.trimmed.push((slot, result));
                Ok(())
            }
        }
    }

    fn submit(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, least: u32, most: u32) -> io::Result<()> {
        let trimmed = u32::try_from(self.trimmed.len()).unwrap_or(u32::MAX);
        self.aio.wait(least.saturating_sub(trimmed), most);
        Ok(())
    }

    fn reap(&mut self, _: u32, mut each: impl FnMut(u32, i32, Option<Stages>)) {
        self.aio.reap(|completion| each(completion.slot, completion.result, None));
        self.trimmed.drain(..).for_each(|(slot, result)| each(slot, result, None));
    }

    fn with_memory(&mut self, slot: u32, length: u32, work: &mut dyn FnMut(&mut [u8])) {
        self.aio.contents(slot, length).into_iter().for_each(work);
    }

    fn sync(&mut self, file: u32, _: Sync) -> io::Result<bool> {
        self.aio.sync(file)?;
        Ok(true)
    }

    fn submit_all(&mut self) -> io::Result<bool> {
        // The library knows files by their descriptors.
        Ok(self.aio.in_flight() == 0)
    }

    fn replace(&mut self, index: u32, file: File) -> io::Result<File> {
        self.aio.replace_file(index, file)
    }

    fn syscalls(&self) -> Option<u64> {
        // The library does not tell how often its threads and the job wake each other.
        None
    }
}
