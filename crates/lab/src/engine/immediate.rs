//! Gives an engine that performs each I/O at once the interface of a queue.

use super::traits::{Perform, Queue, Stages, Sync};
use crate::workload::request_source::Request;
use std::fs::File;
use std::io;

/// Performs an I/O when it is staged, and keeps the result until it is reaped.
pub(super) struct Immediate<'a, E: ?Sized> {
    engine: &'a mut E,
    done: Vec<(u32, i32)>,
}

impl<'a, E: ?Sized> Immediate<'a, E> {
    pub(super) fn new(engine: &'a mut E, depth: u32) -> Self {
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

    fn replace(&mut self, index: u32, file: File) -> io::Result<File> {
        self.engine.replace(index, file)
    }

    fn syscalls(&self) -> Option<u64> {
        self.engine.syscalls()
    }
}
