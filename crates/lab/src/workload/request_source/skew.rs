//! Draws blocks of which some are used more often than others.
//!
//! zipf and pareto draw a rank: the block of rank 0 is at the centre, and the others are scattered, as in fio. There some
//! ranks share a block, unless the number of blocks is a power of two; here each has its own.

use crate::workload::permutation::{Permutation, below, split_mix};
use model::plan::{AccessZone, Distribution, Shape, Size};

/// A distribution over some number of blocks.
#[derive(Clone, Debug)]
pub(super) struct Skew {
    blocks: u64,
    /// The block that is used most.
    center: u64,
    /// From ranks to distances behind the centre.
    scatter: Permutation,
    shape: Curve,
}

#[derive(Clone, Debug)]
enum Curve {
    Zipf(Zipf),
    Pareto {
        exponent: f64,
    },
    /// Standard deviation in blocks.
    Normal {
        deviation: f64,
    },
    /// Percentages up to and with that of a zone, its first block, and its blocks.
    Zoned(Vec<(u64, u64, u64)>),
}

impl Skew {
    /// The distribution of `blocks` blocks of `unit` bytes for one direction. `chance` places the centre where the job
    /// does not. `None` of the uniform one.
    pub fn new(distribution: &Distribution, direction: usize, blocks: u64, unit: u64, chance: u64) -> Option<Self> {
        let blocks = blocks.max(1);
        let (curve, shape) = match distribution {
            Distribution::Random => return None,
            Distribution::Zipf(shape) => (Curve::Zipf(Zipf::new(blocks, shape.parameter)), *shape),
            Distribution::Pareto(shape) => {
                let exponent = shape.parameter.ln() / (1.0 - shape.parameter).ln();
                (Curve::Pareto { exponent }, *shape)
            }
            Distribution::Normal(shape) => {
                let deviation = blocks as f64 * shape.parameter / 100.0;
                (Curve::Normal { deviation }, Shape { center: shape.center.or(Some(0.5)), ..*shape })
            }
            Distribution::Zoned(zones) => {
                let zones = zones.all().into_iter().nth(direction).map(Vec::as_slice).unwrap_or_default();
                // A direction without zones of its own is uniform.
                if zones.is_empty() {
                    return None;
                }
                (Curve::Zoned(placed(zones, blocks, unit)), Shape { parameter: 0.0, center: None })
            }
        };
        let center = match shape.center {
            Some(center) => (blocks as f64 * center) as u64,
            None => below(chance, blocks),
        };
        Some(Self { blocks, center: center.min(blocks - 1), scatter: Permutation::new(blocks, 0), shape: curve })
    }

    /// The next block.
    pub fn draw(&self, state: &mut u64) -> u64 {
        let rank = match &self.shape {
            Curve::Zipf(zipf) => zipf.draw(state),
            Curve::Pareto { exponent } => ((self.blocks - 1) as f64 * fraction(state).powf(*exponent)) as u64,
            Curve::Normal { deviation } => return self.near_center(*deviation, state),
            Curve::Zoned(zones) => {
                let drawn = below(split_mix(state), 100);
                let zone = zones.iter().find(|(up_to, ..)| drawn < *up_to);
                return zone.map_or(0, |(_, begin, blocks)| begin + below(split_mix(state), *blocks));
            }
        };
        let block = self.center + self.scatter.place_of(rank.min(self.blocks - 1));
        if block >= self.blocks { block - self.blocks } else { block }
    }

    /// A normal deviate from the centre that is within the blocks. Box and Muller, 1958.
    fn near_center(&self, deviation: f64, state: &mut u64) -> u64 {
        loop {
            let radius = (-2.0 * (1.0 - fraction(state)).ln()).sqrt();
            let deviate = radius * (std::f64::consts::TAU * fraction(state)).cos();
            let block = (self.center as f64 + 0.5 + deviation * deviate).floor();
            if block >= 0.0 && block < self.blocks as f64 {
                return block as u64;
            }
        }
    }
}

