//! A multi-producer ring that one thread at a time drains: the producer that finds it idle.
//!
//! After FreeBSD's mp_ring (the transmit queues of cxgbe and iflib): one word contains the reserved, published, and
//! consumed indices and the consumer's state, and is changed by compare and exchange.

use super::Then;
use super::sync::{AtomicU32, AtomicU64, Ordering, relax};

/// After this many entries the consumer hands over to a producer that is about to publish.
const BUDGET: usize = 64;
/// Maximum number of entries, so that 16-bit indices distinguish a full ring from an empty one.
pub(super) const MOST: usize = 1 << 15;

/// State of the consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Consumer {
    /// No consumer, and the ring is empty.
    Idle,
    /// A thread is draining.
    Busy,
    /// No consumer until the producer that is about to publish takes over.
    Abdicated,
}

/// Indices wrap at 16 bits; an entry's position is its index modulo the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// End of the reserved entries.
    head: u16,
    /// End of the published entries.
    tail: u16,
    /// End of the consumed entries.
    consumed: u16,
    consumer: Consumer,
}

impl State {
    fn pack(self) -> u64 {
        let consumer = match self.consumer {
            Consumer::Idle => 0,
            Consumer::Busy => 1,
            Consumer::Abdicated => 2,
        };
        u64::from(self.head) | u64::from(self.tail) << 16 | u64::from(self.consumed) << 32 | consumer << 48
    }

    fn unpack(word: u64) -> Self {
        let consumer = match word >> 48 {
            0 => Consumer::Idle,
            1 => Consumer::Busy,
            _ => Consumer::Abdicated,
        };
        Self { head: word as u16, tail: (word >> 16) as u16, consumed: (word >> 32) as u16, consumer }
    }
}

#[derive(Debug)]
pub(super) struct MpRing {
    state: AtomicU64,
    items: Box<[AtomicU32]>,
}

impl MpRing {
    /// A ring for `items` entries, at most [`MOST`].
    pub(super) fn new(items: usize) -> Self {
        let size = items.next_power_of_two().min(MOST);
        let empty = State { head: 0, tail: 0, consumed: 0, consumer: Consumer::Idle };
        Self { state: AtomicU64::new(empty.pack()), items: (0..size).map(|_| AtomicU32::new(0)).collect() }
    }

    /// Appends items, all or none. `None`: there is no room.
    pub(super) fn put(&self, items: &[u32]) -> Option<Then> {
        let count = u16::try_from(items.len()).ok()?;
        let begun = self.change(|state| {
            let used = usize::from(state.head.wrapping_sub(state.consumed));
            (used + items.len() <= self.items.len()).then(|| State { head: state.head.wrapping_add(count), ..state })
        })?;
        let mut index = begun.head;
        for item in items {
            if let Some(place) = self.place(index) {
                place.store(*item, Ordering::Relaxed);
            }
            index = index.wrapping_add(1);
        }
        // Publish in the order of reservation.
        let mut looks = 0;
        while State::unpack(self.state.load(Ordering::Acquire)).tail != begun.head {
            looks += 1;
            relax(looks);
        }
        let before = self.change(|state| Some(State { tail: index, consumer: Consumer::Busy, ..state }))?;
        Some(if before.consumer == Consumer::Busy { Then::Nothing } else { Then::Drain })
    }

    /// Passes all entries to `take`, in order, including those that arrive meanwhile, until the ring is empty or
    /// another producer takes over. Only for the thread whose duty it is.
    pub(super) fn drain(&self, scratch: &mut Vec<u32>, mut take: impl FnMut(&[u32])) {
        let mut total = 0;
        loop {
            let state = State::unpack(self.state.load(Ordering::Acquire));
            let there = state.tail.wrapping_sub(state.consumed);
            scratch.clear();
            scratch.extend((0..there).filter_map(|ahead| {
                self.place(state.consumed.wrapping_add(ahead)).map(|place| place.load(Ordering::Relaxed))
            }));
            if !scratch.is_empty() {
                take(scratch);
            }
            total += scratch.len();
            let mut after = Consumer::Busy;
            self.change(|state| {
                let consumed = state.consumed.wrapping_add(there);
                after = if consumed == state.tail {
                    Consumer::Idle
                } else if total >= BUDGET && state.head != state.tail {
                    Consumer::Abdicated
                } else {
                    Consumer::Busy
                };
                Some(State { consumed, consumer: after, ..state })
            });
            if after != Consumer::Busy {
                return;
            }
        }
    }

    fn place(&self, index: u16) -> Option<&AtomicU32> {
        self.items.get(usize::from(index) & (self.items.len() - 1))
    }

    /// Changes the state atomically. Returns the previous state; `None` if `to` makes no change.
    fn change(&self, mut to: impl FnMut(State) -> Option<State>) -> Option<State> {
        let mut word = self.state.load(Ordering::Acquire);
        loop {
            let before = State::unpack(word);
            let after = to(before)?;
            match self.state.compare_exchange_weak(word, after.pack(), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(before),
                Err(now) => word = now,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::assert_nothing_is_lost;
    use super::*;

    #[test]
    fn only_the_thread_that_finds_it_idle_drains() {
        let ring = MpRing::new(4);
        assert_eq!(ring.put(&[1, 2]), Some(Then::Drain));
        assert_eq!(ring.put(&[3]), Some(Then::Nothing));
        assert_eq!(ring.put(&[4, 5]), None, "there is no room for both");
        assert_eq!(ring.put(&[4]), Some(Then::Nothing));
        let (mut taken, mut scratch) = (Vec::new(), Vec::new());
        ring.drain(&mut scratch, |items| {
            taken.extend_from_slice(items);
            if taken.len() < 60_000 {
                // Other threads put items during the drain, and the indices wrap.
                assert_eq!(ring.put(&[]), Some(Then::Nothing));
            }
        });
        assert_eq!(taken, [1, 2, 3, 4]);
        for turn in 0..100_000_u32 {
            assert_eq!(ring.put(&[turn, turn + 1]), Some(Then::Drain));
            taken.clear();
            ring.drain(&mut scratch, |items| taken.extend_from_slice(items));
            assert_eq!(taken, [turn, turn + 1]);
        }
    }

    #[test]
    fn the_consumer_hands_over_after_its_budget() {
        let ring = MpRing::new(1024);
        let duty = ring.put(&[0; BUDGET]);
        assert_eq!(duty, Some(Then::Drain));
        let mut calls = 0;
        ring.drain(&mut Vec::new(), |_| {
            calls += 1;
            if calls == 1 {
                ring.put(&[1]);
                // Another thread has reserved a place and not yet published.
                ring.change(|state| Some(State { head: state.head.wrapping_add(1), ..state }));
            }
        });
        let state = State::unpack(ring.state.load(Ordering::Relaxed));
        assert_eq!((calls, state.consumer), (1, Consumer::Abdicated));
        // That thread publishes, and gets the duty to drain.
        let before = ring.change(|state| Some(State { tail: state.head, consumer: Consumer::Busy, ..state }));
        assert_eq!(before.map(|before| before.consumer), Some(Consumer::Abdicated));
        let mut taken = 0;
        ring.drain(&mut Vec::new(), |items| taken += items.len());
        assert_eq!(taken, 2);
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        let ring = MpRing::new(64);
        let put = |items: &[u32]| super::super::put(&ring, items);
        assert_nothing_is_lost(20_000, put, |scratch, take| ring.drain(scratch, take));
    }
}
