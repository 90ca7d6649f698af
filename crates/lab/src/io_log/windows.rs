//! Sums of the I/Os of each window of time, for rows that are means.

use super::Entry;
use crate::workload::request_source::Kind;
use model::unit::Hertz;

/// Windows of equal length since the start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slicing {
    begin: u64,
    /// Ticks of a window.
    length: f64,
    /// The current one, from 0, and its end.
    pub number: u64,
    end: u64,
}

impl Slicing {
    pub fn new(milliseconds: u32, clock: Hertz) -> Self {
        Self { begin: 0, length: (clock.0 * f64::from(milliseconds) / 1e3).max(1.0), number: 0, end: u64::MAX }
    }

    pub fn begin(&mut self, now: u64) {
        (self.begin, self.number) = (now, 0);
        self.end = now.saturating_add(self.length as u64);
    }

    /// Whether an instant is behind the current window.
    #[inline]
    pub fn is_over(&self, now: u64) -> bool {
        now >= self.end
    }

    /// Goes on to the window of an instant.
    pub fn go_on(&mut self, now: u64) {
        self.number = (self.number + 1).max((now.saturating_sub(self.begin) as f64 / self.length) as u64);
        self.end = self.begin.saturating_add(((self.number + 1) as f64 * self.length) as u64);
    }
}

/// The I/Os of one direction in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub ios: u64,
    pub bytes: u64,
    /// Ticks: of the whole latency, of the submission, of the completion.
    pub ticks: [u64; 3],
    pub most: [u64; 3],
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
pub(super) struct Window {
    pub number: u64,
    pub kind: Kind,
    pub sums: Sums,
}

#[derive(Debug)]
pub(super) struct Windows {
    slicing: Slicing,
    now: [Sums; 3],
    pub rows: Vec<Window>,
}

impl Windows {
    /// With room for rows, which does not grow.
    pub fn new(milliseconds: u32, clock: Hertz, rows: Vec<Window>) -> Self {
        Self { slicing: Slicing::new(milliseconds, clock), now: Default::default(), rows }
    }

    pub fn begin(&mut self, now: u64) {
        self.slicing.begin(now);
        self.now = Default::default();
        self.rows.clear();
    }

    /// Adds an I/O. Returns whether there was room.
    #[inline]
    pub fn note(&mut self, entry: &Entry) -> bool {
        if self.slicing.is_over(entry.done) && !self.close(entry.done) {
            return false;
        }
        let sums = &mut self.now[entry.kind as usize];
        sums.ios += 1;
        sums.bytes += u64::from(entry.length);
        for ((sum, most), ticks) in sums.ticks.iter_mut().zip(&mut sums.most).zip(entry.latencies()) {
            *sum = sum.saturating_add(ticks);
            *most = ticks.max(*most);
        }
        true
    }

    #[cold]
    fn close(&mut self, now: u64) -> bool {
        let room = self.flush();
        self.slicing.go_on(now);
        room
    }

    fn flush(&mut self) -> bool {
        if self.rows.capacity() - self.rows.len() < Kind::ALL.len() {
            return false;
        }
        for (kind, sums) in Kind::ALL.into_iter().zip(&mut self.now) {
            let sums = std::mem::take(sums);
            if sums.ios > 0 {
                self.rows.push(Window { number: self.slicing.number, kind, sums });
            }
        }
        true
    }

    pub fn finish(&mut self) {
        self.flush();
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
