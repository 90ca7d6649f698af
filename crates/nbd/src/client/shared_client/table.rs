//! The slots of a shared connection: the submitter fills them, the sender and the receiver read them. No locks: a state
//! word publishes each change.

use crate::client::{Ask, apart, together};
use crate::wire::Request;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use sys::byte_store::ByteStore;

/// Values of the low byte of a slot's state: no request.
const NOTHING: u64 = 0;
/// Set with the operation: the request was handed to the kernel, and a reply may come.
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
    /// Operation in the low byte, generation above it. Written last, read first.
    state: AtomicU64,
    offset: AtomicU64,
    length: AtomicU32,
    /// When the request was handed to the kernel, in ticks.
    handed_over: AtomicU64,
}

/// All slots.
#[derive(Debug)]
pub(super) struct Table {
    arena: Arc<ByteStore>,
    slot_bytes: usize,
    slots: Vec<Slot>,
}

/// A request in flight.
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

    /// Offset of a slot in the arena.
    pub(super) fn begin(&self, slot: u32) -> usize {
        slot as usize * self.slot_bytes
    }

    /// Fills a slot with a request. Returns false if the slot is in use or too small.
    #[inline]
    pub(super) fn fill(&self, slot: u32, ask: Ask, offset: u64, length: u32) -> bool {
        let Some(entry) = self.slots.get(slot as usize) else { return false };
        // Relaxed: only its owner fills it, and learned that it is free from the thread that freed it.
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

    /// Records that the request was handed to the kernel.
    #[inline]
    pub(super) fn hand_over(&self, slot: u32, now: u64) {
        if let Some(entry) = self.slots.get(slot as usize) {
            entry.handed_over.store(now, Ordering::Relaxed);
            entry.state.fetch_or(HANDED_OVER, Ordering::Release);
        }
    }

    /// The request that a reply belongs to; `None` if there is none or it is still queued: a server that predicts a
    /// cookie must not free a queued slot.
    #[inline]
    pub(super) fn in_flight(&self, cookie: u64) -> Option<InFlight> {
        let (slot, generation) = apart(cookie);
        let entry = self.slots.get(slot as usize)?;
        let state = entry.state.load(Ordering::Acquire);
        let ask = ask(state).filter(|_| (state >> 8) as u32 == generation && state & HANDED_OVER != 0)?;
        let (length, handed_over) = (entry.length.load(Ordering::Relaxed), entry.handed_over.load(Ordering::Relaxed));
        Some(InFlight { slot, ask, length, handed_over })
    }

    /// Frees a slot whose request is completed.
    #[inline]
    pub(super) fn free(&self, slot: u32) {
        if let Some(entry) = self.slots.get(slot as usize) {
            // Relaxed: only the receiver frees.
            let state = entry.state.load(Ordering::Relaxed);
            entry.state.store(state & !0xff | NOTHING, Ordering::Release);
        }
    }
}
