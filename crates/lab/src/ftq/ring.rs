//! Readings on their way from the recorder to the thread that saves them.
//!
//! One thread pushes, another one drains. Neither waits for the other or allocates while it does: the recorder must not be
//! late because a disk is slow.

use model::ftq::record::Chunk;
use model::unit::Nanos;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A missing value: no probe gives this number, because probes refuse what is not finite.
const MISSING: f64 = f64::NAN;

/// Rows of a time, an amount and the values of probes.
pub(super) struct Ring {
    words: Box<[AtomicU64]>,
    /// Words of a row.
    width: usize,
    /// Rows that fit.
    rows: usize,
    /// Rows pushed so far.
    pushed: AtomicUsize,
    /// Rows drained so far.
    drained: AtomicUsize,
}

impl Ring {
    /// A ring for `rows` rows, at least one, with this many probes. Its memory is touched now, so that no push has to wait
    /// for a page.
    pub fn new(rows: usize, probes: usize) -> Self {
        let (width, rows) = (probes + 2, rows.max(1));
        let words = (0..width * rows).map(|_| AtomicU64::new(1)).collect();
        Self { words, width, rows, pushed: AtomicUsize::new(0), drained: AtomicUsize::new(0) }
    }

    /// Adds a row. Returns whether there was room. Only one thread may push.
    pub fn push(&self, at: Nanos, amount: u64, values: &[Option<f64>]) -> bool {
        let pushed = self.pushed.load(Ordering::Relaxed);
        if pushed - self.drained.load(Ordering::Acquire) >= self.rows {
            return false;
        }
        let words = [at.0, amount].into_iter().chain(values.iter().map(|value| value.unwrap_or(MISSING).to_bits()));
        for (place, word) in self.row(pushed).iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        self.pushed.store(pushed + 1, Ordering::Release);
        true
    }

    /// Moves all rows to the end of `chunk`, which has a column for each probe. Only one thread may drain.
    pub fn drain(&self, chunk: &mut Chunk) {
        let pushed = self.pushed.load(Ordering::Acquire);
        let drained = self.drained.load(Ordering::Relaxed);
        for number in drained..pushed {
            let mut words = self.row(number).iter().map(|word| word.load(Ordering::Relaxed));
            chunk.at.push(Nanos(words.next().unwrap_or_default()));
            chunk.amount.push(words.next().unwrap_or_default());
            for (column, word) in chunk.probes.iter_mut().zip(words) {
                column.push(Some(f64::from_bits(word)).filter(|value| value.is_finite()));
            }
        }
        self.drained.store(pushed, Ordering::Release);
    }

    fn row(&self, number: usize) -> &[AtomicU64] {
        let begin = number % self.rows * self.width;
        self.words.get(begin..begin + self.width).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn empty(probes: usize) -> Chunk {
        Chunk { probes: vec![Vec::new(); probes], ..Chunk::default() }
    }

    #[test]
    fn rows_arrive_in_order_with_their_gaps() {
        let ring = Ring::new(2, 2);
        assert!(ring.push(Nanos(5), 7, &[Some(1.5), None]));
        assert!(ring.push(Nanos(6), 8, &[None, Some(-2.0)]));
        assert!(!ring.push(Nanos(7), 9, &[None, None]), "it is full");
        let mut chunk = empty(2);
        ring.drain(&mut chunk);
        assert!(ring.push(Nanos(8), 10, &[None, None]));
        ring.drain(&mut chunk);
        assert_eq!(chunk.at, [5, 6, 8].map(Nanos));
        assert_eq!(chunk.amount, [7, 8, 10]);
        assert_eq!(chunk.probes, [vec![Some(1.5), None, None], vec![None, Some(-2.0), None]]);
        assert!(chunk.is_table(2));
    }

    #[test]
    fn two_threads_lose_nothing() {
        const ROWS: u64 = 100_000;
        let ring = Arc::new(Ring::new(64, 1));
        let pusher = {
            let ring = ring.clone();
            std::thread::spawn(move || {
                for number in 0..ROWS {
                    while !ring.push(Nanos(number), number * 2, &[Some(number as f64)]) {
                        std::thread::yield_now();
                    }
                }
            })
        };
        let mut chunk = empty(1);
        while (chunk.at.len() as u64) < ROWS {
            ring.drain(&mut chunk);
        }
        pusher.join().unwrap();
        let of_number = |number: u64| (Nanos(number), number * 2, Some(number as f64));
        for (row, number) in (0..ROWS).enumerate() {
            assert_eq!((chunk.at[row], chunk.amount[row], chunk.probes[0][row]), of_number(number));
        }
    }
}
