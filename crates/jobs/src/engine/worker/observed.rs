//! What observes the I/Os of a job: a log of them, and a payload, whose blocks are checked when they are read. And what the payload leaves to
//! be read back.

use super::Worker;
use crate::engine::pacing::Backlog;
use crate::engine::{Queue, Stages, Sync};
use crate::io_log::{Entry, IoLog};
use crate::workload::payload::{Expected, Payload};
use crate::workload::request_source::{Kind, Request, RequestSource};
use lab::error::{Error, Result};
use model::plan::JobPlan;
use model::record::Verified;
use std::io;
use sys::clock::ticks;

/// What a job wrote and did not read back.
pub struct Written {
    pub payload: Box<Payload>,
    /// Draws the requests of the job again.
    pub source: Option<Box<RequestSource>>,
    /// The number of them.
    pub drawn: u64,
    /// Instead of the source: the last writes, in order.
    pub rest: Vec<Request>,
}

impl Worker {
    /// Sets what the job writes, and how it checks what it reads.
    pub fn carry(&mut self, plan: &JobPlan, payload: Payload) {
        if let Some(backlog) = &mut self.pacing.backlog {
            backlog.tell(payload.due());
        } else if plan.verify.method.is_some() && plan.verify.after && plan.access.writes() {
            self.first = Some(Box::new(self.source.clone()));
        }
        self.payload = Some(Box::new(payload));
    }

    /// Logs its I/Os.
    pub(crate) fn keep_log(&mut self, log: IoLog) {
        self.log = Some(Box::new(log));
    }

    /// What was logged, when the job has ended.
    pub(crate) fn take_log(&mut self) -> Option<IoLog> {
        let mut log = self.log.take()?;
        log.finish(self.tally.end_ticks);
        Some(*log)
    }

    /// The next run of the engine reads these blocks, which have these numbers.
    pub fn read_back(&mut self, requests: Vec<Request>, numbers: Vec<u64>) {
        if let Some(payload) = &mut self.payload {
            payload.expect(numbers);
        }
        self.source.list(requests);
    }

    /// Blocks that were checked so far; `None` if the job does not verify.
    pub fn verified(&self) -> Option<Verified> {
        self.payload.as_ref().map(|payload| payload.verified).filter(|verified| verified.ios > 0)
    }

    /// What is still to be read back; `None` if the job did not issue all of its requests, as in fio.
    pub fn written(&mut self) -> Option<Written> {
        let (source, rest) = (self.first.take(), self.pacing.backlog.as_mut().map(Backlog::rest));
        if !self.complete || source.is_none() && rest.as_ref().is_none_or(Vec::is_empty) {
            return None;
        }
        let rest = rest.unwrap_or_default();
        Some(Written { payload: self.payload.take()?, source, drawn: self.drawn, rest })
    }

    pub(super) fn is_observed(&self) -> bool {
        self.log.is_some() || self.payload.is_some()
    }

    pub(super) fn observed(&mut self, engine: &mut dyn Queue, at_once: bool) -> Result<()> {
        let (log, payload) = (self.log.take(), self.payload.take());
        let mut observed = Observed::new(engine, log, payload, self.depth.in_flight, at_once);
        let outcome = self.queued_loop(&mut observed);
        (self.log, self.payload) = (observed.log, observed.payload);
        // A wrong block is the error of a job.
        let wrong = self.payload.as_ref().and_then(|payload| payload.complaint());
        wrong.map_or(outcome, |wrong| Err(Error::Failed(wrong)))
    }
}

/// What observes the I/Os of an engine, around it: a log of them, and a payload that prepares each block before it is written and checks
/// each that was read. A type of its own with stamps of its own, so that the loops of jobs without them do not contain them.
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
