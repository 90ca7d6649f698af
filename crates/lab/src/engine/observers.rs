//! What observes the I/Os of an engine, around it: a log of them (`Logging`), and a payload that prepares each block before it is written and checks
//! each that was read (`Carrying`). Types of their own with stamps of their own, so that the loops of jobs without them do not contain them.

use super::traits::{Perform, Queue, Stages, Sync};
use crate::io_log::{Entry, IoLog};
use crate::workload::payload::{Expected, Payload};
use crate::workload::request_source::{Kind, Request};
use std::fs::File;
use std::io;
use sys::clock::ticks;

pub(super) struct Logging<'a, E: ?Sized> {
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

impl<'a, E: ?Sized> Logging<'a, E> {
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

/// Whether a result is no error.
fn is_success(result: i32) -> bool {
    !(-4095..=0).contains(&result)
}

impl<E: Perform + ?Sized> Perform for Logging<'_, E> {
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
        self.log.note_sync(file, what == Sync::Data);
        self.engine.sync(file, what)
    }

    fn replace(&mut self, index: u32, file: File) -> io::Result<File> {
        self.engine.replace(index, file)
    }

    fn syscalls(&self) -> Option<u64> {
        self.engine.syscalls()
    }
}

impl<E: Queue + ?Sized> Queue for Logging<'_, E> {
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
    fn reap(&mut self, most: u32, each: &mut dyn FnMut(u32, i32, Option<Stages>)) {
        let now = ticks();
        let Self { engine, log, slots, done, .. } = self;
        engine.reap(most, &mut |slot, result, stages| done.push((slot, result, stages)));
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
        self.log.note_sync(file, what == Sync::Data);
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

pub(super) struct Carrying<'a, E: ?Sized> {
    engine: &'a mut E,
    payload: &'a mut Payload,
    /// Per slot, the read that is to be checked.
    checks: Vec<Option<(Request, Expected)>>,
    /// Completions, until their blocks are checked.
    done: Vec<(u32, i32, Option<Stages>)>,
}

impl<'a, E: ?Sized> Carrying<'a, E> {
    /// `depth`: I/Os in flight.
    pub fn new(engine: &'a mut E, payload: &'a mut Payload, depth: u32) -> Self {
        let slots = depth as usize;
        Self { engine, payload, checks: vec![None; slots], done: Vec::with_capacity(slots) }
    }
}

impl<E: Perform + ?Sized> Perform for Carrying<'_, E> {
    #[inline(always)]
    fn perform(&mut self, request: &Request) -> i32 {
        let Self { engine, payload, .. } = self;
        if request.kind == Kind::Write {
            engine.with_memory(request.length, &mut |memory| payload.before_write(request, memory));
        }
        let expected = payload.expectation(request);
        let mut result = engine.perform(request);
        if let Some(expected) = expected.filter(|_| result > 0) {
            let moved = result;
            engine.with_memory(request.length, &mut |memory| {
                result = payload.after_read(request, expected, moved, memory);
            });
        }
        result
    }

    fn count_from(&mut self, now: u64) {
        self.engine.count_from(now);
    }

    fn sync(&mut self, file: u32, what: Sync) -> io::Result<bool> {
        self.engine.sync(file, what)
    }

    fn replace(&mut self, index: u32, file: File) -> io::Result<File> {
        self.engine.replace(index, file)
    }

    fn syscalls(&self) -> Option<u64> {
        self.engine.syscalls()
    }
}

impl<E: Queue + ?Sized> Queue for Carrying<'_, E> {
    #[inline(always)]
    fn stage(&mut self, slot: u32, request: &Request) -> io::Result<()> {
        let Self { engine, payload, checks, .. } = self;
        if request.kind == Kind::Write {
            engine.with_memory(slot, request.length, &mut |memory| payload.before_write(request, memory));
        }
        if let Some(check) = checks.get_mut(slot as usize) {
            *check = payload.expectation(request).map(|expected| (*request, expected));
        }
        engine.stage(slot, request)
    }

    fn submit(&mut self) -> io::Result<()> {
        self.engine.submit()
    }

    fn wait(&mut self, least: u32, most: u32) -> io::Result<()> {
        self.engine.wait(least, most)
    }

    #[inline(always)]
    fn reap(&mut self, most: u32, each: &mut dyn FnMut(u32, i32, Option<Stages>)) {
        let Self { engine, payload, checks, done } = self;
        engine.reap(most, &mut |slot, result, stages| done.push((slot, result, stages)));
        for (slot, moved, stages) in done.drain(..) {
            let mut result = moved;
            let check = checks.get_mut(slot as usize).and_then(Option::take);
            if let Some((request, expected)) = check.filter(|_| moved > 0) {
                engine.with_memory(slot, request.length, &mut |memory| {
                    result = payload.after_read(&request, expected, moved, memory);
                });
            }
            each(slot, result, stages);
        }
    }

    fn count_from(&mut self, now: u64) {
        self.engine.count_from(now);
    }

    fn sync(&mut self, file: u32, what: Sync) -> io::Result<bool> {
        self.engine.sync(file, what)
    }

    fn submit_all(&mut self) -> io::Result<bool> {
        self.engine.submit_all()
    }

    fn replace(&mut self, index: u32, file: File) -> io::Result<File> {
        self.engine.replace(index, file)
    }

    fn syscalls(&self) -> Option<u64> {
        self.engine.syscalls()
    }
}
