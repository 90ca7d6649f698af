//! The slots of a shared connection: filled in by the thread that they belong to, read by whoever sends and by the one that receives.

use crate::client::{Ask, apart, together};
use crate::wire::Request;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use sys::byte_store::ByteStore;

/// What is asked for, in the low byte of a slot's state.
const NOTHING: u64 = 0;
/// Beside it: the request was handed over, and a reply to it may come.
const HANDED_OVER: u64 = 0x80;

fn code(ask: Ask) -> u64 {
    match ask {
        Ask::Read => 1,
        Ask::Write => 2,
        Ask::Trim => 3,
        Ask::Flush => 4,
    }
}

fn ask(state: u64) -> Option<Ask> {
    Some(match state & 0x7f {
        1 => Ask::Read,
        2 => Ask::Write,
        3 => Ask::Trim,
        4 => Ask::Flush,
        _ => return None,
    })
}

/// One slot, in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Slot {
    /// What is asked for, and above it which of the slot's requests it is. Written last, and read first.
    state: AtomicU64,
    offset: AtomicU64,
    length: AtomicU32,
    /// When it was handed over, in ticks.
    handed_over: AtomicU64,
}

/// All slots.
#[derive(Debug)]
pub(super) struct Table {
    arena: Arc<ByteStore>,
    slot_bytes: usize,
    slots: Vec<Slot>,
}

/// A request that is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InFlight {
    pub(super) slot: u32,
    pub(super) ask: Ask,
    pub(super) length: u32,
    pub(super) handed_over: u64,
}

impl Table {
    pub(super) fn new(arena: Arc<ByteStore>, slots: usize, slot_bytes: usize) -> Self {
        Self { arena, slot_bytes, slots: (0..slots).map(|_| Slot::default()).collect() }
    }

    pub(super) fn arena(&self) -> &Arc<ByteStore> {
        &self.arena
    }

    /// Where a slot begins in the arena.
    pub(super) fn begin(&self, slot: u32) -> usize {
        slot as usize * self.slot_bytes
    }

    /// Puts a request into a slot. Whether there was room for it.
    #[inline]
    pub(super) fn fill(&self, slot: u32, ask: Ask, offset: u64, length: u32) -> bool {
        let Some(entry) = self.slots.get(slot as usize) else { return false };
        // Its owner alone fills it, and was told that it is free by the one who freed it.
        let state = entry.state.load(Ordering::Relaxed);
        let fits = length as usize <= self.slot_bytes || matches!(ask, Ask::Trim | Ask::Flush);
        if state & 0xff != NOTHING || !fits {
            return false;
        }
        let (offset, length) = if ask == Ask::Flush { (0, 0) } else { (offset, length) };
        entry.offset.store(offset, Ordering::Relaxed);
        entry.length.store(length, Ordering::Relaxed);
        let generation = ((state >> 8) as u32).wrapping_add(1);
        entry.state.store(u64::from(generation) << 8 | code(ask), Ordering::Release);
        true
    }

    /// The request of a slot.
    #[inline]
    pub(super) fn request(&self, slot: u32) -> Option<(Request, Ask)> {
        let entry = self.slots.get(slot as usize)?;
        let state = entry.state.load(Ordering::Acquire);
        let ask = ask(state)?;
        let command = ask.command();
        let cookie = together(slot, (state >> 8) as u32);
        let (offset, length) = (entry.offset.load(Ordering::Relaxed), entry.length.load(Ordering::Relaxed));
        Some((Request { flags: 0, command, cookie, offset, length }, ask))
    }

    /// It is handed over now.
    #[inline]
    pub(super) fn hand_over(&self, slot: u32, now: u64) {
        if let Some(entry) = self.slots.get(slot as usize) {
            entry.handed_over.store(now, Ordering::Relaxed);
            entry.state.fetch_or(HANDED_OVER, Ordering::Release);
        }
    }

    /// The request that a reply is to; `None` when nobody asked, or it is still in the queue: a server that knows what is going to be asked must not
    /// free a slot that is queued.
    #[inline]
    pub(super) fn in_flight(&self, cookie: u64) -> Option<InFlight> {
        let (slot, generation) = apart(cookie);
        let entry = self.slots.get(slot as usize)?;
        let state = entry.state.load(Ordering::Acquire);
        let ask = ask(state).filter(|_| (state >> 8) as u32 == generation && state & HANDED_OVER != 0)?;
        let (length, handed_over) = (entry.length.load(Ordering::Relaxed), entry.handed_over.load(Ordering::Relaxed));
        Some(InFlight { slot, ask, length, handed_over })
    }

    /// It is replied to.
    #[inline]
    pub(super) fn free(&self, slot: u32) {
        if let Some(entry) = self.slots.get(slot as usize) {
            // The receiver alone frees.
            let state = entry.state.load(Ordering::Relaxed);
            entry.state.store(state & !0xff | NOTHING, Ordering::Release);
        }
    }
}
