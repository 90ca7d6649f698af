//! What observes the I/Os of an engine, around it: a log of them, and a payload that prepares each block before it is written and checks
//! each that was read. A type of its own with stamps of its own, so that the loops of jobs without them do not contain them.

use super::traits::{Queue, Stages, Sync};
use crate::io_log::{Entry, IoLog};
use crate::workload::payload::{Expected, Payload};
use crate::workload::request_source::{Kind, Request};
use std::io;
use sys::clock::ticks;

pub(super) struct Observed<'a> {
    engine: &'a mut dyn Queue,
    pub log: Option<Box<IoLog>>,
    pub payload: Option<Box<Payload>>,
    /// The engine performs each I/O at once: it is handed over when it is issued.
    at_once: bool,
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
    /// What the block is to be checked against.
    expected: Option<Expected>,
}

impl<'a> Observed<'a> {
    /// `depth`: I/Os in flight.
    pub fn new(
        engine: &'a mut dyn Queue,
        log: Option<Box<IoLog>>,
        payload: Option<Box<Payload>>,
        depth: u32,
        at_once: bool,
    ) -> Self {
        let request = Request { kind: Kind::Read, file: 0, offset: 0, length: 0 };
        let slots = vec![Slot { request, issued: 0, handed: 0, expected: None }; depth as usize];
        let (staged, done) = (Vec::with_capacity(slots.len()), Vec::with_capacity(slots.len()));
        Self { engine, log, payload, at_once, slots, staged, done }
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

impl Queue for Observed<'_> {
    fn stage(&mut self, slot: u32, request: &Request) -> io::Result<()> {
        let mut expected = None;
        if let Some(payload) = &mut self.payload {
            if request.kind == Kind::Write {
                self.engine.with_memory(slot, request.length, &mut |memory| payload.before_write(request, memory));
            }
            expected = payload.expectation(request);
        }
        let issued = ticks();
        if let Some(entry) = self.slots.get_mut(slot as usize) {
            *entry = Slot { request: *request, issued, handed: issued, expected };
        }
        if let Some(log) = &mut self.log {
            log.note_request(request, issued);
            if !self.at_once {
                self.staged.push(slot);
            }
        }
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

    fn reap(&mut self, most: u32, each: &mut dyn FnMut(u32, i32, Option<Stages>)) {
        let now = ticks();
        let Self { engine, log, payload, slots, done, .. } = self;
        engine.reap(most, &mut |slot, result, stages| done.push((slot, result, stages)));
        for (slot, moved, stages) in done.drain(..) {
            let mut result = moved;
            if let Some(Slot { request, issued, handed, expected }) = slots.get_mut(slot as usize) {
                let Request { kind, offset, .. } = *request;
                // Lengths above 2 GiB are negative, and below the errors.
                if let Some(log) = log.as_mut().filter(|_| !(-4095..=0).contains(&moved)) {
                    let length = moved.cast_unsigned();
                    log.note(&Entry { kind, offset, length, issued: *issued, handed: *handed, done: now });
                }
                if let (Some(payload), Some(expected)) = (payload.as_mut(), expected.take().filter(|_| moved > 0)) {
                    engine.with_memory(slot, request.length, &mut |memory| {
                        result = payload.after_read(request, expected, moved, memory);
                    });
                }
            }
            each(slot, result, stages);
        }
    }

    fn count_from(&mut self, now: u64) {
        self.log.iter_mut().for_each(|log| log.count_from(now));
    }

    fn sync(&mut self, file: u32, what: Sync) -> io::Result<bool> {
        self.log.iter_mut().for_each(|log| log.note_sync(file, what));
        self.engine.sync(file, what)
    }

    fn syscalls(&self) -> Option<u64> {
        self.engine.syscalls()
    }
}
