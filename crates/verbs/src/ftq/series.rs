//! Readings → a checked series: what the worker did between two readings, and the same on a uniform grid of time.
//!
//! A reading belongs to the deadline that it was taken after; deadline k is k quanta after the start. A late reading
//! spans several quanta and stays one reading: its rate is the mean over them. The record may contain anything, also
//! values that no recorder writes.
//!
//! Spectra and folding need a uniform grid. There the amount is a line over time through the readings. A slot contains what
//! the line rises in it: a late reading gives its mean to each slot that it spans, and the sum over the slots is the sum over
//! the readings.

use super::record::{Chunk, FtqRecord};
use model::probe::Kind;
use model::stats::basics::quantile;
use std::collections::BTreeSet;

/// Part of a quantum by which a reading may come too early for its deadline, because clocks are rounded.
const EARLY: f64 = 1.0 / 64.0;
/// A counter of time that falls below this part of its value began anew. One that falls by less was read too high before.
const LAGGING: f64 = 0.5;
/// A count of work is exact, so one that falls at all began anew: a process ended, or another one took its place.
const EXACT: f64 = 1.0;
/// Most slots: a longer recording has slots of several quanta. A stall shorter than a slot is still a part of its slot,
/// so only periods of a few slots are lost.
const MOST_SLOTS: usize = 1 << 20;
/// A slot is filled if its reading spans more than this number of quanta.
const IN_TIME: u64 = 1;
/// Readings whose delay after the deadline places the grid.
const DELAYS: usize = 10_001;

/// The readings of a recording, checked.
#[derive(Debug)]
pub struct Series<'a> {
    chunks: &'a [Chunk],
    /// Readings that are left out, by their number in the record: they go back in time, or an earlier one belongs to
    /// the same deadline.
    dropped: BTreeSet<usize>,
    /// The quantum in seconds, positive.
    pub quantum: f64,
    /// When each reading was taken, in seconds since the recording began; ascends.
    pub seconds: Vec<f64>,
    /// Amount until each reading, from 0 at the first; never falls.
    pub done: Vec<f64>,
    /// Quanta that each reading spans: the first none, the others at least 1.
    pub spans: Vec<u64>,
    /// How often the amount went back, as it does if a process ends.
    pub went_back: u64,
}

impl<'a> Series<'a> {
    /// Checks the readings of a record. The amount is [`counted`].
    pub fn of(record: &'a FtqRecord) -> Self {
        let mut series = Self {
            chunks: &record.chunks,
            dropped: BTreeSet::new(),
            // A plan has a quantum of 10 µs or more; a record may say anything.
            quantum: record.header.plan.quantum.seconds().max(1e-9),
            seconds: Vec::new(),
            done: Vec::new(),
            spans: Vec::new(),
            went_back: 0,
        };
        let rows = || record.chunks.iter().flat_map(|chunk| chunk.at.iter().zip(&chunk.amount));
        series.went_back = rows().zip(rows().skip(1)).map(|((_, before), (_, after))| u64::from(after < before)).sum();
        let amounts = counted(rows().map(|(_, amount)| Some(*amount as f64)).collect(), EXACT);
        let mut due_before = f64::NEG_INFINITY;
        for (number, ((at, _), done)) in rows().zip(amounts).enumerate() {
            let due = (at.seconds() / series.quantum + EARLY).floor();
            if due <= due_before {
                series.dropped.insert(number);
                continue;
            }
            let span = if series.seconds.is_empty() { 0 } else { (due - due_before) as u64 };
            series.spans.push(span);
            series.seconds.push(at.seconds());
            series.done.push(done);
            due_before = due;
        }
        series
    }

    pub fn readings(&self) -> usize {
        self.seconds.len()
    }

    /// Quanta that passed.
    pub fn quanta(&self) -> u64 {
        self.spans.iter().fold(0, |sum, span| sum.saturating_add(*span))
    }

    /// Time from the first reading to the last.
    pub fn length(&self) -> f64 {
        self.seconds.last().unwrap_or(&0.0) - self.seconds.first().unwrap_or(&0.0)
    }

