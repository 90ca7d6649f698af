//! Passes the entries of several threads to what they share (a connection, a socket), as a network interface's transmit
//! queue does between many CPUs and one ring (seed 004). Entries are slot numbers; nothing here sends.

#[cfg(all(test, feature = "loom"))]
mod model_check;

// The atomics and threads are those of the system, or loom's, which explores every interleaving (for tests only).
#[cfg(feature = "loom")]
use loom::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    sync::{Mutex, MutexGuard},
    thread::{Thread, current, park, yield_now},
};
use std::sync::PoisonError;
#[cfg(not(feature = "loom"))]
use std::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    sync::{Mutex, MutexGuard},
    thread::{Thread, current, park, yield_now},
};

/// Maximum number of entries, so that 16-bit indices distinguish a full ring from an empty one.
pub const MOST: usize = 1 << 15;

/// How threads that share a connection send their requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// Each thread sends its own requests under a lock.
    Lock,
    /// A ring drained by a dedicated thread, which is woken if it sleeps.
    RingTask,
    /// A ring drained by the thread that finds it idle, up to a budget.
    MpRing,
    /// A list that the thread that finds it idle takes as a whole with one exchange, until it is empty.
    SwapAll,
}

/// A queue, and the state of the thread that drains it.
#[derive(Debug)]
pub struct TransmitQueue {
    queueing: Queueing,
    ring: MpRing,
    list: SwapList,
    /// Whether the ring has entries for the dedicated thread.
    due: AtomicBool,
    task: Mutex<Option<Thread>>,
}

/// What a thread does after it has queued slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Nothing: another thread sends it.
    Nothing,
    /// Send its own slots.
    Send,
    /// Drain the queue.
    Drain,
}

impl TransmitQueue {
    /// A queue for slot numbers below `slots`.
    pub fn new(queueing: Queueing, slots: usize) -> Self {
        let (due, task) = (AtomicBool::new(false), Mutex::new(None));
        // Slots stay in the ring until they are sent, and may by then be completed and queued again: hence twice the
        // size.
        Self { queueing, ring: MpRing::new(2 * slots), list: SwapList::new(slots), due, task }
    }

    /// Queues slots whose requests are filled in.
    pub fn put(&self, slots: &[u32]) -> Then {
        match self.queueing {
            Queueing::Lock => Then::Send,
            Queueing::RingTask => {
                if self.put_in_ring(slots) == Then::Drain {
                    self.due.store(true, Ordering::Release);
                    self.wake_task();
                }
                Then::Nothing
            }
            Queueing::MpRing => self.put_in_ring(slots),
            Queueing::SwapAll => self.list.put(slots),
        }
    }

    /// Waits for room if the ring is full.
    fn put_in_ring(&self, slots: &[u32]) -> Then {
        loop {
            match self.ring.put(slots) {
                Some(then) => return then,
                None => yield_now(),
            }
        }
    }

    /// Passes all entries to `take`, in order. Only for the thread whose duty it is.
    pub fn drain(&self, scratch: &mut Vec<u32>, take: impl FnMut(&[u32])) {
        match self.queueing {
            Queueing::Lock => {}
            Queueing::RingTask | Queueing::MpRing => self.ring.drain(scratch, take),
            Queueing::SwapAll => self.list.drain(scratch, take),
        }
    }

    /// Wakes the dedicated thread, if there is one.
    pub fn wake_task(&self) {
        // Not under the lock, for which a woken thread might have to wait.
        let task = lock(&self.task).clone();
        if let Some(task) = task {
            task.unpark();
        }
    }

    /// The loop of the dedicated thread, until `ended` says so.
    pub fn run_task(&self, ended: impl Fn() -> bool, drain: impl Fn()) {
        *lock(&self.task) = Some(current());
        while !ended() {
            if self.due.swap(false, Ordering::AcqRel) { drain() } else { park() }
        }
    }
}

