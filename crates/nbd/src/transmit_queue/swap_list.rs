//! A multi-producer list whose consumer takes everything with one exchange.

use super::Then;
use super::sync::{AtomicU32, Ordering};

/// Empty, and no thread is draining.
const IDLE: u32 = u32::MAX;
/// Empty, and a thread is draining.
const EMPTY: u32 = u32::MAX - 1;
/// End of the list.
const END: u32 = u32::MAX - 2;

/// A list of slot numbers below a limit, each in it at most once.
#[derive(Debug)]
pub(super) struct SwapList {
    /// The item pushed last.
    head: AtomicU32,
    /// For each item, the one pushed before it.
    before: Box<[AtomicU32]>,
}

impl SwapList {
    /// A list for slot numbers below `names`.
    pub(super) fn new(names: usize) -> Self {
        Self { head: AtomicU32::new(IDLE), before: (0..names).map(|_| AtomicU32::new(END)).collect() }
    }

    fn set_before(&self, item: u32, before: u32) {
        if let Some(word) = self.before.get(item as usize) {
            word.store(before, Ordering::Relaxed);
        }
    }

    /// Appends items, all together.
    pub(super) fn put(&self, items: &[u32]) -> Then {
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
    use super::super::assert_nothing_is_lost;
    use super::*;

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

    #[test]
    fn nothing_is_lost_between_threads() {
        const EACH: u32 = 10_000;
        let list = SwapList::new(4 * EACH as usize);
        assert_nothing_is_lost(EACH, |items| list.put(items), |scratch, take| list.drain(scratch, take));
    }
}