    pub fn amount(&self) -> f64 {
        self.done.last().copied().unwrap_or(0.0)
    }

    /// Amount per quantum between each reading and the one before; from the second reading on.
    pub fn amount_per_quantum(&self) -> impl Iterator<Item = f64> + '_ {
        let later = self.seconds.iter().zip(&self.done).skip(1);
        let pairs = self.seconds.iter().zip(&self.done).zip(later);
        pairs.map(|((before, done_before), (at, done))| (done - done_before) / (at - before) * self.quantum)
    }

    /// The values of probe `number` at each reading; `None` if it could not be read.
    pub fn probe(&self, number: usize) -> impl Iterator<Item = Option<f64>> + '_ {
        let rows = self.chunks.iter().flat_map(move |chunk| {
            let column = chunk.probes.get(number);
            let rows = chunk.at.len().min(chunk.amount.len());
            (0..rows).map(move |row| column.and_then(|column| *column.get(row)?).filter(|value| value.is_finite()))
        });
        rows.enumerate().filter(|(row, _)| !self.dropped.contains(row)).map(|(_, value)| value)
    }

    /// A probe as a line over time: a gauge's levels, or what a counter has counted since its first reading ([`counted`]).
    /// `NaN` where it could not be read.
    pub fn line(&self, number: usize, kind: Kind) -> Vec<f64> {
        match kind {
            Kind::Gauge => self.probe(number).map(|value| value.unwrap_or(f64::NAN)).collect(),
            Kind::Counter => counted(self.probe(number).collect(), LAGGING),
        }
    }
}

/// What a counter has counted since its first reading, from its readings; `NaN` where there is none.
///
/// A counter only grows, so a reading above a later one was too high: the kernel tells the time off the CPU as a difference
/// to a clock that lags by up to a tick. The least of all later readings is then the best that is known. To leave out only the
/// steps back, and to add all others, would count each lag. A counter that falls below the part `anew` of its value began anew,
/// and counts on from there.
fn counted(mut readings: Vec<Option<f64>>, anew: f64) -> Vec<f64> {
    // From the last reading to the first: the least of those behind, in a run without a beginning anew.
    let (mut after, mut least): (Option<f64>, f64) = (None, f64::INFINITY);
    let mut begins = Vec::new();
    for (place, reading) in readings.iter_mut().enumerate().rev() {
        let Some(value) = reading else { continue };
        if after.is_some_and(|after| *value > 0.0 && after < anew * *value) {
            least = f64::INFINITY;
            begins.push(place + 1);
        }
        after = Some(*value);
        least = least.min(*value);
        *value = least;
    }
    let (mut sum, mut before) = (0.0, None);
    let mut rise = |(place, reading): (usize, Option<f64>)| {
        let Some(value) = reading else { return f64::NAN };
        if begins.last().is_some_and(|begin| place >= *begin) {
            begins.pop();
            before = None;
        }
        sum += value - before.replace(value).unwrap_or(value);
        sum
    };
    readings.into_iter().enumerate().map(&mut rise).collect()
}

/// The amount in consecutive slots of equal length.
#[derive(Debug)]
pub struct Grid {
    /// When the first slot begins, in seconds since the recording began.
    pub begin: f64,
    /// Length of a slot in seconds.
    pub step: f64,
    /// Quanta in a slot.
    pub quanta: f64,
    /// Amount per quantum of each slot.
    pub values: Vec<f64>,
    /// Whether late readings fill half of a slot or more.
    pub filled: Vec<bool>,
}