/// A lock whose holders leave nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Spins before yielding the CPU to an earlier producer that has not published yet: it may have lost its CPU.
#[cfg(not(feature = "loom"))]
const SPINS: u32 = 100;

/// Waits a little for another thread, which was looked for this many times.
fn relax(looks: u32) {
    #[cfg(not(feature = "loom"))]
    if looks < SPINS {
        return std::hint::spin_loop();
    }
    let _ = looks;
    yield_now();
}

/// After this many entries the consumer hands over to a producer that is about to publish.
const BUDGET: usize = 64;
/// States of the consumer: none, and the ring is empty; a thread is draining; none until the producer that is about to
/// publish takes over.
const FREE: u16 = 0;
const BUSY: u16 = 1;
const ABDICATED: u16 = 2;

/// Indices wrap at 16 bits; an entry's position is its index modulo the size.
#[derive(Clone, Copy)]
struct State {
    /// End of the reserved entries.
    head: u16,
    /// End of the published entries.
    tail: u16,
    /// End of the consumed entries.
    consumed: u16,
    consumer: u16,
}

impl State {
    fn pack(self) -> u64 {
        let Self { head, tail, consumed, consumer } = self;
        u64::from(head) | u64::from(tail) << 16 | u64::from(consumed) << 32 | u64::from(consumer) << 48
    }

    fn unpack(word: u64) -> Self {
        let [head, tail, consumed, consumer] = [0, 16, 32, 48].map(|shift| (word >> shift) as u16);
        Self { head, tail, consumed, consumer }
    }
}

/// A multi-producer ring that one thread at a time drains: the producer that finds it idle.
///
/// After FreeBSD's mp_ring (the transmit queues of cxgbe and iflib): one word contains the reserved, published, and
/// consumed indices and the consumer's state, and is changed by compare and exchange.
#[derive(Debug)]
struct MpRing {
    state: AtomicU64,
    items: Box<[AtomicU32]>,
}

impl MpRing {
    /// A ring for `items` entries, at most [`MOST`].
    fn new(items: usize) -> Self {
        let size = items.next_power_of_two().min(MOST);
        Self { state: AtomicU64::new(0), items: (0..size).map(|_| AtomicU32::new(0)).collect() }
    }

    /// Appends items, all or none. `None`: there is no room.
    fn put(&self, items: &[u32]) -> Option<Then> {
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
        let before = self.change(|state| Some(State { tail: index, consumer: BUSY, ..state }))?;
        Some(if before.consumer == BUSY { Then::Nothing } else { Then::Drain })
    }

