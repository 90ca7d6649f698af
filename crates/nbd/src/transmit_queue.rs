//! Passes the entries of several threads to what they share (a connection, a socket), as a network interface's transmit
//! queue does between many CPUs and one ring (seed 004). Entries are slot numbers; nothing here sends.

#[cfg(all(test, feature = "loom"))]
mod model_check;
mod mp_ring;
mod swap_list;
mod sync;

use mp_ring::MpRing;
use std::sync::PoisonError;
use swap_list::SwapList;
use sync::{AtomicBool, Mutex, MutexGuard, Ordering, Thread};

/// Maximum number of entries.
pub const MOST: usize = mp_ring::MOST;

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
pub struct TransmitQueue(Kind);

#[derive(Debug)]
enum Kind {
    Lock,
    RingTask { ring: MpRing, due: AtomicBool, task: Mutex<Option<Thread>> },
    MpRing(MpRing),
    SwapAll(SwapList),
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
        // Slots stay in the ring until they are sent, and may by then be completed and queued again: hence twice the
        // size.
        let ring = || MpRing::new(2 * slots);
        Self(match queueing {
            Queueing::Lock => Kind::Lock,
            Queueing::RingTask => Kind::RingTask { ring: ring(), due: AtomicBool::new(false), task: Mutex::default() },
            Queueing::MpRing => Kind::MpRing(ring()),
            Queueing::SwapAll => Kind::SwapAll(SwapList::new(slots)),
        })
    }

    /// Queues slots whose requests are filled in.
    pub fn put(&self, slots: &[u32]) -> Then {
        match &self.0 {
            Kind::Lock => Then::Send,
            Kind::RingTask { ring, due, .. } => {
                if put(ring, slots) == Then::Drain {
                    due.store(true, Ordering::Release);
                    self.wake_task();
                }
                Then::Nothing
            }
            Kind::MpRing(ring) => put(ring, slots),
            Kind::SwapAll(list) => list.put(slots),
        }
    }

    /// Passes all entries to `take`, in order. Only for the thread whose duty it is.
    pub fn drain(&self, scratch: &mut Vec<u32>, take: impl FnMut(&[u32])) {
        match &self.0 {
            Kind::Lock => {}
            Kind::RingTask { ring, .. } | Kind::MpRing(ring) => ring.drain(scratch, take),
            Kind::SwapAll(list) => list.drain(scratch, take),
        }
    }

    /// Wakes the dedicated thread, if there is one.
    pub fn wake_task(&self) {
        let Kind::RingTask { task, .. } = &self.0 else { return };
        // Not under the lock, for which a woken thread might have to wait.
        let task = lock(task).clone();
        if let Some(task) = task {
            task.unpark();
        }
    }

    /// The loop of the dedicated thread, until `ended` says so.
    pub fn run_task(&self, ended: impl Fn() -> bool, drain: impl Fn()) {
        let Kind::RingTask { due, task, .. } = &self.0 else { return };
        *lock(task) = Some(sync::current());
        while !ended() {
            if due.swap(false, Ordering::AcqRel) { drain() } else { sync::park() }
        }
    }
}

/// A lock whose holders leave nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts slots into a ring, waiting for room if it is full.
fn put(ring: &MpRing, slots: &[u32]) -> Then {
    loop {
        match ring.put(slots) {
            Some(then) => return then,
            None => sync::yield_now(),
        }
    }
}

/// Four threads `put` pairs of the numbers below `each`, shifted by the thread's number, and drain when told to. Every
/// item must arrive exactly once, and those of each thread in order.
#[cfg(test)]
fn assert_nothing_is_lost(
    each: u32,
    put: impl Fn(&[u32]) -> Then + Sync,
    drain: impl Fn(&mut Vec<u32>, &mut dyn FnMut(&[u32])) + Sync,
) {
    let taken = Mutex::new(Vec::new());
    let work = |thread: u32| {
        for pair in 0..each / 2 {
            let item = thread * each + pair * 2;
            if put(&[item, item + 1]) == Then::Drain {
                // The previous consumer may still hold the lock.
                let mut taken = lock(&taken);
                drain(&mut Vec::new(), &mut |items| taken.extend_from_slice(items));
            }
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|thread| _ = scope.spawn(move || work(thread))));
    let taken = lock(&taken);
    assert_eq!(taken.len() as u32, 4 * each);
    for thread in 0..4 {
        let own = taken.iter().filter(|item| **item / each == thread).map(|item| item % each);
        assert!(own.eq(0..each), "thread {thread}");
    }
}
