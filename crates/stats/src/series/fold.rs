//! Folding: a series cut into periods that are laid over each other.
//!
//! A stall that repeats falls on the same columns in each period, noise does not. A fold keeps up to 64 parts of
//! the time apart, so that a slightly different period is tried by shifting rows, without folding again.

use super::level::spread;
use crate::basics::quantile;

/// Most rows: equal parts of the time, of several periods or a piece of one.
const MOST_ROWS: usize = 64;
/// Most cells. Fewer rows do for fine columns, because a finer fold is shifted less.
const MOST_CELLS: usize = 1 << 16;
/// Most columns. A stall shorter than a column is diluted in it.
const MOST_COLUMNS: usize = 4096;
/// Columns of the first, coarse fold.
const FIRST_COLUMNS: usize = 64;
/// Factor from a fold's columns to those of the next, finer one.
const FINER: usize = 4;
/// Columns by which a coarser fold may be wrong in each direction, in columns of the next.
const UNCERTAIN: i64 = 6;
/// Widest stall, as a part of the period.
pub const WIDEST: f64 = 0.95;
/// Fewest windows that a variance is estimated from.
const FEWEST_WINDOWS: usize = 32;
/// Least variance of the noise relative to that of the series.
const LEAST_NOISE: f64 = 0.01;

/// Where in the period a series is low.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dip {
    /// The period in slots.
    pub period: f64,
    /// Begin of the dip, as a part of the period, from 0 to 1.
    pub phase: f64,
    /// Length of the dip, as a part of the period.
    pub width: f64,
    /// Squared sum of the deviations in the dip ÷ its slots, relative to noise.
    pub explained: f64,
}

/// Sums of a series by row and column.
struct Fold {
    rows: usize,
    columns: usize,
    sums: Vec<f64>,
    counts: Vec<f64>,
}

/// One column over all rows.
#[derive(Clone, Copy, Default)]
pub struct Column {
    pub sum: f64,
    pub count: f64,
}

impl Fold {
    fn of(values: &[f64], period: f64, columns: usize) -> Self {
        let rows = MOST_ROWS.min(MOST_CELLS / columns.max(1)).max(1);
        let (mut sums, mut counts) = (vec![0.0; rows * columns], vec![0.0; rows * columns]);
        let per_row = values.len().div_ceil(rows).max(1);
        let turn = 1.0 / period;
        for (row, part) in values.chunks(per_row).enumerate() {
            let begin = row * per_row;
            let range = row * columns..(row + 1) * columns;
            let (Some(sums), Some(counts)) = (sums.get_mut(range.clone()), counts.get_mut(range)) else { continue };
            for (slot, value) in (begin..).zip(part) {
                // A slot counts where its middle is.
                let column = (((slot as f64 + 0.5) * turn).fract() * columns as f64) as usize;
                if let (Some(sum), Some(count)) = (sums.get_mut(column), counts.get_mut(column)) {
                    *sum += value;
                    *count += 1.0;
                }
            }
        }
        Self { rows, columns, sums, counts }
    }

    /// All rows as one period, if the last is shifted against the first by `drift` columns.
    fn profile(&self, drift: f64, profile: &mut Vec<Column>) {
        profile.clear();
        profile.resize(self.columns, Column::default());
        let rows = self.sums.chunks(self.columns).zip(self.counts.chunks(self.columns));
        for (row, (sums, counts)) in rows.enumerate() {
            let part = (row as f64 + 0.5) / self.rows as f64;
            let shift = (drift * part).round().rem_euclid(self.columns as f64) as usize % self.columns;
            let pairs = || sums.iter().zip(counts);
            let shifted = pairs().skip(shift).chain(pairs().take(shift));
            for (column, (sum, count)) in profile.iter_mut().zip(shifted) {
                column.sum += sum;
                column.count += count;
            }
        }
    }
}

/// The begin and width in columns of the dip that explains most, and how much.
pub fn best_dip(
    profile: &[Column],
    sums: &mut Vec<Column>,
    noise: impl Fn(usize) -> f64,
) -> Option<(usize, usize, f64)> {
    let all = profile
        .iter()
        .fold(Column::default(), |all, next| Column { sum: all.sum + next.sum, count: all.count + next.count });
    let mean = all.sum / all.count.max(1.0);
    // Running sums over two periods, so that a dip may lie across the end.
    sums.clear();
    let mut running = Column::default();
    sums.push(running);
    for column in profile.iter().chain(profile) {
        running.sum += column.sum - mean * column.count;
        running.count += column.count;
        sums.push(running);
    }
    let mut best: Option<(usize, usize, f64)> = None;
    let widest = ((profile.len() as f64 * WIDEST) as usize).max(1);
    let mut width = 1;
    while width <= widest {
        let noise = noise(width);
        let ends = sums.iter().zip(sums.iter().skip(width)).take(profile.len());
        for (begin, (from, to)) in ends.enumerate() {
            let (sum, count) = (to.sum - from.sum, to.count - from.count);
            let others = all.count - count;
            if sum >= 0.0 || count < 0.5 || others < 0.5 {
                continue;
            }
            let explained = sum * sum * (1.0 / count + 1.0 / others) / noise;
            if best.is_none_or(|(.., most)| explained > most) {
                best = Some((begin, width, explained));
            }
        }
        // 1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 16…
        width = (width + 1).max(width * 6 / 5);
    }
    best
}

/// The variance of a series' means over windows of 1, 2, 4… slots, times their slots: the same for all lengths if the
/// noise is white, more for long ones if the speed drifts.
#[derive(Debug)]
pub struct NoiseByWidth(Vec<f64>);

