//! What a log holds of many I/Os: sums of windows, and histograms.

use super::Entry;
use crate::workload::request_source::Kind;
use model::unit::{Hertz, Ticks};

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

    /// If an instant is behind the current window: its number. The window of the instant is the current one then.
    #[inline]
    pub fn ended(&mut self, now: u64) -> Option<u64> {
        if now < self.end { None } else { Some(self.go_on(now)) }
    }

    #[cold]
    fn go_on(&mut self, now: u64) -> u64 {
        let ended = self.number;
        self.number = (ended + 1).max((now.saturating_sub(self.begin) as f64 / self.length) as u64);
        self.end = self.begin.saturating_add(((self.number + 1) as f64 * self.length) as u64);
        ended
    }
}

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
        if let Some(ended) = self.slicing.ended(entry.done)
            && !self.flush(ended)
        {
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

    #[cold]
    fn flush(&mut self, number: u64) -> bool {
        if self.rows.capacity() - self.rows.len() < Kind::ALL.len() {
            return false;
        }
        for (kind, sums) in Kind::ALL.into_iter().zip(&mut self.now) {
            let sums = std::mem::take(sums);
            if sums.ios > 0 {
                self.rows.push(Window { number, kind, sums });
            }
        }
        true
    }

    pub fn finish(&mut self) {
        self.flush(self.slicing.number);
    }
}

/// Bins up to 2^(BITS + 1) ns are 1 ns wide; above that, each doubling of the latency has 2^BITS bins.
const BITS: u32 = 6;
const BINS_OF_GROUP: usize = 1 << BITS;
pub(super) const BINS: usize = 29 * BINS_OF_GROUP;

/// The bin of a latency.
pub(super) fn bin(nanos: u64) -> usize {
    let highest = 63 - (nanos | 1).leading_zeros();
    if highest <= BITS {
        return usize::try_from(nanos).unwrap_or(BINS - 1);
    }
    let shift = highest - BITS;
    let group = (shift as usize + 1) * BINS_OF_GROUP;
    let within = usize::try_from(nanos >> shift).unwrap_or(0) % BINS_OF_GROUP;
    (group + within).min(BINS - 1)
}

/// A window in which a direction had I/Os, or one of its bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    /// Its number, the direction, the length of the last I/O. Its bins follow.
    Window(u64, Kind, u32),
    /// A bin, and the I/Os in it.
    Bin(u16, u32),
}

#[derive(Debug)]
pub(super) struct Bins {
    slicing: Slicing,
    clock: Hertz,
    now: Vec<Direction>,
    pub rows: Vec<Row>,
}

#[derive(Debug)]
struct Direction {
    kind: Kind,
    last_length: u32,
    ios: u64,
    bins: Vec<u32>,
}

impl Bins {
    /// With room for rows, which does not grow.
    pub fn new(milliseconds: u32, clock: Hertz, rows: Vec<Row>) -> Self {
        let kinds = Kind::ALL.into_iter();
        let now = kinds.map(|kind| Direction { kind, last_length: 0, ios: 0, bins: vec![0; BINS] }).collect();
        Self { slicing: Slicing::new(milliseconds, clock), clock, now, rows }
    }

    pub fn begin(&mut self, now: u64) {
        self.slicing.begin(now);
        self.rows.clear();
        for direction in &mut self.now {
            direction.ios = 0;
            direction.bins.fill(0);
        }
    }

    /// Adds an I/O. Returns whether there was room.
    #[inline]
    pub fn note(&mut self, entry: &Entry) -> bool {
        if let Some(ended) = self.slicing.ended(entry.done)
            && !self.flush(ended)
        {
            return false;
        }
        let [_, _, completion] = entry.latencies();
        let nanos = self.clock.nanos(Ticks(completion)).0;
        if let Some(direction) = self.now.get_mut(entry.kind as usize) {
            direction.ios += 1;
            direction.last_length = entry.length;
            direction.bins.get_mut(bin(nanos)).into_iter().for_each(|count| *count = count.saturating_add(1));
        }
        true
    }

    #[cold]
    fn flush(&mut self, number: u64) -> bool {
        for direction in self.now.iter_mut().filter(|direction| direction.ios > 0) {
            let used = direction.bins.iter().filter(|count| **count > 0).count();
            if self.rows.capacity() - self.rows.len() <= used {
                return false;
            }
            self.rows.push(Row::Window(number, direction.kind, direction.last_length));
            for (bin, count) in (0..).zip(&mut direction.bins) {
                if *count > 0 {
                    self.rows.push(Row::Bin(bin, std::mem::take(count)));
                }
            }
            direction.ios = 0;
        }
        true
    }

    pub fn finish(&mut self) {
        self.flush(self.slicing.number);
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

    #[test]
    fn bins_are_as_wide_as_fios() {
        // Up to 127 ns, 1 ns; from there on, 64 for each doubling.
        for (nanos, expected) in
            [(0, 0), (1, 1), (63, 63), (64, 64), (127, 127), (128, 128), (129, 128), (130, 129), (255, 191), (256, 192)]
        {
            assert_eq!(bin(nanos), expected, "{nanos}");
        }
        assert_eq!(bin(u64::MAX), BINS - 1);
        assert_eq!(bin(1_000_000), (13 + 1) * 64 + (1_000_000 >> 13) % 64);
    }

    #[test]
    fn a_window_has_only_its_own_ios() {
        let mut bins = Bins::new(1, Hertz(1e9), Vec::with_capacity(64));
        bins.begin(0);
        let entry = |kind, handed, done| Entry { kind, offset: 0, length: 4096, issued: handed, handed, done };
        for entry in [entry(Kind::Read, 0, 50), entry(Kind::Read, 50, 100), entry(Kind::Write, 0, 1_000_001)] {
            assert!(bins.note(&entry));
        }
        bins.finish();
        assert_eq!(
            bins.rows,
            [
                Row::Window(0, Kind::Read, 4096),
                Row::Bin(50, 2),
                Row::Window(1, Kind::Write, 4096),
                Row::Bin(u16::try_from(bin(1_000_001)).unwrap(), 1)
            ]
        );
    }
}
