//! The cost as a line in the block size: a constant cost per I/O, and a cost per byte.
//!
//! The input is cells of several sizes with their rounds. The result is the two coefficients with intervals, and the
//! deviation of the cells from the line.

use super::basics::jackknife;
use super::estimate::Estimate;
use super::ratio::Pair;

/// Two sizes always lie on a line; a third can contradict it.
const FEWEST_SIZES: usize = 3;

/// One block size of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct SizePoint<'a> {
    /// Bytes of an I/O.
    pub bytes: f64,
    /// Cost of its I/Os (numerator) and number of I/Os (denominator) in each round.
    pub rounds: &'a [Pair],
}

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

/// The line through the costs of at least three sizes, with delete-one-round jackknife intervals.
///
/// The cost of each size is its ratio of sums. Squares are weighted by 1/cost², because what makes costs vary (another
/// layout, a slower moment) changes them by a factor; without weights, the largest size alone would determine the line.
/// `None` with fewer sizes, a cost that is not positive, or sizes with different numbers of rounds.
pub fn cost_line(points: &[SizePoint]) -> Option<CostLine> {
    let rounds = points.first()?.rounds.len();
    if points.iter().any(|point| point.rounds.len() != rounds) {
        return None;
    }
    let [per_io, per_byte] = jackknife(rounds, |left_out| fit(&costs(points, left_out)?))?;
    let distance = |(bytes, cost): &(f64, f64)| ((per_io.value + per_byte.value * bytes) / cost - 1.0).abs();
    let misfit = costs(points, None)?.iter().map(distance).fold(0.0, f64::max);
    Some(CostLine { per_io, per_byte, misfit })
}

/// Bytes and cost per I/O of each size.
fn costs(points: &[SizePoint], left_out: Option<usize>) -> Option<Vec<(f64, f64)>> {
    let cost = |point: &SizePoint| {
        let kept = || point.rounds.iter().enumerate().filter(|(round, _)| Some(*round) != left_out);
        let numerators: f64 = kept().map(|(_, pair)| pair.numerator).sum();
        let denominators: f64 = kept().map(|(_, pair)| pair.denominator).sum();
        (numerators > 0.0 && denominators > 0.0).then_some((point.bytes, numerators / denominators))
    };
    points.iter().map(cost).collect()
}

/// Intercept and slope that minimise Σ((c_i − c0 − c1·b_i)/c_i)².
fn fit(costs: &[(f64, f64)]) -> Option<[f64; 2]> {
    let mut sizes: Vec<f64> = costs.iter().map(|(bytes, _)| *bytes).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    if sizes.len() < FEWEST_SIZES {
        return None;
    }
    let weight = |cost: f64| cost.powi(-2);
    let weights: f64 = costs.iter().map(|(_, cost)| weight(*cost)).sum();
    let mean = |of: fn(&(f64, f64)) -> f64| costs.iter().map(|pair| weight(pair.1) * of(pair)).sum::<f64>() / weights;
    let (mean_bytes, mean_cost) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let moment = |of: fn(f64, f64) -> f64| -> f64 {
        costs.iter().map(|(bytes, cost)| weight(*cost) * of(bytes - mean_bytes, cost - mean_cost)).sum()
    };
    let slope = moment(|bytes, cost| bytes * cost) / moment(|bytes, _| bytes * bytes);
    let intercept = mean_cost - slope * mean_bytes;
    (slope.is_finite() && intercept.is_finite()).then_some([intercept, slope])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZES: [f64; 4] = [512.0, 4096.0, 16384.0, 65536.0];

    fn line(cells: &[(f64, Vec<Pair>)]) -> Option<CostLine> {
        let points: Vec<SizePoint> = cells.iter().map(|(bytes, rounds)| SizePoint { bytes: *bytes, rounds }).collect();
        cost_line(&points)
    }

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
        let found = line(&cells(3000.0, 0.25, &[[1.0; 4]; 5])).unwrap();
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
        let found = line(&SIZES.iter().enumerate().map(cell).collect::<Vec<_>>()).unwrap();
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
        let found = line(&cells(3000.0, 0.25, &[[1.0, 1.0, 1.0, 1.5]; 5])).unwrap();
        assert!(found.misfit > 0.1, "{found:?}");
    }

    #[test]
    fn too_little_for_a_line() {
        let all = cells(3000.0, 0.25, &[[1.0; 4]; 5]);
        assert_eq!(line(&all[..2]), None);
        assert_eq!(line(&[all[0].clone(), all[0].clone(), all[1].clone()]), None, "two sizes, one of them twice");
        assert_eq!(line(&[]), None);
        assert_eq!(line(&cells(-3000.0, 0.25, &[[1.0; 4]; 5])), None, "a cost below nothing");
        let once = line(&cells(3000.0, 0.25, &[[1.0; 4]])).unwrap();
        assert_eq!(once.per_io.low, None, "one round");
    }

    proptest! {
        #[test]
        fn a_unit_a_thousand_times_finer_changes_only_the_unit(
            factors in proptest::collection::vec(proptest::array::uniform4(0.9f64..1.1), 2..12),
        ) {
            let (plain, fine) = (line(&cells(3000.0, 0.25, &factors)), line(&cells(3e6, 250.0, &factors)));
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