    /// Passes all entries to `take`, in order, including those that arrive meanwhile, until the ring is empty or
    /// another producer takes over. Only for the thread whose duty it is.
    fn drain(&self, scratch: &mut Vec<u32>, mut take: impl FnMut(&[u32])) {
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
            let mut after = BUSY;
            self.change(|state| {
                let consumed = state.consumed.wrapping_add(there);
                after = if consumed == state.tail {
                    FREE
                } else if total >= BUDGET && state.head != state.tail {
                    ABDICATED
                } else {
                    BUSY
                };
                Some(State { consumed, consumer: after, ..state })
            });
            if after != BUSY {
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

/// Empty, and no thread is draining.
const IDLE: u32 = u32::MAX;
/// Empty, and a thread is draining.
const EMPTY: u32 = u32::MAX - 1;
/// End of the list.
const END: u32 = u32::MAX - 2;

/// A multi-producer list whose consumer takes everything with one exchange: slot numbers below a limit, each in it at most
/// once.
#[derive(Debug)]
struct SwapList {
    /// The item pushed last.
    head: AtomicU32,
    /// For each item, the one pushed before it.
    before: Box<[AtomicU32]>,
}

impl SwapList {
    /// A list for slot numbers below `names`.
    fn new(names: usize) -> Self {
        Self { head: AtomicU32::new(IDLE), before: (0..names).map(|_| AtomicU32::new(END)).collect() }
    }

    fn set_before(&self, item: u32, before: u32) {
        if let Some(word) = self.before.get(item as usize) {
            word.store(before, Ordering::Relaxed);
        }
    }

    /// Appends items, all together.
    fn put(&self, items: &[u32]) -> Then {
        let (Some(first), Some(last)) = (items.first(), items.last()) else { return Then::Nothing };
        for pair in items.windows(2) {
            if let [earlier, later] = pair {
                self.set_before(*later, *earlier);
            }
        }
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            self.set_before(*first, if head == IDLE || head == EMPTY { END } else { head });
            match self.head.compare_exchange_weak(head, *last, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return if head == IDLE { Then::Drain } else { Then::Nothing },
                Err(now) => head = now,
            }
        }
    }

    /// Passes all items to `take`, in order, including those that arrive meanwhile, until the list is empty. Only for
    /// the thread whose duty it is.
    fn drain(&self, scratch: &mut Vec<u32>, mut take: impl FnMut(&[u32])) {
        loop {
            let mut item = self.head.swap(EMPTY, Ordering::Acquire);
            scratch.clear();
            while let Some(before) = self.before.get(item as usize) {
                scratch.push(item);
                item = before.load(Ordering::Relaxed);
            }
            if scratch.is_empty() {
                if self.head.compare_exchange(EMPTY, IDLE, Ordering::Release, Ordering::Relaxed).is_ok() {
                    return;
                }
                continue;
            }
            scratch.reverse();
            take(scratch);
        }
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!((calls, state.consumer), (1, ABDICATED));
        // That thread publishes, and gets the duty to drain.
        let before = ring.change(|state| Some(State { tail: state.head, consumer: BUSY, ..state }));
        assert_eq!(before.map(|before| before.consumer), Some(ABDICATED));
        let mut taken = 0;
        ring.drain(&mut Vec::new(), |items| taken += items.len());
        assert_eq!(taken, 2);
    }

    #[test]
    fn the_thread_that_finds_it_idle_drains_all_in_order() {
        let list = SwapList::new(10);
        assert_eq!(list.put(&[3, 1]), Then::Drain);
        assert_eq!(list.put(&[4]), Then::Nothing);
        let (mut taken, mut calls) = (Vec::new(), 0);
        list.drain(&mut Vec::new(), |items| {
            taken.extend_from_slice(items);
            calls += 1;
            if calls == 1 {
                assert_eq!(list.put(&[0, 9, 5]), Then::Nothing);
            }
        });
        assert_eq!((taken, calls), (vec![3, 1, 4, 0, 9, 5], 2));
        assert_eq!(list.put(&[3]), Then::Drain);
    }

    /// Four threads put pairs of numbers, and drain when told to. Every one must arrive exactly once, and those of each
    /// thread in order.
    #[test]
    fn nothing_is_lost_between_threads() {
        for (queueing, each) in [(Queueing::MpRing, 20_000), (Queueing::SwapAll, 10_000)] {
            let list = SwapList::new(4 * each as usize);
            let queue = TransmitQueue { list, ..TransmitQueue::new(queueing, 32) };
            let taken = Mutex::new(Vec::new());
            let work = |thread: u32| {
                for pair in 0..each / 2 {
                    let item = thread * each + pair * 2;
                    if queue.put(&[item, item + 1]) == Then::Drain {
                        // The previous consumer may still hold the lock.
                        let mut taken = lock(&taken);
                        queue.drain(&mut Vec::new(), |items| taken.extend_from_slice(items));
                    }
                }
            };
            std::thread::scope(|scope| (0..4).for_each(|thread| _ = scope.spawn(move || work(thread))));
            let taken = lock(&taken);
            assert_eq!(taken.len() as u32, 4 * each);
            for thread in 0..4 {
                let own = taken.iter().filter(|item| **item / each == thread).map(|item| item % each);
                assert!(own.eq(0..each), "{queueing:?}: thread {thread}");
            }
        }
    }
}
