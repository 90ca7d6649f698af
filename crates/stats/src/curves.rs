//! Curves through the costs or rates of a sweep: a cost as a line in the block size, and a rate as Gunther's Universal Scalability Law
//! of the number of submitters.
//!
//! The input is places on an axis with their rounds; the result is coefficients with delete-one-round jackknife intervals, and the
//! deviation of the places from the curve. Squares are weighted by 1/value², because what makes values vary (another layout, a slower
//! moment) changes them by a factor; without weights, the largest place alone would determine the curve.

use super::basics::jackknife;
use super::estimate::{Estimate, Pair};

/// A place on an axis, and its rounds.
pub type Place = (f64, Vec<Pair>);

/// Two sizes always lie on a line; a third can contradict it.
const FEWEST_SIZES: usize = 3;
/// Fewest numbers of submitters: three coefficients, and two that can contradict them.
pub const FEWEST_POINTS: usize = 5;

/// cost(b) = per_io + per_byte·b.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostLine {
    /// Cost of an I/O independent of its size, in the numerator's unit.
    pub per_io: Estimate,
    /// Cost of each byte, in the numerator's unit.
    pub per_byte: Estimate,
    /// Maximum deviation of a size's cost from the line, as a fraction of that cost. If it is far above the cells' own
    /// errors, the cost is not linear in the size (a cache overflows, a packet fills), and the coefficients describe no
    /// size well.
    pub misfit: f64,
}

/// The line through the costs of at least three sizes, in bytes. A round has the cost of its I/Os (numerator) and their number.
///
/// `None` with fewer sizes, a cost that is not positive, or sizes with different numbers of rounds.
pub fn cost_line(sizes: &[Place]) -> Option<CostLine> {
    let fit = |left_out: Option<usize>| {
        let row = |(bytes, cost): (f64, f64)| [1.0 / cost, bytes / cost, 0.0];
        let rows: Vec<[f64; 3]> = ratios(sizes, left_out, FEWEST_SIZES)?.into_iter().map(row).collect();
        least_squares(&rows, [true, true, false])
    };
    let [per_io, per_byte, _] = jackknife(rounds(sizes)?, fit)?;
    let misfit = misfit(sizes, |bytes| per_io.value + per_byte.value * bytes)?;
    Some(CostLine { per_io, per_byte, misfit })
}

/// X(N) = λN ÷ (1 + σ(N − 1) + κN(N − 1)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalability {
    /// λ: I/Os per second of one submitter.
    pub alone: Estimate,
    /// σ: the part of the work that is serial.
    pub contention: Estimate,
    /// κ: the work that each pair adds, as a part of the work of one.
    pub coherency: Estimate,
    /// Maximum deviation of a rate from the curve, as a fraction of that rate.
    pub misfit: f64,
}

impl Scalability {
    /// The number of submitters with the highest rate; `None` unless the rate surely falls: κ > 0, and 0 is not in its
    /// interval. Noise makes κ positive in half of all fits of a rate that never falls.
    pub fn peak(&self) -> Option<f64> {
        let peak = ((1.0 - self.contention.value) / self.coherency.value).sqrt();
        let falls = self.coherency.value > 0.0 && self.coherency.low.is_some_and(|low| low > 0.0);
        // If all work is serial, one submitter is the fastest.
        let peak = if self.contention.value >= 1.0 { 1.0 } else { peak };
        (falls && peak.is_finite()).then_some(peak.max(1.0))
    }
}

/// The curve X(N) = λN ÷ (1 + σ(N − 1) + κN(N − 1)) through the rates of at least five numbers of submitters: λ is the rate of one
/// submitter, σ the part of the work that only one can do at a time (contention), κ the work that each pair of submitters adds (coherency).
/// A round has I/Os (numerator) and seconds. No number may exceed that of the CPUs: beyond, submitters wait for CPUs.
///
/// N ÷ X = (1 + σ(N − 1) + κN(N − 1)) ÷ λ is linear in three coefficients, which are fitted by least squares with σ, κ ≥ 0. `None` with fewer
/// points, a rate of 0, or points with different numbers of rounds.
pub fn scalability(numbers: &[Place]) -> Option<Scalability> {
    let best = fit(&ratios(numbers, None, FEWEST_POINTS)?, true)?;
    // A coefficient at its limit does not move when a round is left out: its error is that of a fit without limits.
    let free = jackknife(rounds(numbers)?, |left_out| fit(&ratios(numbers, left_out, FEWEST_POINTS)?, false))?;
    let [alone, contention, coherency] = [0, 1, 2].map(|place| {
        let value = best.get(place).copied().unwrap_or(f64::NAN);
        let half = free.get(place).and_then(Estimate::half_width);
        Estimate { value, low: half.map(|half| value - half), high: half.map(|half| value + half) }
    });
    let misfit = misfit(numbers, |submitters| {
        let more = submitters - 1.0;
        alone.value * submitters / (1.0 + contention.value * more + coherency.value * submitters * more)
    })?;
    let part = |estimate: Estimate| Estimate { low: estimate.low.map(|low| low.max(0.0)), ..estimate };
    Some(Scalability { alone, contention: part(contention), coherency: part(coherency), misfit })
}

