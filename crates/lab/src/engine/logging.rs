//! An engine whose I/Os are logged. A type of its own with stamps of its own, so that the loops of jobs without logs do not contain it.

use super::traits::{Perform, Queue, Stages, Sync};
use crate::io_log::{Entry, IoLog};
use crate::workload::request_source::{Kind, Request};
use std::fs::File;
use std::io;
use sys::clock::ticks;

pub(super) struct Logging<'a, E> {
    engine: &'a mut E,
    log: &'a mut IoLog,
    /// Per slot, the request in flight.
    slots: Vec<Slot>,
    /// Slots that are staged and not handed over yet.
    staged: Vec<u32>,
    /// Completions of one look.
    done: Vec<(u32, i32, Option<Stages>)>,
}

#[derive(Clone, Copy)]
struct Slot {
    request: Request,
    issued: u64,
    handed: u64,
}

impl<'a, E> Logging<'a, E> {
    /// `depth`: I/Os in flight.
    pub fn new(engine: &'a mut E, log: &'a mut IoLog, depth: u32) -> Self {
        let request = Request { kind: Kind::Read, file: 0, offset: 0, length: 0 };
        let slots = vec![Slot { request, issued: 0, handed: 0 }; depth as usize];
        let list = || Vec::with_capacity(depth as usize);
        Self { engine, log, slots, staged: list(), done: Vec::with_capacity(depth as usize) }
    }

    /// What is staged is handed over now.
    fn hand_over(&mut self) {
        if self.staged.is_empty() {
            return;
        }
        let now = ticks();
        for slot in self.staged.drain(..) {
            if let Some(slot) = self.slots.get_mut(slot as usize) {
                slot.handed = now;
            }
        }
    }
}

fn entry(request: &Request, moved: i32, [issued, handed, done]: [u64; 3]) -> Entry {
    // Lengths above 2 GiB are negative.
    let Request { kind, offset, .. } = *request;
    Entry { kind, offset, length: moved.cast_unsigned(), issued, handed, done }
}

/// A trace has no syncs of ranges, because fio cannot read them.
fn note_sync(log: &mut IoLog, file: u32, what: Sync) {
    match what {
        Sync::All => log.note_sync(file, false),
        Sync::Data => log.note_sync(file, true),
        Sync::Range { .. } => {}
    }
}

/// Whether a result is no error.
fn is_success(result: i32) -> bool {
    !(-4095..=0).contains(&result)
}

impl<E: Perform> Perform for Logging<'_, E> {
    #[inline(always)]
    fn perform(&mut self, request: &Request) -> i32 {
        let issued = ticks();
        self.log.note_request(request, issued);
        let result = self.engine.perform(request);
        let done = ticks();
        if is_success(result) {
            self.log.note(&entry(request, result, [issued, issued, done]));
        }
        result
    }

    fn with_memory(&mut self, length: u32, work: &mut dyn FnMut(&mut [u8])) {
        self.engine.with_memory(length, work);
    }

    fn count_from(&mut self, now: u64) {
        self.log.count_from(now);
    }

    fn sync(&mut self, file: u32, what: Sync) -> io::Result<bool> {
        note_sync(self.log, file, what);
        self.engine.sync(file, what)
    }

    fn replace(&mut self, index: u32, file: File) -> io::Result<File> {
        self.engine.replace(index, file)
    }

    fn syscalls(&self) -> Option<u64> {
        self.engine.syscalls()
    }
}

impl<E: Queue> Queue for Logging<'_, E> {
    #[inline(always)]
    fn stage(&mut self, slot: u32, request: &Request) -> io::Result<()> {
        let issued = ticks();
        if let Some(entry) = self.slots.get_mut(slot as usize) {
            *entry = Slot { request: *request, issued, handed: issued };
        }
        self.log.note_request(request, issued);
        self.staged.push(slot);
        self.engine.stage(slot, request)
    }

    fn submit(&mut self) -> io::Result<()> {
        let outcome = self.engine.submit();
        self.hand_over();
        outcome
    }

    fn wait(&mut self, least: u32, most: u32) -> io::Result<()> {
        // One call hands the rest over and waits: it is handed over when the call begins.
        self.hand_over();
        self.engine.wait(least, most)
    }

    #[inline(always)]
    fn reap(&mut self, most: u32, mut each: impl FnMut(u32, i32, Option<Stages>)) {
        let now = ticks();
        let Self { engine, log, slots, done, .. } = self;
        engine.reap(most, |slot, result, stages| done.push((slot, result, stages)));
        for (slot, result, stages) in done.drain(..) {
            if is_success(result)
                && let Some(Slot { request, issued, handed }) = slots.get(slot as usize)
            {
                log.note(&entry(request, result, [*issued, *handed, now]));
            }
            each(slot, result, stages);
        }
    }

    fn with_memory(&mut self, slot: u32, length: u32, work: &mut dyn FnMut(&mut [u8])) {
        self.engine.with_memory(slot, length, work);
    }

    fn count_from(&mut self, now: u64) {
        self.log.count_from(now);
    }

    fn sync(&mut self, file: u32, what: Sync) -> io::Result<bool> {
        note_sync(self.log, file, what);
        self.engine.sync(file, what)
    }

    fn submit_all(&mut self) -> io::Result<bool> {
        let outcome = self.engine.submit_all();
        self.hand_over();
        outcome
    }

    fn replace(&mut self, index: u32, file: File) -> io::Result<File> {
        self.engine.replace(index, file)
    }

    fn syscalls(&self) -> Option<u64> {
        self.engine.syscalls()
    }
}
