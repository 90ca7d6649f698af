//! Every number below a bound once, in a pseudo-random order, without a map of visited numbers.
//!
//! fio keeps a bit per block (`randommap`); a computed permutation needs 40 bytes whatever the file's size, and some
//! ten cycles a step.

/// A walk over `0..bound` that visits each number exactly once per pass.
#[derive(Clone, Debug)]
pub struct Permutation {
    bound: u64,
    mask: u64,
    shift: u32,
    state: u64,
    increment: u64,
    left: u64,
    seed: u64,
}

/// Knuth's multiplier for a 64-bit linear congruential generator (MMIX). ≡ 1 mod 4, so that the generator has its full
/// period in every power of two that it is cut down to (Hull and Dobell, 1962).
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
/// Any odd number permutes; this is the mixer of PCG's RXS-M-XS output (O'Neill, 2014).
const MIXER: u64 = 12_605_985_483_714_917_081;

impl Permutation {
    /// A walk over `0..bound`; `bound` must be at least 1.
    pub fn new(bound: u64, seed: u64) -> Self {
        let mut walk = Self { bound: 1, mask: 0, shift: 0, state: 0, increment: 1, left: 0, seed };
        walk.restart_with(bound);
        walk
    }

    /// Begins a pass over `0..bound`.
    pub fn restart_with(&mut self, bound: u64) {
        self.bound = bound.max(1);
        let bits = (64 - (self.bound - 1).leading_zeros()).max(1);
        self.mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        self.shift = bits / 2 + 1;
        self.begin_pass();
    }

    fn begin_pass(&mut self) {
        self.left = self.bound;
        self.state = split_mix(&mut self.seed) & self.mask;
        self.increment = (split_mix(&mut self.seed) | 1) & self.mask;
    }

    /// Numbers left in this pass.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Begins a pass, unless one has just begun.
    pub fn restart(&mut self) {
        if self.left < self.bound {
            self.begin_pass();
        }
    }

    #[inline(always)]
    fn mix(&self, bits: u64) -> u64 {
        (bits ^ (bits >> self.shift)).wrapping_mul(MIXER) & self.mask
    }

    /// Where a fixed permutation of the bound's numbers puts this one, which is below it; 0 stays 0.
    pub fn place_of(&self, number: u64) -> u64 {
        let mut place = number;
        loop {
            let mixed = self.mix(self.mix(place));
            place = mixed ^ (mixed >> self.shift);
            if place < self.bound {
                return place;
            }
        }
    }

