//! Finds where the level of a series of measurements changed: a benchmark over weeks.
//!
//! E-divisive (Matteson and James, 2014) with the energy distance of exponent 1: the stretch of a range with the largest distance
//! from all that is before it in the range, if hardly any permutation of the range has one that is as far apart; then the same for
//! the parts before and after its begin. That a stretch may end anywhere finds a change that is taken back. Ranks of distances make
//! no assumption about the shape of the noise, and an outlier is no level.
//!
//! Neighbours may resemble each other, so not the values are permuted, but their innovations: what each adds to ρ times the one
//! before it, with ρ from the residuals of the levels before, in and after the stretch. Without correlation that is the
//! same. It is an estimate: of 50 records with ρ = 0.5, some 7 % show a change that is none (without it, 40 %).

use super::basics::Random;
use super::estimate::{Estimate, Neighbours, Uncertainty, lag_one};
use super::unpaired::LogLevel;
use std::ops::Range;

/// Fewest measurements of a level. Two could both be outliers.
pub const FEWEST: usize = 3;
/// Probability of a change that is none, in each range of independent values that is looked at.
const FALSE_ALARM: f64 = 0.01;
/// Permutations of a range: the smallest p-value that they can show is a tenth of [`FALSE_ALARM`].
const PERMUTATIONS: u32 = 999;
/// Only the last of a longer series are looked at: the time grows with the square.
pub const MOST: usize = 512;

/// A change between two levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Index of the first measurement of the new level.
    pub at: usize,
    /// p-value of the permutations.
    pub p_value: f64,
    /// The new level ÷ the one before − 1, with the interval of Welch's t test.
    pub change: Estimate,
}

/// The changes in the level of a series of logarithms, in order. A series of more than [`MOST`] is looked at from there on.
pub fn change_points(logs: &[f64]) -> Vec<Change> {
    let skipped = logs.len().saturating_sub(MOST);
    let series = logs.get(skipped..).unwrap_or_default();
    let mut cuts = Vec::new();
    split(series, 0..series.len(), &mut cuts);
    cuts.sort_by_key(|(at, _)| *at);
    let ends = |place: usize| cuts.get(place).map_or(series.len(), |(at, _)| *at);
    let mut changes = Vec::new();
    for (place, (at, p_value)) in cuts.iter().enumerate() {
        let begin = place.checked_sub(1).map_or(0, ends);
        let before = level(series.get(begin..*at).unwrap_or_default());
        let after = level(series.get(*at..ends(place + 1)).unwrap_or_default());
        let change = after.since(&before, super::estimate::CONFIDENCE);
        changes.push(Change { at: at + skipped, p_value: *p_value, change });
    }
    changes
}

/// The mean of logarithms, and how far it may be off.
pub fn level(logs: &[f64]) -> LogLevel {
    let count = logs.len().max(1) as f64;
    let log = logs.iter().sum::<f64>() / count;
    let squares: f64 = logs.iter().map(|value| (value - log).powi(2)).sum();
    let error = (logs.len() > 1).then(|| Uncertainty::new((squares / (count - 1.0) / count).sqrt(), count - 1.0));
    LogLevel { log, error }
}

/// Where a further measurement of a level is expected, as a logarithm: mean ± t · sd · √(1 + 1/n); `None` with fewer than
/// [`FEWEST`].
pub fn expected(logs: &[f64]) -> Option<Range<f64>> {
    let level = level(logs);
    let error = level.error.filter(|_| logs.len() >= FEWEST)?;
    let of_one = error.standard_error * (logs.len() as f64 + 1.0).sqrt();
    let reach = Estimate::with_error(level.log, of_one, error.degrees_of_freedom);
    Some(reach.low?..reach.high?)
}

