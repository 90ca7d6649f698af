//! Random order of measurements, from a seed that the record stores: arms of a block, starts of workers, boots.

use super::permutation::{below, split_mix};

/// Draws random orders.
pub(crate) struct Shuffler {
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
