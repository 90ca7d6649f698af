//! What a write contains: noise, in part compressible, in part equal to what was written before; or a pattern.

use crate::workload::permutation::{below, split_mix};
use model::plan::{JobPlan, Pattern};

/// Fills blocks. The content of a block follows from its seed.
pub(super) struct Filler {
    /// Draws the seeds of new blocks.
    state: u64,
    /// The part of each chunk that is no noise.
    compressible: Option<Compressible>,
    dedupe: Option<Dedupe>,
}

struct Compressible {
    /// Bytes of a chunk; 0 means a block.
    chunk: usize,
    percent: usize,
    /// Zeros if there is none.
    pattern: Option<Pattern>,
}

struct Dedupe {
    dice: u64,
    percent: u64,
    /// The seed of the last new block.
    last: u64,
}

impl Filler {
    pub fn new(plan: &JobPlan, seed: u64) -> Self {
        let content = &plan.content;
        let compressible = match content.compress_percent {
            0 => None,
            percent => Some(Compressible {
                chunk: usize::try_from(content.compress_chunk.0).unwrap_or(usize::MAX),
                percent: percent.into(),
                pattern: content.pattern.clone(),
            }),
        };
        // Marks make blocks unequal.
        let dedupe = (content.dedupe_percent > 0 && plan.verify.method.is_none()).then(|| Dedupe {
            dice: seed ^ 0xd1ce,
            percent: content.dedupe_percent.into(),
            last: split_mix(&mut seed.clone()),
        });
        Self { state: seed, compressible, dedupe }
    }

    /// The seed of the next block.
    pub fn next_seed(&mut self) -> u64 {
        let Some(dedupe) = &mut self.dedupe else { return split_mix(&mut self.state) };
        if below(split_mix(&mut dedupe.dice), 100) < dedupe.percent {
            return dedupe.last;
        }
        dedupe.last = split_mix(&mut self.state);
        dedupe.last
    }

    /// Fills a block.
    pub fn fill(&self, seed: u64, memory: &mut [u8]) {
        let mut noise = Noise::new(seed);
        let Some(Compressible { chunk, percent, pattern }) = &self.compressible else { return noise.fill(memory) };
        let chunk = if *chunk == 0 { memory.len() } else { (*chunk).min(memory.len()) }.max(1);
        let noisy = chunk * (100 - percent) / 100;
        for part in memory.chunks_mut(chunk) {
            let (first, rest) = part.split_at_mut(noisy.min(part.len()));
            noise.fill(first);
            match pattern {
                Some(pattern) => pattern.fill(rest, 0),
                None => rest.fill(0),
            }
        }
    }
}

/// Generators side by side. Shifts and exclusive ors of independent words are what every vector unit has, so that the
/// compiler uses it; a multiplication of 64 bits is not.
const LANES: usize = 8;
const BYTES: usize = LANES * 8;

/// Marsaglia's xorshift (2003) in each lane, with shifts of 13, 7 and 17.
pub(super) struct Noise([u64; LANES]);

impl Noise {
    pub fn new(mut seed: u64) -> Self {
        // Never 0, at which xorshift stays.
        Self(std::array::from_fn(|_| split_mix(&mut seed) | 1))
    }

    #[inline(always)]
    fn step(&mut self) {
        for lane in &mut self.0 {
            *lane ^= *lane << 13;
            *lane ^= *lane >> 7;
            *lane ^= *lane << 17;
        }
    }

    /// Fills memory, and goes on there with the next call.
    pub fn fill(&mut self, memory: &mut [u8]) {
        let mut blocks = memory.chunks_exact_mut(BYTES);
        for block in &mut blocks {
            self.step();
            for (word, lane) in block.chunks_exact_mut(8).zip(self.0) {
                word.copy_from_slice(&lane.to_le_bytes());
            }
        }
        let rest = blocks.into_remainder();
        if !rest.is_empty() {
            self.step();
            for (word, lane) in rest.chunks_mut(8).zip(self.0) {
                let bytes = lane.to_le_bytes();
                word.iter_mut().zip(bytes).for_each(|(byte, noise)| *byte = noise);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::Content;
    use model::unit::Bytes;
    use std::collections::BTreeSet;

    fn filler(content: Content) -> Filler {
        Filler::new(&JobPlan { content, ..JobPlan::default() }, 5)
    }

    #[test]
    fn a_part_of_each_chunk_is_zeros() {
        let filler = filler(Content { compress_percent: 30, compress_chunk: Bytes(1000), ..Content::default() });
        let mut memory = vec![1; 4096];
        filler.fill(9, &mut memory);
        for chunk in memory.chunks(1000) {
            let noisy = chunk.len().min(700);
            assert!(chunk[noisy..].iter().all(|byte| *byte == 0));
            assert!(chunk[..noisy].iter().filter(|byte| **byte == 0).count() < 20);
        }
    }

    #[test]
    fn a_part_of_the_blocks_equals_earlier_ones() {
        let seeds = |dedupe_percent| {
            let mut filler = filler(Content { dedupe_percent, ..Content::default() });
            (0..10_000).map(|_| filler.next_seed()).collect::<Vec<u64>>()
        };
        let unique = |seeds: &[u64]| seeds.iter().collect::<BTreeSet<_>>().len();
        let repeated = seeds(30);
        assert!((6800..7200).contains(&unique(&repeated)), "{}", unique(&repeated));
        // A repetition follows the block that it repeats.
        let runs = repeated.windows(2).filter(|pair| pair[0] != pair[1]).count() + 1;
        assert_eq!(runs, unique(&repeated));
        assert_eq!(unique(&seeds(100)), 1);
    }

    #[test]
    fn noise_has_each_byte_equally_often_and_no_word_twice() {
        let mut memory = vec![0; 1 << 20];
        Noise::new(7).fill(&mut memory);
        let mut counts = [0_u32; 256];
        memory.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        // 4096 of each, give or take six standard deviations.
        assert!(counts.iter().all(|count| (3712..4480).contains(count)), "{counts:?}");
        assert_eq!(memory.chunks(8).collect::<BTreeSet<_>>().len(), 1 << 17);
    }

    #[test]
    fn any_length_is_filled_and_other_seeds_differ() {
        for length in [1, 7, 8, 63, 64, 65, 1000] {
            let (mut one, mut other) = (vec![0; length], vec![0; length]);
            Noise::new(1).fill(&mut one);
            Noise::new(2).fill(&mut other);
            assert!(length < 8 || one != other && one[length - 7..].iter().any(|byte| *byte != 0), "{length}");
        }
    }
}