fn split(series: &[f64], range: Range<usize>, cuts: &mut Vec<(usize, f64)>) {
    let Some(values) = series.get(range.clone()) else { return };
    let Some((stretch, distance)) = farthest(values) else { return };
    let (head, mean) = (values.get(..stretch.start).unwrap_or_default(), level(values).log);
    let levels = [head, values.get(stretch.clone()).unwrap_or_default(), values.get(stretch.end..).unwrap_or_default()];
    let residuals = levels.iter().flat_map(|part| part.iter().map(|value| value - level(part).log));
    let means = levels.iter().filter(|part| !part.is_empty()).count();
    let correlation = lag_one(&residuals.collect::<Vec<f64>>(), means, Neighbours::Alike).correlation;
    let own = (1.0 - correlation * correlation).sqrt();
    // What each value adds to what it has of the one before it; the first has all of its own.
    let mut before = None;
    let innovation = |value: &f64| {
        before.replace(value - mean).map_or((value - mean) * own, |last| value - mean - correlation * last)
    };
    let mut innovations: Vec<f64> = values.iter().map(innovation).collect();
    let mut permuted = vec![0.0; values.len()];
    // The same permutations for the same record everywhere; another for each range.
    let mut random = Random((range.start * MOST + range.end) as u64);
    let most = (FALSE_ALARM * f64::from(PERMUTATIONS + 1)) as u32;
    let mut as_far = 0;
    for _ in 0..PERMUTATIONS {
        for last in (1..innovations.len()).rev() {
            innovations.swap(last, (random.part() * (last as f64 + 1.0)) as usize);
        }
        let mut last = None;
        for (value, innovation) in permuted.iter_mut().zip(&innovations) {
            *value = last.map_or(innovation / own, |last| innovation + correlation * last);
            last = Some(*value);
        }
        as_far += u32::from(farthest(&permuted).is_some_and(|(_, other)| other >= distance));
        if as_far >= most {
            return;
        }
    }
    let at = range.start + stretch.start;
    cuts.push((at, f64::from(as_far + 1) / f64::from(PERMUTATIONS + 1)));
    split(series, range.start..at, cuts);
    split(series, at..range.end, cuts);
}