/// How many rounds each place has; `None` if they differ.
fn rounds(places: &[Place]) -> Option<usize> {
    let rounds = places.first()?.1.len();
    places.iter().all(|(_, others)| others.len() == rounds).then_some(rounds)
}

/// The places, each with its ratio of sums; `None` if one is not positive, or fewer than `fewest` differ.
fn ratios(places: &[Place], left_out: Option<usize>, fewest: usize) -> Option<Vec<(f64, f64)>> {
    let ratio = |(at, rounds): &Place| {
        let kept = rounds.iter().enumerate().filter(|(round, _)| Some(*round) != left_out);
        let Pair { numerator, denominator } = Pair::sum(kept.map(|(_, pair)| *pair));
        (numerator > 0.0 && denominator > 0.0).then_some((*at, numerator / denominator))
    };
    let ratios = places.iter().map(ratio).collect::<Option<Vec<_>>>()?;
    let mut places: Vec<f64> = ratios.iter().map(|(at, _)| *at).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    (places.len() >= fewest).then_some(ratios)
}

/// The largest distance of a place from a curve, as a fraction of its value.
fn misfit(places: &[Place], curve: impl Fn(f64) -> f64) -> Option<f64> {
    let distance = |(at, value): (f64, f64)| (curve(at) / value - 1.0).abs();
    Some(ratios(places, None, 0)?.into_iter().map(distance).fold(0.0, f64::max))
}

/// λ, σ and κ; with `limits`, of the fits with σ, κ or both left out, the best one in which none is negative.
fn fit(rates: &[(f64, f64)], limits: bool) -> Option<[f64; 3]> {
    // With the weights, each row is to give 1.
    let row = |&(submitters, rate): &(f64, f64)| {
        let weight = rate / submitters;
        [weight, weight * (submitters - 1.0), weight * submitters * (submitters - 1.0)]
    };
    let rows: Vec<[f64; 3]> = rates.iter().map(row).collect();
    let left = |coefficients: &[f64; 3]| -> f64 {
        rows.iter().map(|row| (1.0 - row.iter().zip(coefficients).map(|(x, b)| x * b).sum::<f64>()).powi(2)).sum()
    };
    let subsets = [[true, true, true], [true, true, false], [true, false, true], [true, false, false]];
    let subsets = subsets.iter().take(if limits { subsets.len() } else { 1 });
    let fits = subsets.filter_map(|used| least_squares(&rows, *used));
    let possible = fits.filter(|[one, serial, pairs]| *one > 0.0 && (!limits || *serial >= 0.0 && *pairs >= 0.0));
    let [one, serial, pairs] = possible.min_by(|one, other| left(one).total_cmp(&left(other)))?;
    let found = [1.0 / one, serial / one, pairs / one];
    found.iter().all(|value| value.is_finite()).then_some(found)
}

/// The coefficients of the used columns that bring each row nearest to 1; the others are 0. By the normal equations, scaled to
/// a diagonal of 1, and Gauss's elimination.
fn least_squares(rows: &[[f64; 3]], used: [bool; 3]) -> Option<[f64; 3]> {
    let column = |place: usize| rows.iter().filter_map(move |row| row.get(place).copied());
    let scales = [0, 1, 2].map(|place| column(place).map(|value| value * value).sum::<f64>().sqrt());
    let mut equations: Vec<Vec<f64>> = Vec::new();
    let places: Vec<usize> = (0..3).filter(|place| used.get(*place) == Some(&true)).collect();
    for &one in &places {
        let scale = |place: usize| scales.get(place).copied().unwrap_or(0.0);
        let product = |other: &usize| {
            column(one).zip(column(*other)).map(|(a, b)| a * b).sum::<f64>() / scale(one) / scale(*other)
        };
        let mut equation: Vec<f64> = places.iter().map(product).collect();
        equation.push(column(one).sum::<f64>() / scale(one));
        equations.push(equation);
    }
    let solved = eliminate(equations)?;
    let mut coefficients = [0.0; 3];
    for (place, value) in places.into_iter().zip(solved) {
        let (coefficient, scale) = (coefficients.get_mut(place)?, scales.get(place)?);
        *coefficient = value / scale;
    }
    Some(coefficients)
}

