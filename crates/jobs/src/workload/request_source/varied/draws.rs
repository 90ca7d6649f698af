//! What the requests of such a job are drawn from: blocks that are still free, sizes, and Zipf's law.

use crate::workload::permutation::{Permutation, below, split_mix};
use model::plan::{Distribution, Sizes};

/// The unused blocks of a pass.
#[derive(Clone, Debug)]
pub(super) struct FreeMap {
    blocks: u64,
    free: u64,
    levels: Vec<Vec<u64>>,
}

impl FreeMap {
    /// All of `blocks` are unused.
    pub fn new(blocks: u64) -> Self {
        let mut levels = Vec::new();
        let mut bits = blocks;
        loop {
            let words = bits.div_ceil(64);
            levels.push(vec![0; usize::try_from(words).unwrap_or(usize::MAX)]);
            if words <= 1 {
                break;
            }
            bits = words;
        }
        let mut map = Self { blocks, free: 0, levels };
        map.begin(blocks);
        map
    }

    /// Begins a pass over the first `blocks` of those that it has room for.
    pub fn begin(&mut self, blocks: u64) {
        (self.blocks, self.free) = (blocks, blocks);
        let mut bits = blocks;
        for level in &mut self.levels {
            for (word, first) in level.iter_mut().zip((0..).step_by(64)) {
                let left = bits.saturating_sub(first);
                *word = if left >= 64 { u64::MAX } else { (1 << left) - 1 };
            }
            bits = bits.div_ceil(64);
        }
    }

    /// The number of unused blocks.
    pub fn free(&self) -> u64 {
        self.free
    }

    /// The first unused block from `from` on, or from the beginning if there is none behind.
    pub fn next_free(&self, from: u64) -> u64 {
        self.at_or_after(from).or_else(|| self.at_or_after(0)).unwrap_or(0)
    }

    fn at_or_after(&self, from: u64) -> Option<u64> {
        let mut bit = from;
        for (level, words) in self.levels.iter().enumerate() {
            let word = words.get((bit / 64) as usize)? & (u64::MAX << (bit % 64));
            if word != 0 {
                let found = bit / 64 * 64 + u64::from(word.trailing_zeros());
                let below = self.levels[..level].iter().rev();
                return Some(below.fold(found, |at, words| at * 64 + u64::from(words[at as usize].trailing_zeros())));
            }
            bit = bit / 64 + 1;
        }
        None
    }

    /// Uses up to `most` blocks from `first` on, until one that is used: their number.
    pub fn take(&mut self, first: u64, most: u64) -> u64 {
        let mut taken = 0;
        while taken < most && first + taken < self.blocks && self.take_one(first + taken) {
            taken += 1;
        }
        self.free -= taken;
        taken
    }

    fn take_one(&mut self, block: u64) -> bool {
        let mut bit = block;
        for (level, words) in self.levels.iter_mut().enumerate() {
            let word = &mut words[(bit / 64) as usize];
            if level == 0 && *word & (1 << (bit % 64)) == 0 {
                return false;
            }
            *word &= !(1 << (bit % 64));
            if *word != 0 {
                break;
            }
            bit /= 64;
        }
        true
    }
}

/// Draws until one fits; then the smallest, which does.
const TRIES: u32 = 64;

/// The sizes of one direction.
#[derive(Clone, Debug)]
pub(super) enum Dice {
    One(u64),
    Range {
        least: u64,
        most: u64,
        step: u64,
    },
    /// Sizes with the percentages up to and with theirs.
    Shares {
        least: u64,
        most: u64,
        up_to: Vec<(u64, u64)>,
    },
}

impl Dice {
    pub fn new(sizes: &Sizes) -> Self {
        match sizes {
            Sizes::One(size) => Self::One(*size),
            &Sizes::Range { least, most, step } => Self::Range { least, most, step },
            Sizes::Shares(shares) => {
                let mut sum = 0;
                let up_to = shares.iter().map(|(size, percent)| {
                    sum += u64::from(*percent);
                    (*size, sum)
                });
                Self::Shares { up_to: up_to.collect(), least: sizes.least(), most: sizes.most() }
            }
        }
    }

    pub fn least(&self) -> u64 {
        match self {
            Self::One(least) | Self::Range { least, .. } | Self::Shares { least, .. } => *least,
        }
    }

    pub fn most(&self) -> u64 {
        match self {
            Self::One(most) | Self::Range { most, .. } | Self::Shares { most, .. } => *most,
        }
    }

    /// The size of the next request, up to `room`, which holds the smallest.
    pub fn draw(&self, state: &mut u64, room: u64) -> u64 {
        for _ in 0..TRIES {
            match self {
                Self::One(size) => return *size,
                Self::Range { least, most, step } => {
                    // As in fio, the largest also stands for what lies beyond it.
                    let size = least + below(split_mix(state), *most);
                    let size = (size - size % step).min(*most);
                    if size <= room {
                        return size;
                    }
                }
                Self::Shares { up_to, .. } => {
                    // As in fio, a size that does not fit leaves its turn to the next one that does.
                    let drawn = below(split_mix(state), 100);
                    if let Some((size, _)) = up_to.iter().find(|(size, up_to)| drawn < *up_to && *size <= room) {
                        return *size;
                    }
                }
            }
        }
        self.least()
    }
}

