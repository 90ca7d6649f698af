//! Finds steps of a rate: splits a series of readings into ranges with one level each.
//!
//! A mean over two regimes (a file read from disk, then from memory) describes neither. The input is readings in the
//! order of time. The result is ranges of them; one range if there is one level. Noise, a few outliers, and a load that
//! comes and goes are not regimes: the levels must rise or fall throughout, by half at least.

use super::basics::quantile;
use std::ops::Range;

/// Minimum factor between neighbouring levels. The noise of a small virtual machine stays below it (Allan deviation 6
/// %, docs/method/comparing.md); the difference between page cache hits and misses is far above.
pub const LEAST_STEP: f64 = 1.5;
/// Minimum number of readings of a regime, because a single outlier is a stall.
const FEWEST: usize = 2;
/// Longer series are merged to this number of points, so that an hour of rounds takes milliseconds.
const MOST_POINTS: usize = 128;
/// Minimum rate relative to the typical one, so that a reading of 0 has a logarithm.
const LEAST_RATE: f64 = 1e-3;
/// Minimum fraction of a regime's readings that are closer to its own level than to its neighbour's.
const PURE: f64 = 0.8;

/// The ranges of `rates` with one level each. They are contiguous and cover all readings.
///
/// The partition minimises Σ|ln rate − median of its range| + β · ranges by dynamic programming. Absolute deviations
/// are used so that a single outlier does not get its own range (β is three times the least step, or six times the
/// median difference of neighbours if that is more). Neighbours are then merged, the most similar first, until levels
/// differ by [`LEAST_STEP`], rise or fall throughout, and are pure.
pub fn regimes(rates: &[f64]) -> Vec<Range<usize>> {
    let whole = || std::iter::once(0..rates.len()).collect();
    let sound = rates.iter().all(|rate| rate.is_finite() && *rate >= 0.0);
    let typical = median(&mut rates.to_vec());
    if rates.len() < 2 * FEWEST || !sound || typical <= 0.0 {
        return whole();
    }
    let joined = rates.len().div_ceil(MOST_POINTS);
    let log = |rates: &[f64]| {
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        mean.max(typical * LEAST_RATE).ln()
    };
    let points: Vec<f64> = rates.chunks(joined).map(log).collect();
    let mut cuts = cheapest_cuts(&points);
    while let Some(place) = worst_border(&points, &cuts) {
        cuts.remove(place);
    }
    let ends = cuts.iter().skip(1).map(|cut| cut * joined).chain([rates.len()]);
    cuts.iter().map(|cut| cut * joined).zip(ends).map(|(begin, end)| begin..end).collect()
}

/// The beginnings of the ranges, the first at 0.
fn cheapest_cuts(points: &[f64]) -> Vec<usize> {
    let mut differences: Vec<f64> =
        points.iter().zip(points.iter().skip(1)).map(|(one, next)| (next - one).abs()).collect();
    let penalty = (3.0 * LEAST_STEP.ln()).max(6.0 * median(&mut differences));
    // The lowest cost of partitioning the points before each index, and the beginning of its last range.
    let mut best: Vec<(f64, usize)> = vec![(f64::INFINITY, 0); points.len() + 1];
    if let Some(first) = best.first_mut() {
        *first = (-penalty, 0);
    }
    for begin in 0..points.len() {
        let Some(&(before, _)) = best.get(begin) else { break };
        let mut sorted: Vec<f64> = Vec::with_capacity(points.len() - begin);
        for (length, &point) in (1..).zip(points.get(begin..).unwrap_or_default()) {
            let place = sorted.partition_point(|other| *other < point);
            sorted.insert(place, point);
            let middle = sorted.get(length / 2).copied().unwrap_or(point);
            let cost = before + penalty + sorted.iter().map(|other| (other - middle).abs()).sum::<f64>();
            if let Some(place) = best.get_mut(begin + length)
                && length >= FEWEST
                && cost < place.0
            {
                *place = (cost, begin);
            }
        }
    }
    let mut cuts = Vec::new();
    let mut end = points.len();
    while end > 0 {
        end = best.get(end).map_or(0, |(_, begin)| *begin);
        cuts.push(end);
    }
    cuts.reverse();
    cuts
}

/// The weakest border between two ranges, as an index into `cuts`; `None` if all of them are valid.
fn worst_border(points: &[f64], cuts: &[usize]) -> Option<usize> {
    let ends = cuts.iter().skip(1).copied().chain([points.len()]);
    let ranges: Vec<&[f64]> =
        cuts.iter().zip(ends).map(|(begin, end)| points.get(*begin..end).unwrap_or_default()).collect();
    let levels: Vec<f64> = ranges.iter().map(|range| median(&mut range.to_vec())).collect();
    let steps: Vec<f64> = levels.iter().zip(levels.iter().skip(1)).map(|(one, next)| next - one).collect();
    let least = |places: &dyn Fn(usize) -> bool| {
        let size = |place: &usize| steps.get(*place).map_or(0.0, |step| step.abs());
        (0..steps.len()).filter(|place| places(*place)).min_by(|one, other| size(one).total_cmp(&size(other)))
    };
    let rises = steps.iter().any(|step| *step > 0.0) && steps.iter().any(|step| *step < 0.0);
    let small = |place: usize| steps.get(place).is_some_and(|step| step.abs() < LEAST_STEP.ln());
    let impure = |place: usize| {
        let (Some(one), Some(next), Some(low), Some(high)) =
            (ranges.get(place), ranges.get(place + 1), levels.get(place), levels.get(place + 1))
        else {
            return false;
        };
        let part = |range: &[f64], own: f64, other: f64| {
            let nearer = range.iter().filter(|point| (*point - own).abs() <= (*point - other).abs()).count();
            nearer as f64 / range.len().max(1) as f64
        };
        part(one, *low, *high).min(part(next, *high, *low)) < PURE
    };
    let worst = least(&small).or_else(|| rises.then(|| least(&|_| true)).flatten()).or_else(|| least(&impure));
    worst.map(|place| place + 1)
}

