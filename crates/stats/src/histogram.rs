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

    /// The smallest recorded value such that at least `percent` (0 to 100) of all values are no larger, to within
    /// [`BUCKET_ERROR`]; `None` if empty.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let rank = rank(percent, self.total)?;
        let mut seen: u64 = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            seen = seen.saturating_add(count);
            if seen >= rank {
                return Some(middle(index).min(self.max));
            }
        }
        Some(self.max)
    }

    /// The buckets that are not empty, in the order of their values.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(index, &count)| Bucket { index, count })
    }
}

/// A bucket that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Its place among all buckets.
    pub index: usize,
    /// Number of values in it.
    pub count: u64,
}

impl Bucket {
    /// The value that stands for all in it.
    pub fn middle(&self) -> u64 {
        middle(self.index)
    }

    /// The values that it holds: from the first to below the second.
    pub fn range(&self) -> (f64, f64) {
        (lowest(self.index) as f64, lowest(self.index + 1) as f64)
    }
}

/// The rank, from 1, of a percentile among `total` values: the smallest whole number of values that is at least `percent` of
/// them. In whole numbers, because 99.9 % of 10,000 is 9,990.000000000002 in floating point, one rank too high. Digits of the
/// percentage beyond the sixth after the point are rounded. `None` without values or a percentage.
fn rank(percent: f64, total: u64) -> Option<u64> {
    const WHOLE: u128 = 100_000_000;
    if total == 0 || percent.is_nan() {
        return None;
    }
    let parts = (percent.clamp(0.0, 100.0) * 1e6).round() as u128;
    let rank = (u128::from(total) * parts).div_ceil(WHOLE);
    Some(u64::try_from(rank).unwrap_or(total).clamp(1, total))
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

/// The lowest value of a bucket.
fn lowest(index: usize) -> u64 {
    if index < 2 * SUB_BUCKETS {
        return index as u64;
    }
    let shift = (index >> PRECISION_BITS) as u32 - 1;
    (((index & (SUB_BUCKETS - 1)) + SUB_BUCKETS) as u64) << shift
}

fn middle(index: usize) -> u64 {
    lowest(index).midpoint(lowest(index + 1))
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
        let buckets = self.buckets().map(|bucket| (bucket.index as u32, bucket.count)).collect();
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
            let read = histogram.percentile(50.0).unwrap() as f64;
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
        assert_eq!([50.0, 99.0, 100.0].map(|percent| histogram.percentile(percent)), [50, 99, 100].map(Some));
        assert_eq!(histogram.mean(), Some(50.5));
        assert_eq!(Histogram::new().percentile(50.0), None);
    }

    /// In floating point, 99.9 / 100 · 10,000 is 9,990.000000000002.
    #[test]
    fn ranks_are_whole_numbers() {
        for (percent, total, expected) in [
            (99.9, 10_000, 9_990),
            (99.9, 10_001, 9_991),
            (99.99, 1_000_000, 999_900),
            (99.0, 100, 99),
            (50.0, 3, 2),
            (0.0, 5, 1),
            (100.0, 5, 5),
            (100.0, u64::MAX, u64::MAX),
            (33.3, 1000, 333),
        ] {
            assert_eq!(rank(percent, total), Some(expected), "p{percent} of {total}");
        }
        assert_eq!((rank(50.0, 0), rank(f64::NAN, 5)), (None, None));
        // Below 256, each value has a bucket of its own.
        let mut histogram = Histogram::new();
        histogram.record(10, 9_990);
        histogram.record(20, 10);
        assert_eq!((histogram.percentile(99.9), histogram.percentile(99.91)), (Some(10), Some(20)));
    }

    #[test]
    fn buckets_have_ranges_that_hold_their_values() {
        for value in [0, 1, 255, 256, 257, 1000, 123_456_789] {
            let mut histogram = Histogram::new();
            histogram.record(value, 3);
            let found: Vec<Bucket> = histogram.buckets().collect();
            let [only] = found.as_slice() else { panic!("{found:?}") };
            let (low, high) = only.range();
            assert!(low <= value as f64 && (value as f64) < high && only.count == 3, "{value}: {low} to {high}");
            assert!(high - low <= (low * BUCKET_ERROR).max(1.0));
        }
    }

    #[test]
    fn counts_beyond_64_bits_and_a_bucket_that_does_not_exist_are_refused() {
        for buckets in [format!("[1,{0}],[1,{0}]", u64::MAX), format!("[{BUCKETS},1]")] {
            let text = format!("{{\"buckets\":[{buckets}],\"sum\":0,\"max\":0}}");
            assert!(serde_json::from_str::<Histogram>(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn merging_counts_beyond_64_bits_stays_at_the_most() {
        let text = format!("{{\"buckets\":[[1,{0}]],\"sum\":{0},\"max\":1}}", u64::MAX);
        let mut full: Histogram = serde_json::from_str(&text).unwrap();
        let other = full.clone();
        full.merge(&other);
        assert_eq!((full.total(), full.sum(), full.percentile(100.0)), (u64::MAX, u64::MAX, Some(1)));
        let mut two: Histogram = serde_json::from_str(&text.replace("[[1,", "[[2,")).unwrap();
        two.merge(&other);
        assert_eq!(two.percentile(100.0), Some(1), "both buckets are full, and the first holds as many as all");
    }
}
