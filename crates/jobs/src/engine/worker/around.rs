//! What is around the measured loop: busy work that is added to I/Os, the steps between requests, what a worker leaves, and observers.

use super::Worker;
use crate::engine::pacing::Backlog;
use crate::engine::traits::{Perform, Queue, Stages, Sync};
use crate::io_log::{Entry, IoLog};
use crate::workload::payload::{Expected, Payload};
use crate::workload::request_source::{Kind, Request, RequestSource};
use lab::error::Error;
use model::injected::Injected;
use model::plan::JobPlan;
use model::record::Verified;
use model::unit::Hertz;
use std::io;
use std::time::Duration;
use sys::burner::Burner;
use sys::clock::ticks;

impl Worker {
    /// Measures how long the busy work takes in this thread, if there is any and it is not known yet. Takes some
    /// milliseconds.
    pub fn calibrate(&mut self) {
        if let (Some(burner), None) = (self.injection.burner, self.burnt_ticks) {
            let calibrated = Burner::calibrated(burner.asked_ticks());
            (self.injection.burner, self.burnt_ticks) = (Some(calibrated.burner), Some(calibrated.burnt_ticks));
        }
    }

    /// The busy work added to each I/O; `None` if it is added once in a time.
    pub fn injected(&self, plan: &JobPlan, clock: Hertz) -> Option<Injected> {
        if self.injection.every > 0 {
            return None;
        }
        Some(Injected { asked: plan.inject.time.as_f64(), burnt: self.burnt_ticks? * 1e9 / clock.0 })
    }
}

/// Busy work before each I/O, or before the first in each period.
pub(super) struct Injection {
    pub burner: Option<Burner>,
    /// Ticks from one such work to the next; 0 before each I/O.
    pub every: u64,
    /// When the next is due.
    pub due: u64,
}

impl Injection {
    #[inline(always)]
    pub fn inject(&mut self) {
        if let Some(burner) = self.burner
            && (self.every == 0 || self.is_due())
        {
            burner.burn();
        }
    }

    /// Whether busy work is due now. The times are multiples of the period from the start, so that the period is exact
    /// however late each is.
    fn is_due(&mut self) -> bool {
        let now = ticks();
        let due = now >= self.due;
        if due {
            let missed = now.saturating_sub(self.due) / self.every.max(1);
            self.due = self.due.saturating_add((missed + 1).saturating_mul(self.every));
        }
        due
    }
}

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

    #[cold]
    pub(super) fn hand_over_failed(&self, error: io::Error) -> Error {
        Error::job(&self.job, "submitting I/O", error)
    }

    /// An I/O moved nothing, or failed: that ends the job.
    #[cold]
    pub(super) fn failed(&self, request: &Request, result: i32) -> Error {
        let verb = ["read", "write", "trim"][request.kind as usize];
        let what = format!("{verb} of {} bytes at offset {} of file {}", request.length, request.offset, request.file);
        let error = match result {
            0 => io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "nothing was moved: the file ends before (was it truncated?)",
            ),
            error => io::Error::from_raw_os_error(-error),
        };
        Error::job(&self.job, what, error)
    }
}

/// The next step of the loop.
pub(super) enum Next {
    Issue(Request),
    /// Wait for this time, with nothing in flight.
    Pause(Duration),
    /// Sync the files that are due, with nothing in flight.
    Sync,
    /// Go on when nothing is in flight.
    Settle,
    /// The ramp has ended: start counting.
    Count,
    Done,
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
