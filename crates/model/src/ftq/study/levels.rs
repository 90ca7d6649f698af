//! The levels of the rate: where it stepped, from what to what. A mean over two levels describes neither.

use super::words;
use crate::ftq::finding::{FtqFinding, Level};
use crate::ftq::series::Grid;
use crate::stats::regimes;
use crate::warning::{Code, Warning};
use std::ops::Range;

/// Readings that steps are searched in: as many as the search looks at.
const POINTS: usize = 128;
/// Fewest of them in a level, 3 % of the recording: what is shorter is a stall or a burst.
const FEWEST: usize = 4;

/// The slots of each level, in the order of time; one range if there is one level.
pub(super) fn ranges(grid: &Grid) -> Vec<Range<usize>> {
    let values = &grid.values;
    let joined = values.len().div_ceil(POINTS).max(1);
    // A last piece that is short has the noise of few slots.
    let pieces = values.chunks(joined).filter(|piece| 2 * piece.len() >= joined);
    let points: Vec<f64> = pieces.map(mean).collect();
    let coarse = long_ones(regimes(&points));
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut begin = 0;
    for (one, next) in coarse.iter().zip(coarse.iter().skip(1)) {
        let end = border(values, (one, next), joined);
        found.push(begin..end);
        begin = end;
    }
    found.push(begin..values.len());
    found
}

/// The ranges without short ones, which belong to the neighbour before, or to the one after the first.
fn long_ones(ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match found.last_mut() {
            Some(before) if before.len() < FEWEST || range.len() < FEWEST => before.end = range.end,
            _ => found.push(range),
        }
    }
    found
}

/// The slot where one level ends and the next begins: within the piece beside the border, where the slots are nearest to the
/// levels on their side.
fn border(values: &[f64], (one, next): (&Range<usize>, &Range<usize>), joined: usize) -> usize {
    let slots = |pieces: &Range<usize>| pieces.start * joined..(pieces.end * joined).min(values.len());
    let level = |pieces: &Range<usize>| mean(values.get(slots(pieces)).unwrap_or_default());
    let (before, after) = (level(one), level(next));
    let middle = one.end * joined;
    let near = middle.saturating_sub(joined)..(middle + joined).min(values.len());
    // How much nearer the slots so far are to the level before than to the one after.
    let (mut sum, mut best) = (0.0, (0.0, near.start));
    for slot in near {
        let value = values.get(slot).copied().unwrap_or(0.0);
        sum += (value - after).abs() - (value - before).abs();
        if sum > best.0 {
            best = (sum, slot + 1);
        }
    }
    best.1
}

/// The levels for the finding; empty if there is one.
pub(super) fn levels(grid: &Grid, ranges: &[Range<usize>], quantum: f64) -> Vec<Level> {
    if ranges.len() < 2 {
        return Vec::new();
    }
    let level = |range: &Range<usize>| Level {
        begin_seconds: grid.begin + range.start as f64 * grid.step,
        end_seconds: grid.begin + range.end as f64 * grid.step,
        amount_per_second: mean(grid.values.get(range.clone()).unwrap_or_default()) / quantum,
    };
    ranges.iter().map(level).collect()
}

/// A caveat that names each step.
pub(super) fn caveat(finding: &FtqFinding, subject: &str) -> Option<Warning> {
    let rate = |level: &Level| format!("{}/s", words::amount(&finding.unit, level.amount_per_second));
    let first = finding.levels.first()?;
    let steps = finding.levels.iter().skip(1);
    let steps: Vec<String> =
        steps.map(|level| format!("to {} at {}", rate(level), words::duration(level.begin_seconds))).collect();
    let message = format!(
        "the rate of {subject} stepped from {} {}: no mean over the recording describes it, and noise is that of each level by itself; what is \
         new to the worker (a file that it writes for the first time, an empty page cache, a dirty limit) ends with such a step",
        rate(first),
        steps.join(", then ")
    );
    Some(Warning::new(Code::TwoRegimes, message))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(values: Vec<f64>) -> Grid {
        let filled = vec![false; values.len()];
        Grid { begin: 0.5, step: 1e-3, quanta: 1.0, values, filled }
    }

    #[test]
    fn a_step_is_found_at_its_slot_with_its_levels() {
        let value = |slot: usize| if slot < 3217 { 40.0 } else { 300.0 } + (slot % 7) as f64;
        let grid = grid((0..27_000).map(value).collect());
        let ranges = ranges(&grid);
        assert_eq!(ranges, [0..3217, 3217..27_000]);
        let found = levels(&grid, &ranges, 1e-3);
        assert!((found[0].end_seconds - 3.717).abs() < 1e-9 && found[0].end_seconds == found[1].begin_seconds);
        assert!((found[0].amount_per_second - 43e3).abs() < 100.0, "{found:?}");
        assert!((found[1].amount_per_second - 303e3).abs() < 100.0, "{found:?}");
    }

    /// A writer of 64 KiB that comes from 0.4 to 3 GiB/s after 3.2 s.
    #[test]
    fn a_step_is_told_with_place_and_levels_and_each_level_has_its_own_noise() {
        use crate::ftq::record::tests::{QUANTUM, record_of};
        let each = |number: u64| if number < 7273 { 3 } else { 22 } + number % 2;
        let mut done = 0;
        let rows = (0..40_000).map(|number: u64| {
            done += each(number) << 16;
            (number * QUANTUM as u64, done)
        });
        let finding = crate::ftq::study(&record_of(rows, Vec::new()), None);
        let told = finding.warnings.iter().find(|warning| warning.code == Code::TwoRegimes).unwrap();
        assert!(
            told.message.starts_with("the rate of the process stepped from 497 MiB/s to 3.12 GiB/s at 3.20 s"),
            "{told:?}"
        );
        assert_eq!(finding.levels.len(), 2);
        assert!(finding.periodic.iter().all(|period| period.period_seconds < 0.002), "{:?}", finding.periodic);
    }

    #[test]
    fn stalls_and_noise_are_no_levels() {
        let late = |slot: usize| if slot < 600 { 30.0 } else { 100.0 };
        let stalled = |slot: usize| if slot % 5000 < 1000 { 0.0 } else { 100.0 };
        for values in [
            (0..27_000).map(stalled).collect(),
            (0..27_000).map(late).collect(),
            vec![3.0; 1000],
            vec![0.0; 1000],
            vec![1.0, 2.0],
            vec![],
        ] {
            let grid = grid(values);
            assert_eq!(levels(&grid, &ranges(&grid), 1e-3), []);
        }
    }
}
