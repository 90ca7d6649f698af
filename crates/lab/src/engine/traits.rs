//! What the measured loop asks of an engine.

use crate::workload::request_source::Request;
use std::io;

/// An engine that has done a request when it returns.
pub trait Perform {
    /// Bytes moved, or minus the error number.
    fn perform(&mut self, request: &Request) -> i32;
    /// Makes what was written durable.
    fn sync(&mut self, what: Sync) -> io::Result<()>;
    /// System calls so far; `None` for an engine that makes none.
    fn syscalls(&self) -> Option<u64>;
}

/// An engine that has several requests in flight, each in a slot.
pub trait Queue {
    /// Adds a request to the next batch.
    fn stage(&mut self, slot: u32, request: &Request) -> io::Result<()>;
    /// Hands the batch over.
    fn submit(&mut self) -> io::Result<()>;
    /// Hands the batch over and waits until `least` are done; takes at most `most`.
    fn wait(&mut self, least: u32, most: u32) -> io::Result<()>;
    /// Takes what is done: slot, bytes moved or minus the error number, and when it went through its stages, where an
    /// engine knows them.
    fn reap(&mut self, most: u32, each: impl FnMut(u32, i32, Option<Stages>));
    /// Makes what was written durable; called with nothing in flight.
    fn sync(&mut self, what: Sync) -> io::Result<()>;
    /// System calls so far; `None` for an engine that makes none.
    fn syscalls(&self) -> Option<u64>;
}

/// When a request went from one stage to the next, in ticks. The first begins when it is issued, the last ends when it is
/// reaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    /// Its first byte was handed over.
    pub handed_over: u64,
    /// Its reply was there, and understood.
    pub answered: u64,
}

/// How much is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// fsync(2): data and metadata.
    All,
    /// fdatasync(2): what is needed to read the data back.
    Data,
}