impl Grid {
    /// The grid of a series. It is empty for fewer than two readings.
    ///
    /// Its edges lie where most readings do, so that a slot of a punctual recorder is exactly one reading. If most
    /// readings are late, its slots are as long as half the typical reading.
    pub fn of(series: &Series) -> Self {
        let length = series.length() / series.quantum;
        let most = MOST_SLOTS.min(2 * series.readings());
        let quanta = if most == 0 { 1.0 } else { (length / most as f64).ceil().max(1.0) };
        let step = quanta * series.quantum;
        let first = series.seconds.first().copied().unwrap_or(0.0);
        let delay = typical_delay(series);
        let begin = first + (delay - first / series.quantum).rem_euclid(1.0) * series.quantum;
        let begin = if begin - first > (1.0 - 1e-3) * series.quantum { first } else { begin };
        let end = series.seconds.last().copied().unwrap_or(0.0);
        // The last reading may lie a rounding error before the last edge.
        let slots = ((end - begin) / step + 1e-3).floor().max(0.0).min(2.0 * MOST_SLOTS as f64) as usize;
        let mut grid = Self { begin, step, quanta, values: Vec::new(), filled: vec![false; slots] };
        let line = grid.line_at_edges(series, &series.done);
        grid.values = line.iter().zip(line.iter().skip(1)).map(|(low, high)| (high - low).max(0.0) / quanta).collect();
        let readings = series.seconds.iter().zip(series.seconds.iter().skip(1)).zip(series.spans.iter().skip(1));
        for ((from, to), _) in readings.filter(|(_, span)| **span > IN_TIME) {
            let slot = |seconds: &f64| ((seconds - begin) / step).round().clamp(0.0, slots as f64) as usize;
            if let Some(slots) = grid.filled.get_mut(slot(from)..slot(to).max(slot(from))) {
                slots.fill(true);
            }
        }
        grid
    }

    pub fn slots(&self) -> usize {
        self.filled.len()
    }

    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        self.slots() as f64 * self.step
    }

    /// A line through the readings at all edges: one more than slots. `NaN` beside a reading that is `NaN`.
    pub fn line_at_edges(&self, series: &Series, line: &[f64]) -> Vec<f64> {
        let edge = |number: usize| {
            let at = self.begin + number as f64 * self.step;
            let next = series.seconds.partition_point(|seconds| *seconds <= at);
            let reading = |place: usize| Some((*series.seconds.get(place)?, *line.get(place)?));
            let (before, low) = reading(next.saturating_sub(1)).unwrap_or_default();
            match reading(next) {
                Some((after, high)) if at > before => low + (high - low) * ((at - before) / (after - before)),
                _ => low,
            }
        };
        if self.slots() == 0 { Vec::new() } else { (0..=self.slots()).map(edge).collect() }
    }
}