/// Solves symmetric positive definite equations, each with its right side at the end. `None` if they are singular.
fn eliminate(mut equations: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    for step in 0..equations.len() {
        let pivot = equations.get(step)?.clone();
        let divisor = *pivot.get(step)?;
        if divisor.abs() < 1e-12 {
            return None;
        }
        for (number, equation) in equations.iter_mut().enumerate() {
            let factor = if number == step { 1.0 - 1.0 / divisor } else { equation.get(step)? / divisor };
            equation.iter_mut().zip(&pivot).for_each(|(value, pivot)| *value -= factor * pivot);
        }
    }
    equations.iter().map(|equation| equation.last().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_distr::{Distribution, StandardNormal};
    use rand_pcg::Pcg64Mcg;
    use rand_pcg::rand_core::SeedableRng;

    const SIZES: [f64; 4] = [512.0, 4096.0, 16384.0, 65536.0];

    /// Costs of `rounds` rounds, each with its factors on a thousand I/Os of every size.
    fn cells(per_io: f64, per_byte: f64, factors: &[[f64; 4]]) -> Vec<(f64, Vec<Pair>)> {
        let cell = |(index, &bytes): (usize, &f64)| {
            let cost = (per_io + per_byte * bytes) * 1000.0;
            (bytes, factors.iter().map(|f| Pair { numerator: cost * f[index], denominator: 1000.0 }).collect())
        };
        SIZES.iter().enumerate().map(cell).collect()
    }

    #[test]
    fn a_line_is_found_exactly() {
        let found = cost_line(&cells(3000.0, 0.25, &[[1.0; 4]; 5])).unwrap();
        assert!((found.per_io.value - 3000.0).abs() < 1e-6 && (found.per_byte.value - 0.25).abs() < 1e-10);
        assert!(found.per_io.half_width().unwrap() < 1e-6);
        assert!(found.misfit < 1e-12);
    }

    /// numpy.linalg.lstsq of the rows divided by their costs, and its jackknife, numpy 2.4.6 and scipy.stats.t of scipy
    /// 1.17.1. Five rounds of a thousand I/Os of each size.
    #[test]
    fn golden() {
        let kilocycles = [
            [3100.0, 4200.0, 7000.0, 19100.0],
            [3300.0, 4000.0, 7300.0, 19900.0],
            [3000.0, 4100.0, 6900.0, 18800.0],
            [3200.0, 4300.0, 7200.0, 20200.0],
            [3150.0, 4050.0, 7100.0, 19400.0],
        ];
        let cell = |(index, &bytes): (usize, &f64)| {
            let pair = |row: &[f64; 4]| Pair { numerator: row[index] * 1000.0, denominator: 1000.0 };
            (bytes, kilocycles.iter().map(pair).collect())
        };
        let found = cost_line(&SIZES.iter().enumerate().map(cell).collect::<Vec<_>>()).unwrap();
        for (found, expected) in [
            (found.per_io.value, 3046.223933348004),
            (found.per_io.half_width().unwrap(), 81.4385221612972),
            (found.per_byte.value, 0.25045190368662745),
            (found.per_byte.half_width().unwrap(), 0.007781670827654667),
        ] {
            assert!((found / expected - 1.0).abs() < 1e-9, "{found} is not {expected}");
        }
    }

    #[test]
    fn a_bend_raises_the_misfit() {
        let found = cost_line(&cells(3000.0, 0.25, &[[1.0, 1.0, 1.0, 1.5]; 5])).unwrap();
        assert!(found.misfit > 0.1, "{found:?}");
    }

    #[test]
    fn too_little_for_a_line() {
        let all = cells(3000.0, 0.25, &[[1.0; 4]; 5]);
        assert_eq!(cost_line(&all[..2]), None);
        assert_eq!(cost_line(&[all[0].clone(), all[0].clone(), all[1].clone()]), None, "two sizes, one of them twice");
        assert_eq!(cost_line(&[]), None);
        assert_eq!(cost_line(&cells(-3000.0, 0.25, &[[1.0; 4]; 5])), None, "a cost below nothing");
        let once = cost_line(&cells(3000.0, 0.25, &[[1.0; 4]])).unwrap();
        assert_eq!(once.per_io.low, None, "one round");
    }

    const NUMBERS: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 12.0, 16.0];

    fn rate([alone, serial, pairs]: [f64; 3], submitters: f64) -> f64 {
        alone * submitters / (1.0 + serial * (submitters - 1.0) + pairs * submitters * (submitters - 1.0))
    }

    /// A second at each number in each of ten rounds. Rates of a round share a factor, and each has one of its own.
    fn measured(truth: [f64; 3], noise: f64, seed: u64) -> Vec<(f64, Vec<Pair>)> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut factor = || -> f64 {
            let normal: f64 = StandardNormal.sample(&mut random);
            (noise * normal).exp()
        };
        let rounds: Vec<f64> = (0..10).map(|_| factor()).collect();
        NUMBERS
            .iter()
            .map(|&submitters| {
                let pair =
                    |round: &f64| Pair { numerator: rate(truth, submitters) * round * factor(), denominator: 1.0 };
                (submitters, rounds.iter().map(pair).collect())
            })
            .collect()
    }

    #[test]
    fn a_curve_is_found_exactly() {
        for truth in [[1000.0, 0.1, 0.01], [5.0, 0.0, 0.002], [70_000.0, 0.4, 0.0], [3.0, 0.0, 0.0]] {
            let found = scalability(&measured(truth, 0.0, 1)).unwrap();
            let values = [found.alone, found.contention, found.coherency].map(|estimate| estimate.value);
            let near = values.iter().zip(truth).all(|(found, truth)| (found - truth).abs() < 1e-6 * truth.max(1.0));
            assert!(near && found.misfit < 1e-6, "{truth:?} {found:?}");
        }
        let peak = scalability(&measured([1000.0, 0.1, 0.01], 0.0, 1)).unwrap().peak().unwrap();
        assert!((peak - 90.0_f64.sqrt()).abs() < 1e-3, "{peak}");
    }

    #[test]
    fn truths_are_in_their_intervals() {
        const SERIES: u64 = 400;
        let at_the_limits = [[1000.0, 0.1, 0.0002], [1000.0, 0.002, 0.01], [1000.0, 0.0, 0.0]];
        for truth in [[1000.0, 0.1, 0.01], [1000.0, 0.3, 0.002], [1000.0, 0.02, 0.02]].into_iter().chain(at_the_limits)
        {
            let mut covered = [0; 3];
            for seed in 0..SERIES {
                let found = scalability(&measured(truth, 0.02, seed)).unwrap();
                let estimates = [found.alone, found.contention, found.coherency];
                for ((covered, estimate), truth) in covered.iter_mut().zip(estimates).zip(truth) {
                    *covered += u64::from(estimate.contains(truth) == Some(true));
                }
            }
            assert!(covered.iter().all(|covered| *covered * 100 >= SERIES * 92), "{truth:?}: {covered:?} of {SERIES}");
        }
    }

    /// Noise makes κ positive in half of the fits of a rate that never falls.
    #[test]
    fn a_rate_that_never_falls_has_no_peak() {
        const SERIES: u64 = 400;
        let peaks = |truth| {
            (0..SERIES).filter(|seed| scalability(&measured(truth, 0.02, *seed)).unwrap().peak().is_some()).count()
        };
        assert!(peaks([1000.0, 0.1, 0.0]) as u64 * 100 <= SERIES * 5, "{} of {SERIES}", peaks([1000.0, 0.1, 0.0]));
        assert!(peaks([1000.0, 0.02, 0.02]) as u64 == SERIES);
    }

    #[test]
    fn too_little_is_nothing() {
        let all = measured([1000.0, 0.1, 0.01], 0.0, 1);
        assert!(scalability(&all[..4]).is_none(), "four points");
        assert!(scalability(&[]).is_none());
        let mut zero = all.clone();
        zero[2].1.iter_mut().for_each(|pair| pair.numerator = 0.0);
        assert!(scalability(&zero).is_none(), "a rate of 0");
        let mut uneven = all;
        uneven[1].1.pop();
        assert!(scalability(&uneven).is_none(), "a round is missing");
    }

    proptest! {
        #[test]
        fn a_unit_a_thousand_times_finer_changes_only_the_unit(
            factors in proptest::collection::vec(proptest::array::uniform4(0.9f64..1.1), 2..12),
        ) {
            let (plain, fine) = (cost_line(&cells(3000.0, 0.25, &factors)), cost_line(&cells(3e6, 250.0, &factors)));
            let (plain, fine) = (plain.unwrap(), fine.unwrap());
            for (plain, fine) in [(plain.per_io, fine.per_io), (plain.per_byte, fine.per_byte)] {
                let plain = plain.scaled(1000.0);
                prop_assert!((plain.value - fine.value).abs() <= 1e-9 * plain.value.abs());
                let (plain_half, fine_half) = (plain.half_width().unwrap(), fine.half_width().unwrap());
                prop_assert!((plain_half - fine_half).abs() <= 1e-6 * plain_half + 1e-9 * plain.value.abs());
            }
        }
    }
}