    /// The next number of the walk; after the last one a new pass starts in another order.
    #[inline(always)]
    pub fn step(&mut self) -> u64 {
        if self.left == 0 {
            self.begin_pass();
        }
        self.left -= 1;
        loop {
            self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment) & self.mask;
            // Each step is a bijection on the masked bits. Two rounds, because after one round neighbours in walks over
            // few blocks still depended on each other, which caches detected.
            let mixed = self.mix(self.mix(self.state));
            let mixed = mixed ^ (mixed >> self.shift);
            // The power of two is less than twice the bound, so this takes less than two tries a step.
            if mixed < self.bound {
                return mixed;
            }
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014): a new well-mixed word at each call.
#[inline(always)]
pub fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A number below `bound`, from a random word (Lemire's multiply-shift; bias below bound/2^64).
#[inline(always)]
pub fn below(word: u64, bound: u64) -> u64 {
    ((u128::from(word) * u128::from(bound)) >> 64) as u64
}

/// Draws random orders.
pub struct Shuffler {
    state: u64,
}

impl Shuffler {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A seed for another generator.
    pub fn seed(&mut self) -> u64 {
        split_mix(&mut self.state)
    }

    /// `items` in random order; all orders are equally likely (Fisher and Yates).
    pub fn shuffled<T>(&mut self, items: impl IntoIterator<Item = T>) -> Vec<T> {
        let mut items: Vec<T> = items.into_iter().collect();
        for last in (1..items.len()).rev() {
            // At most `last`, so it fits.
            let other = below(split_mix(&mut self.state), last as u64 + 1) as usize;
            items.swap(last, other);
        }
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_visits_every_number_once() {
        for bound in (1..70).chain([127, 128, 129, 1000, 4096, 65_537]) {
            let mut walk = Permutation::new(bound, bound ^ 0xabcd);
            for pass in 0..3 {
                let mut seen = vec![false; bound as usize];
                for _ in 0..bound {
                    let number = walk.step() as usize;
                    assert!(!std::mem::replace(&mut seen[number], true), "{number} twice in pass {pass} of {bound}");
                }
            }
        }
    }

    #[test]
    fn each_number_has_a_place_of_its_own() {
        for bound in (1..70).chain([1000, 4096, 65_537]) {
            let walk = Permutation::new(bound, 5);
            let mut places: Vec<u64> = (0..bound).map(|number| walk.place_of(number)).collect();
            assert_eq!(places[0], 0);
            let next = places.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count();
            assert!(bound < 1000 || next < 20, "{next} neighbours of {bound}");
            places.sort_unstable();
            assert!(places.into_iter().eq(0..bound), "{bound}");
        }
    }

    /// Serial structure would make random I/O partly sequential: the mean distance of neighbours must be that of
    /// independent draws (a third of the bound), and single steps must be rare.
    #[test]
    fn neighbours_are_far_apart() {
        let bound = 100_000u64;
        let mut walk = Permutation::new(bound, 1);
        let mut last = walk.step();
        let (mut sum, mut steps) = (0, 0);
        for _ in 1..bound {
            let next = walk.step();
            sum += next.abs_diff(last);
            steps += u64::from(next.abs_diff(last) == 1);
            last = next;
        }
        let mean = sum as f64 / (bound - 1) as f64 / (bound as f64 / 3.0);
        assert!((0.98..1.02).contains(&mean), "{mean}");
        assert!(steps < 20, "{steps}");
    }

    /// Chi-squared over 8 × 8 tables of three bits of numbers that follow each other at several distances: 63 degrees
    /// of freedom, so 99.99 % of independent tables are below 114, and there are 120. Walks with one round of mixing
    /// fail this.
    #[test]
    fn followers_are_independent_at_every_scale() {
        for (bits, seed) in [(12, 1), (12, 2), (14, 3), (14, 4), (17, 5), (17, 6)] {
            let count = 1usize << bits;
            let mut walk = Permutation::new(count as u64, seed);
            let numbers: Vec<u64> = (0..count).map(|_| walk.step()).collect();
            for (low, distance) in [0, 3, 6, bits - 3].iter().flat_map(|low| [1, 2, 4, 8, 16].map(|far| (*low, far))) {
                let mut table = [0u32; 64];
                for (number, follower) in numbers.iter().zip(numbers.iter().cycle().skip(distance)) {
                    table[((number >> low & 7) * 8 + (follower >> low & 7)) as usize] += 1;
                }
                let expected = count as f64 / 64.0;
                let chi: f64 = table.iter().map(|&found| (f64::from(found) - expected).powi(2) / expected).sum();
                assert!(chi < 114.0, "{chi} at bit {low}, distance {distance} of 2^{bits}, seed {seed}");
            }
        }
    }

    #[test]
    fn draws_stay_below_their_bound() {
        assert_eq!(below(u64::MAX, 10), 9);
        assert_eq!(below(0, 10), 0);
    }

    #[test]
    fn all_orders_are_equally_likely_and_a_seed_repeats_them() {
        let mut shuffler = Shuffler::new(7);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            *counts.entry(shuffler.shuffled(0..3)).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        // Six standard deviations of a count of 1000.
        assert!(counts.values().all(|count| (820..1180).contains(count)), "{counts:?}");
        let again = |seed| Shuffler::new(seed).shuffled(0..50);
        assert_eq!(again(1), again(1));
        assert_ne!(again(1), again(2));
    }
}