/// The stretch with the largest distance from all that is before it, and that distance; `None` for a range that is too short or
/// constant.
///
/// For m values before a stretch of n, with the mean distance between the two and within each:
/// `Q = m·n/(m + n) · (2·between − within before − within stretch)`. Sums are updated from end to end.
fn farthest(values: &[f64]) -> Option<(Range<usize>, f64)> {
    // Sums of the distances within each head, and within the stretch from each place to the end that is looked at.
    let (mut heads, mut stretches) = (vec![0.0], Vec::with_capacity(values.len()));
    let mut best: Option<(Range<usize>, f64)> = None;
    for (last, value) in values.iter().enumerate() {
        let mut to_stretch = 0.0;
        for (within, other) in stretches.iter_mut().zip(values).rev() {
            to_stretch += f64::abs(value - other);
            *within += to_stretch;
        }
        stretches.push(0.0);
        let (end, all) = (last + 1, stretches.first().copied().unwrap_or(0.0));
        heads.push(all);
        let parts = heads.iter().zip(&stretches).enumerate().take((end + 1).saturating_sub(FEWEST)).skip(FEWEST);
        for (begin, (before, within)) in parts {
            let (m, n) = (begin as f64, (end - begin) as f64);
            let between = all - before - within;
            let distance = 2.0 / (m + n) * (between - before * n / (m - 1.0) - within * m / (n - 1.0));
            if distance > 0.0 && best.as_ref().is_none_or(|(_, most)| distance > *most) {
                best = Some((begin..end, distance));
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_distr::{Distribution, Normal, Pareto};
    use rand_pcg::Pcg64Mcg;

    fn noise(count: usize, spread: f64, random: &mut Pcg64Mcg) -> Vec<f64> {
        let normal = Normal::new(0.0, spread).unwrap();
        (0..count).map(|_| normal.sample(random)).collect()
    }

    #[test]
    fn a_change_is_found_where_it_is_with_its_size() {
        let random = &mut Pcg64Mcg::new(1);
        let mut series = noise(40, 0.01, random);
        series.iter_mut().skip(25).for_each(|value| *value += 1.05_f64.ln());
        let found = change_points(&series);
        assert_eq!(found.iter().map(|change| change.at).collect::<Vec<_>>(), [25]);
        assert_eq!(found[0].change.contains(0.05), Some(true), "{found:?}");
        assert_eq!(found[0].p_value, 0.001);
        series.iter_mut().skip(33).for_each(|value| *value -= 1.1_f64.ln());
        let found: Vec<usize> = change_points(&series).iter().map(|change| change.at).collect();
        assert_eq!(found, [25, 33]);
    }

    /// Of 50 measurements with 1 % of noise, ten are slower: found where it begins and where it ends.
    #[test]
    fn a_change_that_is_taken_back_is_found() {
        let random = &mut Pcg64Mcg::new(5);
        for slower in [1.05_f64, 2.0] {
            let found = (0..40).filter(|_| {
                let mut series = noise(50, 0.01, random);
                series[20..30].iter_mut().for_each(|value| *value += slower.ln());
                let found: Vec<usize> = change_points(&series).iter().map(|change| change.at).collect();
                found.starts_with(&[20, 30])
            });
            assert!(found.count() >= 38, "× {slower}");
        }
    }

    /// A machine that warms and cools slowly is no change: of ordinary permutations, 27 and 40 % would say so.
    #[test]
    fn neighbours_that_are_alike_are_no_change() {
        let random = &mut Pcg64Mcg::new(6);
        for (count, most) in [(30, 36), (100, 18)] {
            let alarms = (0..200).filter(|_| {
                let mut before = 0.0;
                let alike = noise(count + 20, 0.01, random).into_iter().map(|own| {
                    before = 0.5 * before + own;
                    before
                });
                !change_points(&alike.skip(20).collect::<Vec<_>>()).is_empty()
            });
            let alarms = alarms.count();
            assert!(alarms <= most, "{alarms} of 200 series of {count}");
        }
    }

    #[test]
    fn a_series_without_a_change_has_none() {
        let random = &mut Pcg64Mcg::new(2);
        let alarms = (0..300).filter(|_| !change_points(&noise(30, 0.05, random)).is_empty()).count();
        assert!(alarms <= 9, "{alarms} of 300");
        let pareto = Pareto::new(1.0, 2.5).unwrap();
        let tails = |random: &mut Pcg64Mcg| (0..30).map(|_| f64::ln(pareto.sample(random))).collect::<Vec<_>>();
        let alarms = (0..300).filter(|_| !change_points(&tails(random)).is_empty()).count();
        assert!(alarms <= 9, "{alarms} of 300 with a long tail");
        assert!(change_points(&[0.5; 40]).is_empty() && change_points(&[]).is_empty());
        // An outlier is no level, nor are two.
        let mut outliers = noise(30, 0.01, random);
        outliers[11..13].fill(1.0);
        assert!(change_points(&outliers).is_empty());
    }

    #[test]
    fn a_long_series_is_looked_at_from_its_end() {
        let random = &mut Pcg64Mcg::new(3);
        let mut series = noise(MOST + 100, 0.01, random);
        series.iter_mut().skip(MOST + 50).for_each(|value| *value += 0.1);
        assert_eq!(change_points(&series).iter().map(|change| change.at).collect::<Vec<_>>(), [MOST + 50]);
    }

    /// By hand, of 0, 0, 0, 1, 1, 1: between 1, within 0, and 3 · 3 / 6 · 2. What comes back does not make it less.
    #[test]
    fn the_distance_is_that_of_the_paper() {
        assert_eq!(farthest(&[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]), Some((3..6, 3.0)));
        assert_eq!(farthest(&[0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0]), Some((3..6, 3.0)));
        // 2, 4, 6 and 3, 8, 10: between 35/9, within 8/3 and 14/3, so 1.5 · (70/9 − 22/3).
        let (stretch, distance) = farthest(&[2.0, 4.0, 6.0, 3.0, 8.0, 10.0]).unwrap();
        assert!(stretch == (3..6) && (distance - 2.0 / 3.0).abs() < 1e-12, "{stretch:?} {distance}");
        assert_eq!(farthest(&[0.0, 0.0, 1.0, 1.0, 1.0]), None);
    }

    #[test]
    fn one_more_of_a_level_is_expected_near_it() {
        let random = &mut Pcg64Mcg::new(4);
        let inside = (0..1000).filter(|_| {
            let series = noise(9, 0.02, random);
            let (last, earlier) = series.split_last().unwrap();
            expected(earlier).unwrap().contains(last)
        });
        assert!((920..980).contains(&inside.count()));
        assert_eq!(expected(&[0.0, 0.1]), None);
    }
}
