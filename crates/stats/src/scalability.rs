//! How a rate grows with the number of submitters: Gunther's Universal Scalability Law.
//!
//! X(N) = λN ÷ (1 + σ(N − 1) + κN(N − 1)): λ is the rate of one submitter, σ the part of the work that only one can do at a
//! time (contention), κ the work that each pair of submitters adds (coherency). The input is rates at several N with their
//! rounds; the result is the coefficients with intervals.

use super::basics::jackknife;
use super::estimate::Estimate;
use super::ratio::Pair;

/// Fewest numbers of submitters: three coefficients, and two that can contradict them.
pub const FEWEST_POINTS: usize = 5;

/// A number of submitters.
#[derive(Clone, Copy, Debug)]
pub struct LoadPoint<'a> {
    /// How many. No more than CPUs: beyond, they wait for CPUs, which the law does not describe.
    pub submitters: f64,
    /// I/Os (numerator) and seconds (denominator) in each round.
    pub rounds: &'a [Pair],
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

/// The curve through the rates of at least five numbers of submitters, with delete-one-round jackknife intervals.
///
/// N ÷ X = (1 + σ(N − 1) + κN(N − 1)) ÷ λ is linear in three coefficients, which are fitted by least squares with σ, κ ≥ 0.
/// Squares are weighted by (X ÷ N)², because errors of rates are factors. `None` with fewer points, a rate of 0, or points with
/// different numbers of rounds.
pub fn scalability(points: &[LoadPoint]) -> Option<Scalability> {
    let rounds = points.first()?.rounds.len();
    if points.iter().any(|point| point.rounds.len() != rounds) {
        return None;
    }
    let best = fit(&rates(points, None)?, true)?;
    // A coefficient at its limit does not move when a round is left out: its error is that of a fit without limits.
    let free = jackknife(rounds, |left_out| fit(&rates(points, left_out)?, false))?;
    let [alone, contention, coherency] = [0, 1, 2].map(|place| {
        let value = best.get(place).copied().unwrap_or(f64::NAN);
        let half = free.get(place).and_then(Estimate::half_width);
        Estimate { value, low: half.map(|half| value - half), high: half.map(|half| value + half) }
    });
    let at = |submitters: f64| {
        let more = submitters - 1.0;
        alone.value * submitters / (1.0 + contention.value * more + coherency.value * submitters * more)
    };
    let distance = |(submitters, rate): &(f64, f64)| (at(*submitters) / rate - 1.0).abs();
    let misfit = rates(points, None)?.iter().map(distance).fold(0.0, f64::max);
    let part = |estimate: Estimate| Estimate { low: estimate.low.map(|low| low.max(0.0)), ..estimate };
    Some(Scalability { alone, contention: part(contention), coherency: part(coherency), misfit })
}

/// Submitters and rate of each point.
fn rates(points: &[LoadPoint], left_out: Option<usize>) -> Option<Vec<(f64, f64)>> {
    let rate = |point: &LoadPoint| {
        let kept = || point.rounds.iter().enumerate().filter(|(round, _)| Some(*round) != left_out);
        let ios: f64 = kept().map(|(_, pair)| pair.numerator).sum();
        let seconds: f64 = kept().map(|(_, pair)| pair.denominator).sum();
        (ios > 0.0 && seconds > 0.0 && point.submitters >= 1.0).then_some((point.submitters, ios / seconds))
    };
    points.iter().map(rate).collect()
}

/// λ, σ and κ; with `limits`, of the fits with σ, κ or both left out, the best one in which none is negative.
fn fit(rates: &[(f64, f64)], limits: bool) -> Option<[f64; 3]> {
    let mut numbers: Vec<f64> = rates.iter().map(|(submitters, _)| *submitters).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    if numbers.len() < FEWEST_POINTS {
        return None;
    }
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
    use rand_distr::{Distribution, StandardNormal};
    use rand_pcg::Pcg64Mcg;
    use rand_pcg::rand_core::SeedableRng;

    const NUMBERS: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 12.0, 16.0];

    fn rate([alone, serial, pairs]: [f64; 3], submitters: f64) -> f64 {
        alone * submitters / (1.0 + serial * (submitters - 1.0) + pairs * submitters * (submitters - 1.0))
    }

    fn of(cells: &[(f64, Vec<Pair>)]) -> Option<Scalability> {
        let points: Vec<LoadPoint> =
            cells.iter().map(|(submitters, rounds)| LoadPoint { submitters: *submitters, rounds }).collect();
        scalability(&points)
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
            let found = of(&measured(truth, 0.0, 1)).unwrap();
            let values = [found.alone, found.contention, found.coherency].map(|estimate| estimate.value);
            let near = values.iter().zip(truth).all(|(found, truth)| (found - truth).abs() < 1e-6 * truth.max(1.0));
            assert!(near && found.misfit < 1e-6, "{truth:?} {found:?}");
        }
        let peak = of(&measured([1000.0, 0.1, 0.01], 0.0, 1)).unwrap().peak().unwrap();
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
                let found = of(&measured(truth, 0.02, seed)).unwrap();
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
        let peaks =
            |truth| (0..SERIES).filter(|seed| of(&measured(truth, 0.02, *seed)).unwrap().peak().is_some()).count();
        assert!(peaks([1000.0, 0.1, 0.0]) as u64 * 100 <= SERIES * 5, "{} of {SERIES}", peaks([1000.0, 0.1, 0.0]));
        assert!(peaks([1000.0, 0.02, 0.02]) as u64 == SERIES);
    }

    #[test]
    fn too_little_is_nothing() {
        let all = measured([1000.0, 0.1, 0.01], 0.0, 1);
        assert!(of(&all[..4]).is_none(), "four points");
        assert!(of(&[]).is_none());
        let mut zero = all.clone();
        zero[2].1.iter_mut().for_each(|pair| pair.numerator = 0.0);
        assert!(of(&zero).is_none(), "a rate of 0");
        let mut uneven = all;
        uneven[1].1.pop();
        assert!(of(&uneven).is_none(), "a round is missing");
    }
}
