//! A ring that many threads fill, and that is drained by one at a time: whoever finds it idle.
//!
//! After FreeBSD's mp_ring (the transmit queues of cxgbe and iflib): one word holds where producers reserve, what they have
//! published, what is consumed, and who is at it, and is moved by compare and exchange.

use super::Duty;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// After so many the consumer hands over to a producer that is about to publish.
const BUDGET: usize = 64;
/// So often it is looked whether the producer before has published, before the CPU is given up to it: it may have lost its own.
const SPINS: u32 = 100;
/// Entries at most: indices of 16 bits tell a full ring from an empty one.
pub(super) const MOST: usize = 1 << 15;

/// Who drains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Consumer {
    /// Nobody, and there is nothing.
    Idle,
    /// Somebody.
    Busy,
    /// Nobody, until the producer that is about to publish does it.
    Abdicated,
}

/// Indices count on without end; a place is an index modulo the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// Up to here is reserved.
    head: u16,
    /// Up to here is published.
    tail: u16,
    /// Up to here is consumed.
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

/// The ring.
#[derive(Debug)]
pub(in crate::client) struct MpRing {
    state: AtomicU64,
    items: Box<[AtomicU32]>,
}

impl MpRing {
    /// For at most `items` at the same time, and no more than [`MOST`].
    pub(super) fn new(items: usize) -> Self {
        let size = items.next_power_of_two().min(MOST);
        let empty = State { head: 0, tail: 0, consumed: 0, consumer: Consumer::Idle };
        Self { state: AtomicU64::new(empty.pack()), items: (0..size).map(|_| AtomicU32::new(0)).collect() }
    }

    /// Puts items at the end, all together. `None`: there is no room for them, and nothing was put.
    pub(super) fn put(&self, items: &[u32]) -> Option<Duty> {
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
        // In the order in which places were reserved.
        let mut looks = 0;
        while State::unpack(self.state.load(Ordering::Acquire)).tail != begun.head {
            looks += 1;
            if looks < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        let before = self.change(|state| Some(State { tail: index, consumer: Consumer::Busy, ..state }))?;
        Some(if before.consumer == Consumer::Busy { Duty::None } else { Duty::Drain })
    }

    /// Gives all that is there to `take`, in order, and what comes meanwhile, until there is nothing or it is another's turn. For the one
    /// whose duty it is.
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

    /// Changes the state, whatever others do to it meanwhile. What it was; `None` when there is nothing to be changed.
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
    use super::*;

    #[test]
    fn only_the_thread_that_finds_it_idle_drains() {
        let ring = MpRing::new(4);
        assert_eq!(ring.put(&[1, 2]), Some(Duty::Drain));
        assert_eq!(ring.put(&[3]), Some(Duty::None));
        assert_eq!(ring.put(&[4, 5]), None, "there is no room for both");
        assert_eq!(ring.put(&[4]), Some(Duty::None));
        let (mut taken, mut scratch) = (Vec::new(), Vec::new());
        ring.drain(&mut scratch, |items| {
            taken.extend_from_slice(items);
            if taken.len() < 60_000 {
                // While it is drained others come, and the indices wrap.
                assert_eq!(ring.put(&[]), Some(Duty::None));
            }
        });
        assert_eq!(taken, [1, 2, 3, 4]);
        for turn in 0..100_000_u32 {
            assert_eq!(ring.put(&[turn, turn + 1]), Some(Duty::Drain));
            taken.clear();
            ring.drain(&mut scratch, |items| taken.extend_from_slice(items));
            assert_eq!(taken, [turn, turn + 1]);
        }
    }

    #[test]
    fn after_its_budget_the_consumer_goes_if_another_is_about_to_come() {
        let ring = MpRing::new(1024);
        let duty = ring.put(&[0; BUDGET]);
        assert_eq!(duty, Some(Duty::Drain));
        let mut calls = 0;
        ring.drain(&mut Vec::new(), |_| {
            calls += 1;
            if calls == 1 {
                ring.put(&[1]);
                // Somebody has reserved a place and published nothing yet.
                ring.change(|state| Some(State { head: state.head.wrapping_add(1), ..state }));
            }
        });
        let state = State::unpack(ring.state.load(Ordering::Relaxed));
        assert_eq!((calls, state.consumer), (1, Consumer::Abdicated));
        // That one publishes, and finds that it is its duty.
        let before = ring.change(|state| Some(State { tail: state.head, consumer: Consumer::Busy, ..state }));
        assert_eq!(before.map(|before| before.consumer), Some(Consumer::Abdicated));
        let mut taken = 0;
        ring.drain(&mut Vec::new(), |items| taken += items.len());
        assert_eq!(taken, 2);
    }

    /// Threads put, whoever has the duty drains: everything comes once, and each thread's in order.
    #[test]
    fn nothing_is_lost_between_threads() {
        const THREADS: u32 = 4;
        const EACH: u32 = 20_000;
        let ring = MpRing::new(64);
        let taken = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (ring, taken) = (&ring, &taken);
                scope.spawn(move || {
                    let mut next = 0;
                    while next < EACH {
                        let items = [thread << 24 | next, thread << 24 | (next + 1)];
                        match ring.put(&items) {
                            None => std::thread::yield_now(),
                            Some(duty) => {
                                next += 2;
                                if duty == Duty::Drain {
                                    // The one before may not have let go yet.
                                    let mut taken = taken.lock().unwrap();
                                    ring.drain(&mut Vec::new(), |items| taken.extend_from_slice(items));
                                }
                            }
                        }
                    }
                });
            }
        });
        let taken = taken.into_inner().unwrap();
        assert_eq!(taken.len() as u32, THREADS * EACH);
        for thread in 0..THREADS {
            let own = taken.iter().filter(|item| **item >> 24 == thread).map(|item| item & 0xff_ffff);
            assert!(own.eq(0..EACH), "thread {thread}");
        }
    }
}
