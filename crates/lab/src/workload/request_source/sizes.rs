//! Draws the size of a request that has several to choose from.

use crate::workload::permutation::{below, split_mix};
use model::plan::Sizes;

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

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
}
