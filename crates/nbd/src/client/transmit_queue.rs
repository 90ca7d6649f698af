//! How the requests of many threads get to the one connection that they share: what a network interface's transmit queue has between
//! many CPUs and one ring (seed 004). What is queued are numbers of slots.

mod mp_ring;
mod swap_list;

use super::shared_client::lock;
use mp_ring::MpRing;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use swap_list::SwapList;

/// Entries at most.
pub(super) const MOST: usize = mp_ring::MOST;

/// How the requests of many threads get to their connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// Each thread sends its own, under a lock.
    Lock,
    /// A ring, drained by a thread of its own, which is woken when it sleeps.
    RingTask,
    /// A ring, drained by the thread that finds it idle, for a budget.
    MpRing,
    /// A list, of which the thread that finds it idle takes all with one exchange, until it is empty.
    SwapAll,
}

/// What a producer has to do once it has published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Duty {
    /// Nothing: somebody drains.
    None,
    /// To see to it that it is drained: nobody else does.
    Drain,
}

/// A queue, and who drains it.
#[derive(Debug)]
pub(super) enum TransmitQueue {
    Lock,
    RingTask { ring: MpRing, due: AtomicBool, task: Mutex<Option<Thread>> },
    MpRing(MpRing),
    SwapAll(SwapList),
}

/// What a thread does that has put something into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Nothing: another thread sends it.
    Nothing,
    /// It sends what it has itself.
    Send,
    /// It drains the queue.
    Drain,
}

impl TransmitQueue {
    /// For names below `slots`.
    pub(super) fn new(queueing: Queueing, slots: usize) -> Self {
        // What is being sent stays in the ring until it is sent, and may be replied to and asked for again by then.
        let ring = || MpRing::new(2 * slots);
        match queueing {
            Queueing::Lock => Self::Lock,
            Queueing::RingTask => Self::RingTask { ring: ring(), due: AtomicBool::new(false), task: Mutex::default() },
            Queueing::MpRing => Self::MpRing(ring()),
            Queueing::SwapAll => Self::SwapAll(SwapList::new(slots)),
        }
    }

    /// Puts slots, which are filled in, at the end.
    pub(super) fn put(&self, slots: &[u32]) -> Then {
        let duty = match self {
            Self::Lock => return Then::Send,
            Self::RingTask { ring, due, .. } => {
                if put(ring, slots) == Duty::Drain {
                    due.store(true, Ordering::Release);
                    self.wake_task();
                }
                Duty::None
            }
            Self::MpRing(ring) => put(ring, slots),
            Self::SwapAll(list) => list.put(slots),
        };
        if duty == Duty::Drain { Then::Drain } else { Then::Nothing }
    }

    /// Gives all that is there to `take`, in order. For the one whose duty it is.
    pub(super) fn drain(&self, scratch: &mut Vec<u32>, take: impl FnMut(&[u32])) {
        match self {
            Self::Lock => {}
            Self::RingTask { ring, .. } | Self::MpRing(ring) => ring.drain(scratch, take),
            Self::SwapAll(list) => list.drain(scratch, take),
        }
    }

    /// Wakes the thread that drains, if there is one.
    pub(super) fn wake_task(&self) {
        if let Self::RingTask { task, .. } = self
            && let Some(task) = &*lock(task)
        {
            task.unpark();
        }
    }

    /// The loop of the thread that drains, until it `ended`.
    pub(super) fn run_task(&self, ended: &AtomicBool, drain: impl Fn()) {
        let Self::RingTask { due, task, .. } = self else { return };
        *lock(task) = Some(std::thread::current());
        while !ended.load(Ordering::Acquire) {
            if due.swap(false, Ordering::AcqRel) { drain() } else { std::thread::park() }
        }
    }
}

/// Puts slots into a ring that has room for them, or will have it soon.
fn put(ring: &MpRing, slots: &[u32]) -> Duty {
    loop {
        match ring.put(slots) {
            Some(duty) => return duty,
            None => std::thread::yield_now(),
        }
    }
}
