//! Latencies of I/Os counted by value, for reports in the form of programs that show a distribution.

use crate::histogram::Histogram;
use crate::unit::{Hertz, Ticks};

/// Latencies with the number of I/Os of each, in nanoseconds, ascending. A value stands for a bucket of the histogram that it was
/// recorded in, at most 0.78 % wide, whose middle it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyBins(Vec<(u64, u64)>);

impl LatencyBins {
    /// The filled buckets of a histogram of ticks of `clock`.
    pub fn of(histogram: &Histogram, clock: Hertz) -> Self {
        let mut bins: Vec<(u64, u64)> = Vec::new();
        for bucket in histogram.buckets() {
            let ticks = Ticks(bucket.middle().min(histogram.max()));
            let nanos = clock.nanos(ticks).0;
            match bins.last_mut() {
                // A tick may be shorter than a nanosecond.
                Some((value, count)) if *value == nanos => *count = count.saturating_add(bucket.count),
                _ => bins.push((nanos, bucket.count)),
            }
        }
        Self(bins)
    }

    /// Pairs of nanoseconds and I/Os, ascending.
    pub fn pairs(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// I/Os of all values.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, count)| *count).fold(0, u64::saturating_add)
    }

    /// The smallest value; `None` without I/Os.
    pub fn min(&self) -> Option<u64> {
        self.0.first().map(|(value, _)| *value)
    }

    /// The standard deviation of a sample, in nanoseconds; 0 for fewer than two I/Os.
    pub fn deviation(&self) -> f64 {
        let total = self.total() as f64;
        if total < 2.0 {
            return 0.0;
        }
        let weighted = |of: &dyn Fn(f64) -> f64| -> f64 {
            self.0.iter().map(|(value, count)| of(*value as f64) * *count as f64).sum()
        };
        let mean = weighted(&|value| value) / total;
        (weighted(&|value| (value - mean).powi(2)) / (total - 1.0)).sqrt()
    }

    /// The value that `percent` of the I/Os do not exceed, however few there are; `None` without I/Os.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let rank = (self.total() as f64 * percent / 100.0).ceil();
        let mut seen: u64 = 0;
        let reaches = |(_, count): &&(u64, u64)| {
            seen = seen.saturating_add(*count);
            seen as f64 >= rank
        };
        self.0.iter().find(reaches).or(self.0.last()).map(|(value, _)| *value)
    }

    /// The share of all I/Os, in percent, from `begin` to below `end` nanoseconds; 0 without I/Os.
    pub fn share(&self, begin: u64, end: u64) -> f64 {
        let total = self.total();
        let within = self.0.iter().filter(|(value, _)| (begin..end).contains(value));
        let count = within.map(|(_, count)| *count).fold(0, u64::saturating_add);
        if total > 0 { count as f64 * 100.0 / total as f64 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_is_described_by_its_buckets() {
        let mut histogram = Histogram::new();
        histogram.record(100, 3);
        histogram.record(200, 1);
        let bins = LatencyBins::of(&histogram, Hertz(1e9));
        assert_eq!(bins.pairs(), [(100, 3), (200, 1)]);
        assert_eq!((bins.total(), bins.min(), bins.deviation()), (4, Some(100), 50.0));
        assert_eq!([75.0, 75.1, 100.0].map(|percent| bins.percentile(percent)), [Some(100), Some(200), Some(200)]);
        assert_eq!((bins.share(100, 200), bins.share(0, 100)), (75.0, 0.0));
        // Two ticks of 0.4 ns are one nanosecond.
        let fast = LatencyBins::of(&histogram, Hertz(1e12));
        assert_eq!(fast.pairs(), [(0, 4)]);
        let none = LatencyBins::default();
        assert_eq!((none.min(), none.percentile(50.0), none.deviation(), none.share(0, 9)), (None, None, 0.0, 0.0));
    }
}
