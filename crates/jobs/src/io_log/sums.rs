//! What a log holds of many I/Os: sums of windows.

use super::Entry;
use crate::workload::request_source::Kind;
use model::unit::Hertz;

/// The I/Os of one direction in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub ios: u64,
    pub bytes: u64,
    /// Ticks: of the whole latency, of the submission, of the completion.
    pub ticks: [u64; 3],
}

impl Entry {
    /// Ticks of the whole latency, of the submission, of the completion.
    pub(super) fn latencies(&self) -> [u64; 3] {
        [
            self.done.saturating_sub(self.issued),
            self.handed.saturating_sub(self.issued),
            self.done.saturating_sub(self.handed),
        ]
    }
}

/// A window in which a direction had I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub number: u64,
    pub kind: Kind,
    pub sums: Sums,
}

/// Windows of equal length since the start.
#[derive(Debug)]
pub(super) struct Windows {
    begin: u64,
    /// Ticks of a window.
    length: f64,
    /// The current one, from 0, its end, and its sums.
    number: u64,
    end: u64,
    now: [Sums; 3],
    pub rows: Vec<Window>,
}

impl Windows {
    /// With room for rows, which does not grow.
    pub fn new(milliseconds: u32, clock: Hertz, rows: Vec<Window>) -> Self {
        let length = (clock.0 * f64::from(milliseconds) / 1e3).max(1.0);
        Self { begin: 0, length, number: 0, end: u64::MAX, now: Default::default(), rows }
    }

    pub fn begin(&mut self, now: u64) {
        (self.begin, self.number, self.end) = (now, 0, now.saturating_add(self.length as u64));
        self.now = Default::default();
        self.rows.clear();
    }

    /// Adds an I/O. Returns whether there was room.
    #[inline]
    pub fn note(&mut self, entry: &Entry) -> bool {
        if entry.done >= self.end && !self.go_on(entry.done) {
            return false;
        }
        let sums = &mut self.now[entry.kind as usize];
        sums.ios += 1;
        sums.bytes += u64::from(entry.length);
        for (sum, ticks) in sums.ticks.iter_mut().zip(entry.latencies()) {
            *sum = sum.saturating_add(ticks);
        }
        true
    }

    /// The current window is that of this instant, which is behind the last one.
    #[cold]
    fn go_on(&mut self, now: u64) -> bool {
        let room = self.finish();
        self.number = (self.number + 1).max((now.saturating_sub(self.begin) as f64 / self.length) as u64);
        self.end = self.begin.saturating_add(((self.number + 1) as f64 * self.length) as u64);
        room
    }

    /// Keeps the sums of the current window, if there is room.
    pub fn finish(&mut self) -> bool {
        if self.rows.capacity() - self.rows.len() < Kind::ALL.len() {
            return false;
        }
        for (kind, sums) in Kind::ALL.into_iter().zip(&mut self.now) {
            let sums = std::mem::take(sums);
            if sums.ios > 0 {
                self.rows.push(Window { number: self.number, kind, sums });
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: Kind, issued: u64, done: u64) -> Entry {
        Entry { kind, offset: 0, length: 512, issued, handed: issued + 1, done }
    }

    #[test]
    fn an_io_belongs_to_the_window_in_which_it_completes() {
        let mut windows = Windows::new(10, Hertz(1000.0), Vec::with_capacity(16));
        windows.begin(100);
        for (kind, issued, done) in
            [(Kind::Read, 100, 105), (Kind::Write, 101, 109), (Kind::Read, 106, 110), (Kind::Read, 150, 153)]
        {
            assert!(windows.note(&entry(kind, issued, done)));
        }
        windows.finish();
        let rows: Vec<_> = windows.rows.iter().map(|row| (row.number, row.kind as usize, row.sums.ticks)).collect();
        assert_eq!(rows, [(0, 0, [5, 1, 4]), (0, 1, [8, 1, 7]), (1, 0, [4, 1, 3]), (5, 0, [3, 1, 2])]);
    }

    #[test]
    fn windows_without_room_are_said() {
        let mut windows = Windows::new(1, Hertz(1000.0), Vec::with_capacity(4));
        windows.begin(0);
        let noted: Vec<_> = (0..8).map(|at| windows.note(&entry(Kind::Read, at, at))).collect();
        let rows = windows.rows.len();
        assert!(noted.starts_with(&[true, true]) && noted.ends_with(&[false]) && rows < 5, "{noted:?} {rows}");
    }
}
