//! The engine's interface to a connection, exclusive or shared.

use nbd::Result;
use nbd::client::shared_client::Submitter;
use nbd::client::{Ask, Client, Done};
use sys::byte_store::ByteStore;

/// A connection, as one job sees it. The implementations document each function.
pub(super) trait Connection {
    fn arena(&self) -> &ByteStore;
    /// Offset of a slot in the arena, for slots of this length.
    fn begin(&self, slot: usize, slot_bytes: usize) -> usize;
    fn takes(&self, ask: Ask) -> bool;
    fn stage(&mut self, slot: u32, ask: Ask, offset: u64, length: u32) -> Result<()>;
    fn staged_bytes(&self) -> usize;
    fn submit(&mut self, each: impl FnMut(Done)) -> Result<bool>;
    fn exchange(&mut self, each: impl FnMut(Done)) -> Result<bool>;
    fn in_flight(&self) -> u32;
    /// System calls so far.
    fn calls(&self) -> u64;
}

impl Connection for Client {
    fn arena(&self) -> &ByteStore {
        self.arena()
    }

    fn begin(&self, slot: usize, slot_bytes: usize) -> usize {
        slot * slot_bytes
    }

    fn takes(&self, ask: Ask) -> bool {
        self.takes(ask)
    }

    #[inline]
    fn stage(&mut self, slot: u32, ask: Ask, offset: u64, length: u32) -> Result<()> {
        self.stage(slot, ask, offset, length)
    }

    fn staged_bytes(&self) -> usize {
        self.staged_bytes()
    }

    fn submit(&mut self, each: impl FnMut(Done)) -> Result<bool> {
        self.submit(each)
    }

    fn exchange(&mut self, each: impl FnMut(Done)) -> Result<bool> {
        self.exchange(each)
    }

    fn in_flight(&self) -> u32 {
        self.in_flight()
    }

    fn calls(&self) -> u64 {
        let syscalls = self.syscalls();
        syscalls.sends + syscalls.receives
    }
}

impl Connection for Submitter {
    fn arena(&self) -> &ByteStore {
        self.arena()
    }

    fn begin(&self, slot: usize, _: usize) -> usize {
        self.begin(slot as u32)
    }

    fn takes(&self, ask: Ask) -> bool {
        self.shared().export().takes(ask)
    }

    #[inline]
    fn stage(&mut self, slot: u32, ask: Ask, offset: u64, length: u32) -> Result<()> {
        self.stage(slot, ask, offset, length)
    }

    fn staged_bytes(&self) -> usize {
        self.staged_bytes()
    }

    fn submit(&mut self, _: impl FnMut(Done)) -> Result<bool> {
        self.submit();
        Ok(true)
    }

    fn exchange(&mut self, each: impl FnMut(Done)) -> Result<bool> {
        self.wait(each)
    }

    fn in_flight(&self) -> u32 {
        self.in_flight()
    }

    /// The calls of all jobs are reported by the first of them.
    fn calls(&self) -> u64 {
        self.calls()
    }
}