/// Zones behind each other, cut at the end of the blocks.
fn placed(zones: &[AccessZone], blocks: u64, unit: u64) -> Vec<(u64, u64, u64)> {
    let (mut accesses, mut percent, mut bytes) = (0, 0_u8, 0_u64);
    let part = |percent: u8| crate::workload::amount::share(blocks, percent);
    zones
        .iter()
        .map(|zone| {
            accesses += u64::from(zone.percent);
            let begin = part(percent) + bytes / unit.max(1);
            match zone.size {
                Size::Percent(more) => percent = percent.saturating_add(more).min(100),
                Size::Bytes(more) => bytes = bytes.saturating_add(more.0),
            }
            let end = (part(percent) + bytes / unit.max(1)).min(blocks);
            let begin = begin.min(blocks - 1);
            (accesses, begin, end.saturating_sub(begin).max(1))
        })
        .collect()
}

/// A number from 0 to below 1.
fn fraction(state: &mut u64) -> f64 {
    (split_mix(state) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Ranks from 0 on, that of k with a probability in proportion to (k + 1)^−theta: exactly, in constant time, without a
/// table. Rejection-inversion: Hörmann and Derflinger, 1996.
#[derive(Clone, Debug)]
struct Zipf {
    theta: f64,
    ranks: u64,
    /// The integral up to the first rank, and up to the last one.
    ends: [f64; 2],
    /// Below this distance from its rank, a draw needs no further look.
    sure: f64,
}

impl Zipf {
    fn new(ranks: u64, theta: f64) -> Self {
        let mut zipf = Self { theta, ranks, ends: [0.0; 2], sure: 0.0 };
        zipf.ends = [zipf.integral(1.5) - 1.0, zipf.integral(ranks as f64 + 0.5)];
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.height(2.0));
        zipf
    }

    fn height(&self, x: f64) -> f64 {
        x.powf(-self.theta)
    }

    /// The integral of the height from 1 to `x`.
    fn integral(&self, x: f64) -> f64 {
        let slope = 1.0 - self.theta;
        if slope.abs() < 1e-9 { x.ln() } else { (slope * x.ln()).exp_m1() / slope }
    }

    fn inverse(&self, area: f64) -> f64 {
        let slope = 1.0 - self.theta;
        if slope.abs() < 1e-9 { area.exp() } else { ((slope * area).max(-1.0).ln_1p() / slope).exp() }
    }

    fn draw(&self, state: &mut u64) -> u64 {
        let [first, last] = self.ends;
        loop {
            let area = last + fraction(state) * (first - last);
            let x = self.inverse(area);
            let rank = x.round().clamp(1.0, self.ranks as f64);
            if rank - x <= self.sure || area >= self.integral(rank + 0.5) - self.height(rank) {
                return rank as u64 - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::Each;
    use model::unit::Bytes;

    const DRAWS: u64 = 200_000;

    fn counts(distribution: &Distribution, blocks: u64) -> Vec<f64> {
        let skew = Skew::new(distribution, 0, blocks, 4096, u64::MAX / 3).unwrap();
        let (mut state, mut counts) = (42, vec![0.0; blocks as usize]);
        for _ in 0..DRAWS {
            counts[skew.draw(&mut state) as usize] += 1.0;
        }
        counts
    }

    fn shape(parameter: f64, center: Option<f64>) -> Shape {
        Shape { parameter, center }
    }

    /// Chi-squared of counts against probabilities; classes with fewer than 5 expected are left out. Also the number of
    /// classes.
    fn chi_squared(counts: &[f64], probabilities: &[f64]) -> (f64, f64) {
        let classes = counts.iter().zip(probabilities).map(|(found, part)| (*found, part * DRAWS as f64));
        let classes: Vec<_> = classes.filter(|(_, expected)| *expected >= 5.0).collect();
        (classes.iter().map(|(found, expected)| (found - expected).powi(2) / expected).sum(), classes.len() as f64)
    }

    /// Five standard deviations above the mean of chi-squared: the seeds are fixed, so that chance decides once.
    fn fits(counts: &[f64], probabilities: &[f64], what: &str) {
        let (chi, classes) = chi_squared(counts, probabilities);
        assert!(classes > 1.0 && chi < classes + 5.0 * (2.0 * classes).sqrt(), "{what}: {chi} of {classes} classes");
    }

    #[test]
    fn ranks_of_zipf_have_its_probabilities() {
        for theta in [0.2, 0.5, 1.0, 1.2, 2.5] {
            let zipf = Zipf::new(1000, theta);
            let (mut state, mut counts) = (9, vec![0.0; 1000]);
            (0..DRAWS).for_each(|_| counts[zipf.draw(&mut state) as usize] += 1.0);
            let weights: Vec<f64> = (1..=1000).map(|rank| f64::from(rank).powf(-theta)).collect();
            let sum: f64 = weights.iter().sum();
            fits(&counts, &weights.iter().map(|weight| weight / sum).collect::<Vec<_>>(), &format!("theta {theta}"));
        }
        assert_eq!(Zipf::new(1, 1.2).draw(&mut 1), 0);
    }

    #[test]
    fn each_block_has_the_probability_of_its_rank() {
        let mut counts = counts(&Distribution::Zipf(shape(0.8, None)), 1000);
        counts.sort_by(|one, other| other.total_cmp(one));
        let weights: Vec<f64> = (1..=1000).map(|rank| f64::from(rank).powf(-0.8)).collect();
        let sum: f64 = weights.iter().sum();
        for most in [1, 10, 100, 500] {
            let (found, part) = (&counts[..most], &weights[..most]);
            let (found, part) = (found.iter().sum::<f64>() / DRAWS as f64, part.iter().sum::<f64>() / sum);
            assert!((found - part).abs() < 0.01, "the {most} blocks that are used most: {found} instead of {part}");
        }
    }

    #[test]
    fn the_block_that_is_used_most_is_at_the_center() {
        for distribution in [Distribution::Zipf(shape(1.2, Some(0.25))), Distribution::Pareto(shape(0.2, Some(0.25)))] {
            let counts = counts(&distribution, 1000);
            let most = counts.iter().enumerate().max_by(|one, other| one.1.total_cmp(other.1)).map(|(block, _)| block);
            assert_eq!(most, Some(250), "{distribution:?}");
        }
    }

    #[test]
    fn most_accesses_of_pareto_go_to_few_blocks() {
        // With a power of 0.2, 80 % of the accesses go to the first 20 % of the ranks.
        let skew = Skew::new(&Distribution::Pareto(shape(0.2, None)), 0, 100_000, 4096, 0).unwrap();
        let Curve::Pareto { exponent } = skew.shape else { panic!("not pareto") };
        assert!((0.8_f64.powf(exponent) - 0.2).abs() < 1e-9);
        let mut counts = counts(&Distribution::Pareto(shape(0.2, None)), 1000);
        counts.sort_by(|one, other| other.total_cmp(one));
        let part = counts[..200].iter().sum::<f64>() / DRAWS as f64;
        assert!((0.79..0.83).contains(&part), "{part}");
    }

    #[test]
    fn a_normal_distribution_has_its_deviation_around_its_center() {
        for (percent, center, blocks) in [(5.0, None, 1000.0), (1.0, Some(0.25), 1000.0)] {
            let counts = counts(&Distribution::Normal(shape(percent, center)), 1000);
            let mean =
                counts.iter().zip(0..).map(|(count, block)| count * f64::from(block)).sum::<f64>() / DRAWS as f64;
            let squares = counts.iter().zip(0..).map(|(count, block)| count * (f64::from(block) - mean).powi(2));
            let deviation = (squares.sum::<f64>() / DRAWS as f64).sqrt();
            let middle = blocks * center.unwrap_or(0.5);
            assert!((mean - middle).abs() < 1.0, "{mean} instead of {middle}");
            assert!((deviation / (blocks * percent / 100.0) - 1.0).abs() < 0.02, "{deviation} of {percent} %");
        }
    }

    #[test]
    fn zones_have_their_accesses() {
        let zone = |percent, size| AccessZone { percent, size };
        let zones = vec![zone(60, Size::Percent(10)), zone(30, Size::Percent(20)), zone(10, Size::Percent(30))];
        let zones = counts(&Distribution::Zoned(Each::from(zones)), 1000);
        let probabilities: Vec<f64> = (0..1000)
            .map(|block| match block {
                0..100 => 0.6 / 100.0,
                100..300 => 0.3 / 200.0,
                300..600 => 0.1 / 300.0,
                _ => 0.0,
            })
            .collect();
        fits(&zones, &probabilities, "zones");
        assert!(zones[600..].iter().all(|count| *count == 0.0), "what no zone covers is not used");
        let bytes = |bytes| Size::Bytes(Bytes(bytes));
        let zones = vec![zone(50, bytes(8192)), zone(50, bytes(1 << 30))];
        let zones = counts(&Distribution::Zoned(Each::from(zones)), 10);
        let probabilities: Vec<f64> = (0..10).map(|block| if block < 2 { 0.25 } else { 0.5 / 8.0 }).collect();
        fits(&zones, &probabilities, "zones in bytes");
    }
}
