//! Finds where the level of a series of measurements changed: a benchmark over weeks.
//!
//! E-divisive (Matteson and James, 2014) with the energy distance of exponent 1: the split of a range with the largest distance
//! between what is before and after it, if hardly any permutation of the range has one that is as far apart; then the same for both
//! parts. Ranks of distances make no assumption about the shape of the noise, and an outlier is no level.

use super::estimate::Estimate;
use super::random::Random;
use super::uncertainty::Uncertainty;
use super::unpaired::LogLevel;
use std::ops::Range;

/// Fewest measurements of a level. Two could both be outliers.
pub const FEWEST: usize = 3;
/// Probability of a change that is none, in each range that is looked at.
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
    let Some((place, distance)) = farthest(values) else { return };
    // The same permutations for the same record everywhere; another for each range.
    let mut random = Random((range.start * MOST + range.end) as u64);
    let mut shuffled = values.to_vec();
    let most = (FALSE_ALARM * f64::from(PERMUTATIONS + 1)) as u32;
    let mut as_far = 0;
    for _ in 0..PERMUTATIONS {
        for last in (1..shuffled.len()).rev() {
            shuffled.swap(last, (random.part() * (last as f64 + 1.0)) as usize);
        }
        as_far += u32::from(farthest(&shuffled).is_some_and(|(_, other)| other >= distance));
        if as_far >= most {
            return;
        }
    }
    let at = range.start + place;
    cuts.push((at, f64::from(as_far + 1) / f64::from(PERMUTATIONS + 1)));
    split(series, range.start..at, cuts);
    split(series, at..range.end, cuts);
}

/// The split with the largest distance between its two parts, and that distance; `None` for a range that is too short or constant.
///
/// For a split after m of N values, with the mean distance between the parts and within each:
/// `Q = m·n/N · (2·between − within before − within after)`. Sums are updated from split to split.
fn farthest(values: &[f64]) -> Option<(usize, f64)> {
    let all: f64 = values.iter().enumerate().map(|(i, one)| distances(*one, values.get(..i).unwrap_or_default())).sum();
    let (mut before, mut between) = (0.0, 0.0);
    let mut best: Option<(usize, f64)> = None;
    for (place, value) in values.iter().enumerate() {
        let (head, tail) = values.split_at_checked(place)?;
        let (to_head, to_tail) = (distances(*value, head), distances(*value, tail));
        before += to_head;
        between += to_tail - to_head;
        let (m, n) = (place + 1, values.len() - place - 1);
        if m < FEWEST || n < FEWEST {
            continue;
        }
        let pairs = |count: usize| (count * (count - 1) / 2) as f64;
        let (m_n, after) = ((m * n) as f64, all - before - between);
        let apart = 2.0 * between / m_n - before / pairs(m) - after / pairs(n);
        let distance = m_n / values.len() as f64 * apart;
        if distance > 0.0 && best.is_none_or(|(_, most)| distance > most) {
            best = Some((m, distance));
        }
    }
    best
}

fn distances(from: f64, to: &[f64]) -> f64 {
    to.iter().map(|other| (from - other).abs()).sum()
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
        outliers[11] = 1.0;
        outliers[12] = 1.0;
        assert!(change_points(&outliers).is_empty());
    }

    #[test]
    fn a_long_series_is_looked_at_from_its_end() {
        let random = &mut Pcg64Mcg::new(3);
        let mut series = noise(MOST + 100, 0.01, random);
        series.iter_mut().skip(MOST + 50).for_each(|value| *value += 0.1);
        assert_eq!(change_points(&series).iter().map(|change| change.at).collect::<Vec<_>>(), [MOST + 50]);
    }

    /// By hand, of 0, 0, 0, 1, 1, 1: between 1, within 0, and 3 · 3 / 6 · 2.
    #[test]
    fn the_distance_is_that_of_the_paper() {
        assert_eq!(farthest(&[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]), Some((3, 3.0)));
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
