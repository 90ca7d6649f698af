//! Noise: bytes that neither compress nor repeat, made fast enough for the measured loop.

use crate::workload::permutation::split_mix;

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

    #[test]
    fn noise_has_each_byte_equally_often_and_no_word_twice() {
        let mut memory = vec![0; 1 << 20];
        Noise::new(7).fill(&mut memory);
        let mut counts = [0_u32; 256];
        memory.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        // 4096 of each, give or take six standard deviations.
        assert!(counts.iter().all(|count| (3712..4480).contains(count)), "{counts:?}");
        let mut words: Vec<&[u8]> = memory.chunks(8).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 1 << 17);
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