/// The median delay of a reading after its deadline, as a part of a quantum.
fn typical_delay(series: &Series) -> f64 {
    let every = series.readings().div_ceil(DELAYS).max(1);
    let delay = |seconds: &f64| (seconds / series.quantum + EARLY).rem_euclid(1.0) - EARLY;
    let mut delays: Vec<f64> = series.seconds.iter().step_by(every).map(delay).collect();
    quantile(&mut delays, 0.5).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftq::record::tests::{QUANTUM, record_of};

    fn taken(rows: &[(f64, u64)]) -> FtqRecord {
        record_of(rows.iter().map(|(quanta, amount)| ((quanta * QUANTUM) as u64, *amount)), Vec::new())
    }

    #[test]
    fn a_late_reading_spans_quanta_and_its_rate_is_their_mean() {
        let record = taken(&[(0.0, 0), (1.01, 101), (4.01, 401), (4.99, 460), (6.0, 600)]);
        let series = Series::of(&record);
        assert_eq!(series.spans, [0, 1, 3, 1, 1], "the reading just before deadline 5 is deadline 5's, by rounding");
        assert_eq!((series.quanta(), series.readings()), (6, 5));
        let rates: Vec<i64> = series.amount_per_quantum().map(|rate| rate.round() as i64).collect();
        assert_eq!(rates, [100, 100, 60, 139]);
    }

    #[test]
    fn an_amount_that_goes_back_is_no_progress_and_counted() {
        let record = taken(&[(0.0, 50), (1.0, 150), (2.0, 20), (3.0, 120)]);
        let series = Series::of(&record);
        assert_eq!((series.went_back, series.amount()), (1, 200.0));
        assert_eq!(series.done, [0.0, 100.0, 100.0, 200.0]);
    }

    /// A thread that waits 7 % of the time, told by a clock that lags by up to 4 ms and is then right again.
    #[test]
    fn a_clock_that_lags_adds_nothing_to_what_a_counter_counts() {
        let off = |reading: f64| 1e12 + 0.07 * reading * QUANTUM;
        let lag = |reading: f64| (reading * QUANTUM).rem_euclid(4e6);
        let readings: Vec<Option<f64>> =
            (0..10_000).map(f64::from).map(|reading| Some(off(reading) + lag(reading))).collect();
        let line = counted(readings.clone(), LAGGING);
        let (total, truth) = (line[line.len() - 1], off(9999.0) - off(0.0));
        assert!((total - truth).abs() <= 4e6, "{total} of {truth}");
        assert!(line.is_sorted());
        let clipped: f64 = readings.windows(2).map(|pair| (pair[1].unwrap() - pair[0].unwrap()).max(0.0)).sum();
        assert!(clipped > 10.0 * truth, "the lags are most of what only rises");
    }

    #[test]
    fn a_counter_that_begins_anew_counts_on_and_one_that_is_not_read_has_no_value() {
        let of = |readings: &[f64]| {
            counted(readings.iter().map(|value| Some(*value).filter(|v| v.is_finite())).collect(), LAGGING)
        };
        assert_eq!(of(&[100.0, 150.0, 20.0, 120.0]), [0.0, 50.0, 50.0, 150.0]);
        assert_eq!(of(&[100.0, 0.0, 7.0, 5.0, 6.0]), [0.0, 0.0, 5.0, 5.0, 6.0]);
        assert_eq!(of(&[100.0, 112.0, 108.0, 110.0]), [0.0, 8.0, 8.0, 10.0]);
        let unread = of(&[5.0, f64::NAN, 9.0]);
        assert!(unread[1].is_nan() && (unread[0], unread[2]) == (0.0, 4.0));
        assert_eq!(of(&[]), [0.0; 0]);
    }

    #[test]
    fn times_that_do_not_ascend_and_a_second_reading_of_a_deadline_are_left_out_but_not_their_amount() {
        let record = taken(&[(0.0, 0), (2.0, 200), (2.5, 250), (1.0, 260), (3.0, 300)]);
        let series = Series::of(&record);
        assert_eq!((series.spans.clone(), series.amount()), (vec![0, 2, 1], 300.0));
        assert_eq!(series.probe(0).collect::<Vec<_>>(), [None; 3]);
    }

    fn grid_of(rows: &[(f64, u64)]) -> Grid {
        Grid::of(&Series::of(&taken(rows)))
    }

    #[test]
    fn a_late_reading_gives_its_mean_to_each_slot_which_is_marked() {
        let grid = grid_of(&[(0.02, 0), (1.02, 10), (2.02, 20), (5.02, 80), (6.02, 90), (7.02, 100)]);
        let values: Vec<i64> = grid.values.iter().map(|value| value.round() as i64).collect();
        assert_eq!(values, [10, 10, 20, 20, 20, 10, 10]);
        assert_eq!(grid.filled, [false, false, true, true, true, false, false]);
        assert!((grid.begin - 0.02 * QUANTUM / 1e9).abs() < 1e-8);
    }

    #[test]
    fn a_reading_that_comes_late_within_its_quantum_is_no_stall_of_the_worker() {
        let grid = grid_of(&[(0.0, 0), (1.0, 100), (2.5, 250), (3.0, 300), (4.0, 400)]);
        assert!(grid.values.iter().all(|value| (value - 100.0).abs() < 1.0), "{:?}", grid.values);
    }

    #[test]
    fn nothing_gives_an_empty_grid() {
        assert_eq!((grid_of(&[]).slots(), grid_of(&[(3.0, 7)]).slots()), (0, 0));
    }
}
