//! Which blocks of a file are still to be used, where requests of several sizes take several blocks each.
//!
//! A tree of bits: each level has a bit for each word of the level below that is not 0. It takes 1/8 byte for each
//! block, allocated before the measurement.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::permutation::{below, split_mix};

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
}