/// A distribution over some number of blocks.
#[derive(Clone, Debug)]
pub(super) struct Skew {
    blocks: u64,
    /// The block that is used most.
    center: u64,
    /// From ranks to distances behind the centre.
    scatter: Permutation,
    zipf: Zipf,
}

impl Skew {
    /// The distribution of a number of blocks. `chance` places the centre. `None` of the uniform one.
    pub fn new(distribution: &Distribution, blocks: u64, chance: u64) -> Option<Self> {
        let Distribution::Zipf(theta) = *distribution else { return None };
        let blocks = blocks.max(1);
        let (center, scatter) = (below(chance, blocks), Permutation::new(blocks, 0));
        Some(Self { blocks, center, scatter, zipf: Zipf::new(blocks, theta) })
    }

    /// The next block.
    pub fn draw(&self, state: &mut u64) -> u64 {
        let rank = self.zipf.draw(state).min(self.blocks - 1);
        let block = self.center + self.scatter.place_of(rank);
        if block >= self.blocks { block - self.blocks } else { block }
    }
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
    use std::collections::BTreeMap;

    #[test]
    fn each_block_is_taken_once_whatever_their_number() {
        for blocks in [1, 2, 63, 64, 65, 127, 4096, 4097, 70_000] {
            let (mut map, mut state) = (FreeMap::new(blocks), blocks);
            for _ in 0..2 {
                let mut seen = vec![false; blocks as usize];
                while map.free() > 0 {
                    let first = map.next_free(below(split_mix(&mut state), blocks));
                    let taken = map.take(first, 1 + below(split_mix(&mut state), 5));
                    assert!(taken > 0, "{first} of {blocks} is free");
                    for block in first..first + taken {
                        assert!(!std::mem::replace(&mut seen[block as usize], true), "{block} of {blocks} twice");
                    }
                }
                assert!(seen.iter().all(|seen| *seen), "{blocks}");
                map.begin(blocks);
            }
        }
    }

    #[test]
    fn it_takes_up_to_the_next_used_block_and_finds_the_next_free_one() {
        let mut map = FreeMap::new(200);
        assert_eq!((map.take(70, 10), map.take(64, 10), map.take(64, 1)), (10, 6, 0));
        assert_eq!((map.next_free(63), map.next_free(64), map.next_free(199)), (63, 80, 199));
        map.take(80, 200);
        assert_eq!((map.next_free(64), map.free()), (0, 64));
        map.begin(3);
        assert_eq!((map.free(), map.next_free(3), map.take(0, 9)), (3, 0, 3));
    }

    /// Percentages of sizes in 100,000 draws. The standard deviation of a percentage is at most 0.16.
    fn drawn(sizes: &Sizes, room: u64) -> BTreeMap<u64, f64> {
        let (dice, mut state) = (Dice::new(sizes), 7);
        let mut found = BTreeMap::new();
        for _ in 0..100_000 {
            *found.entry(dice.draw(&mut state, room)).or_insert(0.0) += 0.001;
        }
        found
    }

    fn near(found: &BTreeMap<u64, f64>, wanted: &[(u64, f64)]) {
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), wanted.iter().map(|(size, _)| *size).collect::<Vec<_>>());
        for (size, percent) in wanted {
            assert!((found[size] - percent).abs() < 0.8, "{size}: {} instead of {percent}", found[size]);
        }
    }

    #[test]
    fn a_range_is_drawn_in_steps_of_its_smallest_size() {
        let range = |least, most, step| Sizes::Range { least, most, step };
        near(&drawn(&range(4, 16, 4), 16), &[(4, 25.0), (8, 25.0), (12, 25.0), (16, 25.0)]);
        near(&drawn(&range(4, 10, 4), 16), &[(4, 40.0), (8, 40.0), (10, 20.0)]);
        near(&drawn(&range(4, 16, 4), 9), &[(4, 50.0), (8, 50.0)]);
        // A sixteenth each, and the largest four times as often.
        let found = drawn(&range(4, 16, 1), 16);
        assert_eq!((found.len(), found[&16] > 24.0 && found[&16] < 26.0), (13, true), "{found:?}");
    }

    #[test]
    fn shares_are_drawn_by_their_percentages() {
        let split = Sizes::Shares(vec![(8, 20), (64, 30), (4, 50)]);
        near(&drawn(&split, 64), &[(4, 50.0), (8, 20.0), (64, 30.0)]);
        near(&drawn(&split, 8), &[(4, 80.0), (8, 20.0)]);
        near(&drawn(&split, 4), &[(4, 100.0)]);
    }

    #[test]
    fn a_size_that_never_fits_gives_way_to_the_smallest() {
        near(&drawn(&Sizes::Shares(vec![(4, 0), (8, 100)]), 4), &[(4, 100.0)]);
    }

    const DRAWS: u64 = 200_000;

    fn counts(distribution: &Distribution, blocks: u64) -> Vec<f64> {
        let skew = Skew::new(distribution, blocks, u64::MAX / 3).unwrap();
        let (mut state, mut counts) = (42, vec![0.0; blocks as usize]);
        for _ in 0..DRAWS {
            counts[skew.draw(&mut state) as usize] += 1.0;
        }
        counts
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
        let mut counts = counts(&Distribution::Zipf(0.8), 1000);
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
        let counts = counts(&Distribution::Zipf(1.2), 1000);
        let most = counts.iter().enumerate().max_by(|one, other| one.1.total_cmp(other.1)).map(|(block, _)| block);
        assert_eq!(most, Some(333));
    }
}
