//! An engine with a payload: each block is prepared before it is written, and checked when it was read. A type of its own, so that the
//! loops of jobs without a payload do not contain it.

use super::traits::{Perform, Queue, Stages, Sync};
use crate::workload::payload::{Expected, Payload};
use crate::workload::request_source::{Kind, Request};
use std::fs::File;
use std::io;

pub(super) struct Carrying<'a, E> {
    engine: &'a mut E,
    payload: &'a mut Payload,
    /// Per slot, the read that is to be checked.
    checks: Vec<Option<(Request, Expected)>>,
    /// Completions, until their blocks are checked.
    done: Vec<(u32, i32, Option<Stages>)>,
}

impl<'a, E> Carrying<'a, E> {
    /// `depth`: I/Os in flight.
    pub fn new(engine: &'a mut E, payload: &'a mut Payload, depth: u32) -> Self {
        let slots = depth as usize;
        Self { engine, payload, checks: vec![None; slots], done: Vec::with_capacity(slots) }
    }
}

impl<E: Perform> Perform for Carrying<'_, E> {
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

impl<E: Queue> Queue for Carrying<'_, E> {
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
    fn reap(&mut self, most: u32, mut each: impl FnMut(u32, i32, Option<Stages>)) {
        let Self { engine, payload, checks, done } = self;
        engine.reap(most, |slot, result, stages| done.push((slot, result, stages)));
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
