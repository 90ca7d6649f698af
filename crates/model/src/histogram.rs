//! A latency histogram of fixed size whose `record` is a handful of instructions.
//!
//! Buckets are log-linear: each power of two is divided into 128 buckets, so the relative error of a value is at most
//! 1/128 (0.78 %). The size does not depend on the number of I/Os. Values are in TSC ticks; the study converts them.

use serde::{Deserialize, Serialize};

/// log2 of the buckets per power of two. 7 bounds the relative error at 2^-7 = 0.78 %.
const PRECISION_BITS: u32 = 7;
const SUB_BUCKETS: usize = 1 << PRECISION_BITS;
/// Values of 2^44 ticks and more (over an hour and a half at 3 GHz) share the last bucket.
const MAX_BITS: u32 = 44;
const BUCKETS: usize = (MAX_BITS - PRECISION_BITS + 1) as usize * SUB_BUCKETS;

/// The maximum relative width of a bucket, and so the maximum error of a value read from the histogram.
pub const BUCKET_ERROR: f64 = 1.0 / SUB_BUCKETS as f64;

/// Counts of values in buckets at most 0.78 % wide.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    total: u64,
    sum: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram (38 KiB).
    pub fn new() -> Self {
        Self { counts: Box::new([0; BUCKETS]), total: 0, sum: 0, max: 0 }
    }

    /// Counts `times` occurrences of `value`.
    #[inline(always)]
    pub fn record(&mut self, value: u64, times: u64) {
        self.counts[bucket(value)] += times;
        self.total += times;
        self.sum = self.sum.wrapping_add(value.wrapping_mul(times));
        self.max = self.max.max(value);
    }

    /// Clears all counts and keeps the memory. Returns at once if the histogram is empty.
    pub fn clear(&mut self) {
        if self.total == 0 {
            return;
        }
        self.counts.fill(0);
        (self.total, self.sum, self.max) = (0, 0, 0);
    }

    /// Adds the counts of `other`. Counts from a file may be arbitrary; they saturate at 64 bits.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine = mine.saturating_add(*theirs);
        }
        self.total = self.total.saturating_add(other.total);
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// Number of recorded values.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The largest value, exact.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The sum of all values, exact.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The mean, exact; `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        (self.total > 0).then(|| self.sum as f64 / self.total as f64)
    }

    /// The smallest recorded value such that at least `fraction` (0 to 1) of all values are no larger, to within
    /// [`BUCKET_ERROR`]; `None` if empty.
    pub fn quantile(&self, fraction: f64) -> Option<u64> {
        if self.total == 0 {
            return None;
        }
        let rank = ((self.total as f64 * fraction.clamp(0.0, 1.0)).ceil() as u64).clamp(1, self.total);
        let mut seen: u64 = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            seen = seen.saturating_add(count);
            if seen >= rank {
                return Some(middle(index).min(self.max));
            }
        }
        Some(self.max)
    }
}

#[inline(always)]
fn bucket(value: u64) -> usize {
    // Below SUB_BUCKETS, each value has its own bucket. Above, `shift` drops all but the PRECISION_BITS + 1 leading
    // bits, and the rest selects one of the 128 buckets of that power of two.
    let value = value.min((1 << MAX_BITS) - 1);
    let bits = 63 - (value | SUB_BUCKETS as u64).leading_zeros();
    let shift = bits - PRECISION_BITS;
    ((shift as usize) << PRECISION_BITS) + (value >> shift) as usize
}

fn middle(index: usize) -> u64 {
    if index < 2 * SUB_BUCKETS {
        return index as u64;
    }
    let shift = (index >> PRECISION_BITS) as u32 - 1;
    let low = ((index & (SUB_BUCKETS - 1)) + SUB_BUCKETS) as u64;
    (low << shift) + (1 << shift) / 2
}

/// The serialized histogram: only buckets that are not empty.
#[derive(Serialize, Deserialize)]
struct Sparse {
    buckets: Vec<(u32, u64)>,
    sum: u64,
    max: u64,
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let buckets = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let buckets = buckets.map(|(index, count)| (index as u32, *count)).collect();
        Sparse { buckets, sum: self.sum, max: self.max }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sparse = Sparse::deserialize(deserializer)?;
        let mut histogram = Self { sum: sparse.sum, max: sparse.max, ..Self::new() };
        for (index, count) in sparse.buckets {
            let slot = histogram.counts.get_mut(index as usize);
            let slot = slot.ok_or_else(|| serde::de::Error::custom(format!("no histogram bucket {index}")))?;
            let total = histogram.total.checked_add(count);
            histogram.total = total.ok_or_else(|| serde::de::Error::custom("a histogram counts beyond 64 bits"))?;
            *slot += count; // at most the total
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_is_read_back_within_the_bucket_error(value in 0u64..(1 << MAX_BITS)) {
            let mut histogram = Histogram::new();
            histogram.record(value, 1);
            histogram.record(u64::MAX >> 1, 1); // so that `max` does not clip the answer
            let read = histogram.quantile(0.5).unwrap() as f64;
            prop_assert!((read - value as f64).abs() <= value as f64 * BUCKET_ERROR);
        }

        #[test]
        fn buckets_are_ordered(a in any::<u64>(), b in any::<u64>()) {
            prop_assert_eq!(bucket(a.min(b)).cmp(&bucket(a.max(b))).is_le(), true);
        }

        #[test]
        fn saving_and_loading_changes_nothing(values in proptest::collection::vec(any::<u32>(), 0..50)) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|&value| histogram.record(value.into(), 1));
            let text = serde_json::to_string(&histogram).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
        }
    }

    #[test]
    fn quantiles_follow_the_definition() {
        let mut histogram = Histogram::new();
        (1..=100).for_each(|value| histogram.record(value, 1));
        assert_eq!(histogram.quantile(0.5), Some(50));
        assert_eq!(histogram.quantile(0.99), Some(99));
        assert_eq!(histogram.quantile(1.0), Some(100));
        assert_eq!(histogram.mean(), Some(50.5));
        assert_eq!(Histogram::new().quantile(0.5), None);
    }

    #[test]
    fn counts_beyond_64_bits_are_refused() {
        let text = format!("{{\"buckets\":[[1,{0}],[1,{0}]],\"sum\":0,\"max\":0}}", u64::MAX);
        assert!(serde_json::from_str::<Histogram>(&text).is_err());
    }

    #[test]
    fn merging_counts_beyond_64_bits_stays_at_the_most() {
        let text = format!("{{\"buckets\":[[1,{0}]],\"sum\":{0},\"max\":1}}", u64::MAX);
        let mut full: Histogram = serde_json::from_str(&text).unwrap();
        let other = full.clone();
        full.merge(&other);
        assert_eq!((full.total(), full.sum(), full.quantile(1.0)), (u64::MAX, u64::MAX, Some(1)));
        let mut two: Histogram = serde_json::from_str(&text.replace("[[1,", "[[2,")).unwrap();
        two.merge(&other);
        assert_eq!(two.quantile(1.0), Some(1), "both buckets are full, and the first holds as many as all");
    }

    #[test]
    fn a_bucket_that_does_not_exist_is_refused() {
        let text = format!("{{\"buckets\":[[{BUCKETS},1]],\"sum\":0,\"max\":0}}");
        assert!(serde_json::from_str::<Histogram>(&text).is_err());
    }
}
