//! What a write contains: noise, in part compressible, in part equal to what was written before; or a pattern.

use super::noise::Noise;
use super::repeated::Repeated;
use crate::error::Result;
use crate::workload::permutation::{below, split_mix};
use model::plan::{DedupeMode, JobPlan};

/// The first seed of the working set that all jobs share.
const SHARED: u64 = 0x1071_d0b1;

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
    pattern: Option<Repeated>,
}

struct Dedupe {
    dice: u64,
    percent: u64,
    source: Source,
}

/// Where the seed of an equal block comes from.
enum Source {
    /// The last new block.
    Last(u64),
    /// One of the first new blocks of a sequence of seeds.
    Set { first: u64, blocks: u64 },
}

impl Filler {
    /// `set`: the number of blocks of which `dedupe_working_set_percentage` is a part.
    pub fn new(plan: &JobPlan, seed: u64, set: u64) -> Result<Self> {
        let content = &plan.content;
        let compressible = match content.compress_percent {
            0 => None,
            percent => Some(Compressible {
                chunk: usize::try_from(content.compress_chunk.0).unwrap_or(usize::MAX),
                percent: percent.into(),
                pattern: match &content.pattern {
                    Some(pattern) => Some(Repeated::new(&plan.name, "buffer_pattern", pattern)?),
                    None => None,
                },
            }),
        };
        // Marks make blocks unequal.
        let dedupe = (content.dedupe_percent > 0 && plan.verify.method.is_none()).then(|| {
            let blocks = u128::from(set) * u128::from(content.dedupe_set_percent) / 100;
            let first = if content.dedupe_global { SHARED } else { seed };
            Dedupe {
                dice: seed ^ 0xd1ce,
                percent: content.dedupe_percent.into(),
                source: match content.dedupe_mode {
                    DedupeMode::Repeat => Source::Last(peek(seed, 0)),
                    DedupeMode::WorkingSet => {
                        Source::Set { first, blocks: u64::try_from(blocks).unwrap_or(u64::MAX).max(1) }
                    }
                },
            }
        });
        Ok(Self { state: seed, compressible, dedupe })
    }

    /// The seed of the next block.
    pub fn next_seed(&mut self) -> u64 {
        let Some(dedupe) = &mut self.dedupe else { return split_mix(&mut self.state) };
        if below(split_mix(&mut dedupe.dice), 100) < dedupe.percent {
            return match dedupe.source {
                Source::Last(seed) => seed,
                Source::Set { first, blocks } => peek(first, below(split_mix(&mut dedupe.dice), blocks)),
            };
        }
        let seed = split_mix(&mut self.state);
        if let Source::Last(last) = &mut dedupe.source {
            *last = seed;
        }
        seed
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

/// The seed that follows `ahead` others.
fn peek(state: u64, ahead: u64) -> u64 {
    /// The step of the generator (Steele, Lea and Flood, 2014).
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    split_mix(&mut state.wrapping_add(STEP.wrapping_mul(ahead)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::Content;
    use model::unit::Bytes;

    fn filler(content: Content) -> Filler {
        Filler::new(&JobPlan { content, ..JobPlan::default() }, 5, 1000).unwrap()
    }

    #[test]
    fn seeds_can_be_looked_at_ahead() {
        let mut state = 77;
        let drawn: Vec<u64> = (0..4).map(|_| split_mix(&mut state)).collect();
        assert_eq!((0..4).map(|ahead| peek(77, ahead)).collect::<Vec<_>>(), drawn);
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
        let seeds = |mode, percent| {
            let content =
                Content { dedupe_percent: percent, dedupe_mode: mode, dedupe_set_percent: 5, ..Content::default() };
            let mut filler = filler(content);
            (0..10_000).map(|_| filler.next_seed()).collect::<Vec<u64>>()
        };
        let unique = |seeds: &[u64]| seeds.iter().collect::<std::collections::BTreeSet<_>>().len();
        let repeated = seeds(DedupeMode::Repeat, 30);
        assert!((6800..7200).contains(&unique(&repeated)), "{}", unique(&repeated));
        // A repetition follows the block that it repeats.
        let runs = repeated.windows(2).filter(|pair| pair[0] != pair[1]).count() + 1;
        assert_eq!(runs, unique(&repeated));
        let set = seeds(DedupeMode::WorkingSet, 80);
        assert!((1900..2200).contains(&unique(&set)), "{}", unique(&set));
        assert_eq!(unique(&seeds(DedupeMode::Repeat, 100)), 1);
        assert_eq!(unique(&seeds(DedupeMode::WorkingSet, 100)), 50);
    }
}
