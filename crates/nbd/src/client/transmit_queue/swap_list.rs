//! A list that many threads push to, and whose consumer takes all of it with one exchange.

use super::Duty;
use std::sync::atomic::{AtomicU32, Ordering};

/// Nothing, and nobody drains.
const IDLE: u32 = u32::MAX;
/// Nothing, and somebody drains.
const EMPTY: u32 = u32::MAX - 1;
/// Behind the last.
const END: u32 = u32::MAX - 2;

/// The list: of names below a number, each in it at most once.
#[derive(Debug)]
pub(in crate::client) struct SwapList {
    /// What was pushed last.
    head: AtomicU32,
    /// What was pushed before each.
    before: Box<[AtomicU32]>,
}

impl SwapList {
    /// For names below `names`.
    pub(super) fn new(names: usize) -> Self {
        Self { head: AtomicU32::new(IDLE), before: (0..names).map(|_| AtomicU32::new(END)).collect() }
    }

    fn set_before(&self, item: u32, before: u32) {
        if let Some(word) = self.before.get(item as usize) {
            word.store(before, Ordering::Relaxed);
        }
    }

    /// Puts items at the end, all together.
    pub(super) fn put(&self, items: &[u32]) -> Duty {
        let (Some(first), Some(last)) = (items.first(), items.last()) else { return Duty::None };
        for pair in items.windows(2) {
            if let [earlier, later] = pair {
                self.set_before(*later, *earlier);
            }
        }
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            self.set_before(*first, if head == IDLE || head == EMPTY { END } else { head });
            match self.head.compare_exchange_weak(head, *last, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return if head == IDLE { Duty::Drain } else { Duty::None },
                Err(now) => head = now,
            }
        }
    }

    /// Gives all that is there to `take`, in order, and what comes meanwhile, until there is nothing. For the one whose duty it is.
    pub(super) fn drain(&self, scratch: &mut Vec<u32>, mut take: impl FnMut(&[u32])) {
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
    fn the_thread_that_finds_it_idle_drains_all_in_order() {
        let list = SwapList::new(10);
        assert_eq!(list.put(&[3, 1]), Duty::Drain);
        assert_eq!(list.put(&[4]), Duty::None);
        let (mut taken, mut calls) = (Vec::new(), 0);
        list.drain(&mut Vec::new(), |items| {
            taken.extend_from_slice(items);
            calls += 1;
            if calls == 1 {
                assert_eq!(list.put(&[0, 9, 5]), Duty::None);
            }
        });
        assert_eq!((taken, calls), (vec![3, 1, 4, 0, 9, 5], 2));
        assert_eq!(list.put(&[3]), Duty::Drain);
    }

    /// Threads put, whoever has the duty drains: everything comes once, and each thread's in order.
    #[test]
    fn nothing_is_lost_between_threads() {
        const THREADS: u32 = 4;
        const EACH: u32 = 10_000;
        let list = SwapList::new((THREADS * EACH) as usize);
        let taken = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (list, taken) = (&list, &taken);
                scope.spawn(move || {
                    for pair in 0..EACH / 2 {
                        let item = thread * EACH + pair * 2;
                        if list.put(&[item, item + 1]) == Duty::Drain {
                            // The one before may not have let go yet.
                            let mut taken = taken.lock().unwrap();
                            list.drain(&mut Vec::new(), |items| taken.extend_from_slice(items));
                        }
                    }
                });
            }
        });
        let taken = taken.into_inner().unwrap();
        assert_eq!(taken.len() as u32, THREADS * EACH);
        for thread in 0..THREADS {
            let own = taken.iter().filter(|item| **item / EACH == thread).map(|item| item % EACH);
            assert!(own.eq(0..EACH), "thread {thread}");
        }
    }
}
