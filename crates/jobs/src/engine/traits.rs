//! Interfaces between the measured loop and an engine.

use crate::workload::request_source::Request;
use std::io;

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