impl NoiseByWidth {
    /// From the median distance from the median, so that stalls hardly count.
    pub fn of(values: &[f64]) -> Self {
        let mut sums = values.to_vec();
        let total = values.iter().map(|value| value * value).sum::<f64>() / values.len().max(1) as f64;
        let mut variances = Vec::new();
        let mut width = 1.0;
        while sums.len() >= FEWEST_WINDOWS {
            let middle = quantile(&mut sums.clone(), 0.5).unwrap_or(0.0);
            let spread = spread(&sums, &vec![middle; sums.len()]);
            // A worker that moves in lumps may have the same amount in most slots.
            variances.push((spread * spread / width).max(LEAST_NOISE * total).max(f64::MIN_POSITIVE));
            sums = sums.chunks_exact(2).map(|pair| pair.iter().sum()).collect();
            width *= 2.0;
        }
        Self(variances)
    }

    /// For a window of this number of slots.
    pub fn at(&self, slots: f64) -> f64 {
        let place = slots.max(1.0).log2();
        let get = |place: usize| self.0.get(place).or(self.0.last()).copied().unwrap_or(1.0);
        let (low, high) = (get(place as usize), get(place as usize + 1));
        low + (high - low) * place.fract()
    }
}

/// The dip of the period near `period` (in slots) that stands out most from the noise, searched with ever finer folds.
/// The period is uncertain by what `turns` periods more or less in the whole series make.
pub fn refine(values: &[f64], noise: &NoiseByWidth, period: f64, turns: f64) -> Option<Dip> {
    // Not much coarser than the uncertainty: a short stall is hardly seen in a wide column.
    let first = ((2.0 / turns) as usize).max(FIRST_COLUMNS);
    let mut columns = first.min(most_columns(values, period)?);
    let mut range = ((turns * columns as f64).ceil() as i64 + 1).min(4 * columns as i64);
    let mut period = period;
    loop {
        let dip = refined_by(values, noise, period, (columns, range))?;
        let most = most_columns(values, dip.period)?;
        if columns >= most {
            return Some(dip);
        }
        period = dip.period;
        columns = (columns * FINER).min(most);
        range = UNCERTAIN;
    }
}

/// The same for a multiple or a part of a refined period, which is uncertain by a few columns of the finest fold.
pub fn refine_known(values: &[f64], noise: &NoiseByWidth, period: f64) -> Option<Dip> {
    refined_by(values, noise, period, (most_columns(values, period)?, UNCERTAIN))
}

/// Columns of the finest fold: a slot each. `None` if the period does not fit into the series twice.
pub fn most_columns(values: &[f64], period: f64) -> Option<usize> {
    let fits = period >= 2.0 && period * 2.0 <= values.len() as f64;
    fits.then(|| (period.round() as usize).clamp(2, MOST_COLUMNS))
}

/// The best dip of one fold, shifted by up to `range` columns in each direction.
fn refined_by(values: &[f64], noise: &NoiseByWidth, period: f64, (columns, range): (usize, i64)) -> Option<Dip> {
    let (mut profile, mut sums) = (Vec::new(), Vec::new());
    let fold = Fold::of(values, period, columns);
    let wide = columns as f64;
    let noise_of = |width: usize| noise.at(width as f64 * period / wide);
    // In steps of half a column.
    let tried = (-2 * range..=2 * range).filter_map(|half| {
        let drift = half as f64 / 2.0;
        fold.profile(drift, &mut profile);
        let (begin, width, explained) = best_dip(&profile, &mut sums, noise_of)?;
        Some((drift, begin, width, explained))
    });
    // Among equals the smallest correction.
    let best = tried.min_by(|one, other| other.3.total_cmp(&one.3).then(one.0.abs().total_cmp(&other.0.abs())));
    let (drift, begin, width, explained) = best?;
    let turns_in_all = values.len() as f64 / period;
    let period = period * (1.0 + drift / wide / turns_in_all);
    Some(Dip { period, phase: begin as f64 / wide, width: width as f64 / wide, explained })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zeros with dips of −1 that are `length` slots long, every `period` slots from slot `begin` on.
    fn series(slots: usize, period: f64, begin: f64, length: f64) -> Vec<f64> {
        let dips = |slot: usize| (slot as f64 - begin).rem_euclid(period) < length;
        (0..slots).map(|slot| if dips(slot) { -1.0 } else { 0.0 }).collect()
    }

    #[test]
    fn a_period_is_refined_far_below_a_slot() {
        for (period, begin, length) in
            [(2272.7, 1000.3, 1.2), (227.27, 3.0, 1.0), (11_363.6, 9_000.0, 400.0), (40.4, 39.9, 4.0)]
        {
            let values = series(68_182, period, begin, length);
            let periods = values.len() as f64 / period;
            // Wrong by 0.3 periods in the whole series, and known to 0.5.
            let near = period * (1.0 + 0.3 / periods);
            let dip = refine(&values, &NoiseByWidth::of(&values), near, 0.5).unwrap();
            assert!((dip.period / period - 1.0).abs() < 1e-3, "{dip:?} {period}");
            let phase = (dip.phase - begin / period).rem_euclid(1.0);
            let near = phase.min(1.0 - phase);
            // Edges are known to a slot, and to half of the step between the widths that are tried.
            let known = 1.5 + 0.1 * length;
            assert!(near * period < known, "{dip:?} {begin}");
            assert!((dip.width * period - length).abs() < known, "{dip:?} {length}");
        }
    }

    #[test]
    fn periods_that_do_not_fit_are_none() {
        for (period, why) in [(1.0, "too short"), (60.0, "too long"), (10.0, "nothing is low")] {
            assert_eq!(refine(&[0.0; 100], &NoiseByWidth::of(&[]), period, 0.5), None, "{why}");
        }
    }
}