/// The upper median; 0 if empty. Reorders the values.
fn median(values: &mut [f64]) -> f64 {
    quantile(values, 0.5).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_distr::{Distribution, Normal};
    use rand_pcg::Pcg64Mcg;

    fn levels(levels: &[(f64, usize)]) -> Vec<f64> {
        levels
            .iter()
            .flat_map(|(level, count)| (0..*count).map(move |i| level * (1.0 + 0.02 * (i % 3) as f64)))
            .collect()
    }

    fn is_one(rates: &[f64]) -> bool {
        regimes(rates).len() == 1
    }

    #[test]
    fn a_cold_start_is_a_regime_of_its_own() {
        assert_eq!(regimes(&levels(&[(12.6e3, 8), (1.3e6, 20)])), [0..8, 8..28]);
        assert_eq!(regimes(&levels(&[(12.6e3, 2), (1.3e6, 20)])), [0..2, 2..22]);
        assert_eq!(regimes(&levels(&[(1.3e6, 20), (12.6e3, 8)])), [0..20, 20..28], "the cache is gone");
        assert_eq!(regimes(&levels(&[(10e3, 5), (50e3, 5), (1e6, 5)])), [0..5, 5..10, 10..15]);
    }

    #[test]
    fn one_level_is_one_regime() {
        assert!(is_one(&levels(&[(1e6, 30)])));
        assert!(is_one(&levels(&[(1e6, 15), (1.3e6, 15)])), "less than the least step");
        assert!(is_one(&[5.0; 3]));
        assert!(is_one(&[0.0; 30]));
        assert!(is_one(&[]));
    }

    #[test]
    fn stalls_and_intermittent_loads_are_not_regimes() {
        let mut stalls = levels(&[(1e6, 30)]);
        stalls[7] = 0.0;
        stalls[20] = 5e4;
        assert!(is_one(&stalls));
        assert!(is_one(&levels(&[(1e6, 10), (1e5, 5), (1e6, 10)])), "it came back");
        let alternating: Vec<f64> = (0..40).map(|i| if i / 4 % 2 == 0 { 1e6 } else { 1e5 }).collect();
        assert!(is_one(&alternating));
    }

    #[test]
    fn a_cold_start_is_found_before_an_uneven_rest() {
        let uneven = levels(&[(12.6e3, 8), (1.3e6, 10), (0.7e6, 6), (1.3e6, 10)]);
        assert_eq!(regimes(&uneven), [0..8, 8..34]);
    }

    #[test]
    fn a_slow_drift_has_a_first_and_a_last_level() {
        let drift: Vec<f64> = (0..60).map(|i| 1e4 * 1.08_f64.powi(i)).collect();
        let found = regimes(&drift);
        assert!((2..=8).contains(&found.len()), "{found:?}");
        assert_eq!((found[0].start, found[found.len() - 1].end), (0, 60));
    }

    #[test]
    fn many_rounds_are_cut_where_the_step_is_or_a_point_beside_it() {
        let found = regimes(&levels(&[(1e4, 500), (1e6, 1500)]));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].end.abs_diff(500) <= 16, "{found:?}");
    }

    /// Rates with the noise of this machine are one regime: white noise, and noise that wanders (AR(1), 0.9).
    #[test]
    fn noise_is_not_a_regime() {
        let mut random = Pcg64Mcg::new(7);
        let normal = Normal::new(0.0, 1.0).unwrap();
        for (spread, memory, most) in [(0.06, 0.0, 0), (0.25, 0.0, 5), (0.06, 0.9, 0), (0.1, 0.9, 5)] {
            let mut alarms = 0;
            for _ in 0..500 {
                let mut state = 0.0;
                let series: Vec<f64> = (0..60)
                    .map(|_| {
                        let fresh: f64 = normal.sample(&mut random);
                        state = memory * state + (1.0_f64 - memory * memory).sqrt() * fresh;
                        (spread * state).exp()
                    })
                    .collect();
                alarms += usize::from(regimes(&series).len() > 1);
            }
            assert!(alarms <= most, "{alarms} of 500 at {spread}, {memory}");
        }
    }

    proptest! {
        #[test]
        fn ranges_meet_and_cover_everything(rates in proptest::collection::vec(0.0_f64..1e7, 0..300)) {
            let found = regimes(&rates);
            let mut end = 0;
            for range in &found {
                prop_assert_eq!(range.start, end);
                end = range.end;
            }
            prop_assert_eq!(end, rates.len());
        }
    }
}
