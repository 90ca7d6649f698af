//! The series on a uniform grid, which spectra and folding need.
//!
//! The amount is a line over time through the readings. A slot contains what the line rises in it: a late reading gives
//! its mean to each slot that it spans, and the sum over the slots is the sum over the readings.

use super::Series;
use crate::stats::quantile::quantile;

/// Most slots: a longer recording has slots of several quanta. A stall shorter than a slot is still a part of its slot,
/// so only periods of a few slots are lost.
const MOST_SLOTS: usize = 1 << 20;
/// A slot is filled if its reading spans more than this number of quanta.
const IN_TIME: u64 = 1;
/// Readings whose delay after the deadline places the grid.
const DELAYS: usize = 10_001;

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
    /// Whether most of a slot was filled by a late reading.
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
        let mut grid = Self { begin, step, quanta, values: Vec::new(), filled: Vec::new() };
        let line = grid.at_edges(slots, series, &series.done);
        grid.values = line.windows(2).map(|edges| rise(edges) / quanta).collect();
        grid.filled = filled(&grid, series, slots);
        grid
    }

    pub fn slots(&self) -> usize {
        self.values.len()
    }

    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        self.slots() as f64 * self.step
    }

    /// A line through the readings at all edges: one more than slots. `NaN` beside a reading that is `NaN`.
    pub fn line_at_edges(&self, series: &Series, line: &[f64]) -> Vec<f64> {
        self.at_edges(self.slots(), series, line)
    }

    fn at_edges(&self, slots: usize, series: &Series, line: &[f64]) -> Vec<f64> {
        let mut readings = series.seconds.iter().copied().zip(line.iter().copied()).peekable();
        let mut before = readings.peek().copied().unwrap_or((0.0, 0.0));
        let edge = |number: usize| {
            let at = self.begin + number as f64 * self.step;
            while let Some(&next) = readings.peek() {
                if next.0 > at {
                    break;
                }
                before = next;
                readings.next();
            }
            match readings.peek() {
                Some(&(after, value)) if at > before.0 => {
                    let part = (at - before.0) / (after - before.0);
                    before.1 + (value - before.1) * part
                }
                _ => before.1,
            }
        };
        if slots == 0 { Vec::new() } else { (0..=slots).map(edge).collect() }
    }
}

fn rise(edges: &[f64]) -> f64 {
    match edges {
        [low, high] => (high - low).max(0.0),
        _ => 0.0,
    }
}

/// The median delay of a reading after its deadline, as a part of a quantum.
fn typical_delay(series: &Series) -> f64 {
    let every = series.readings().div_ceil(DELAYS).max(1);
    let delay = |seconds: &f64| (seconds / series.quantum + super::EARLY).rem_euclid(1.0) - super::EARLY;
    let mut delays: Vec<f64> = series.seconds.iter().step_by(every).map(delay).collect();
    quantile(&mut delays, 0.5).unwrap_or(0.0)
}

/// For each slot whether late readings cover half of it or more.
fn filled(grid: &Grid, series: &Series, slots: usize) -> Vec<bool> {
    let mut filled = vec![false; slots];
    let readings = series.seconds.iter().zip(series.seconds.iter().skip(1)).zip(series.spans.iter().skip(1));
    for ((from, to), _) in readings.filter(|(_, span)| **span > IN_TIME) {
        let slot = |seconds: &f64| ((seconds - grid.begin) / grid.step).round().clamp(0.0, slots as f64) as usize;
        if let Some(slots) = filled.get_mut(slot(from)..slot(to).max(slot(from))) {
            slots.fill(true);
        }
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftq::record::tests::{QUANTUM, record_of};

    fn grid_of(rows: &[(f64, u64)]) -> Grid {
        let record = record_of(rows.iter().map(|(quanta, amount)| ((quanta * QUANTUM) as u64, *amount)), Vec::new());
        Grid::of(&Series::of(&record))
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
