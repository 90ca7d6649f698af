//! Ends a job when it is steady: fio's `steadystate`.

use model::plan::{SteadyMetric, SteadyState};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// fio looks once a second.
const INTERVAL: Duration = Duration::from_secs(1);

/// The values of the last seconds of a job.
pub(super) struct SteadyWatch {
    criterion: SteadyState,
    /// When the first look was.
    begin: Option<Instant>,
    /// When the last value was taken, and the count at that time; `None` before the ramp is over.
    last: Option<(Instant, u64)>,
    values: VecDeque<f64>,
    /// Values that are looked at.
    wanted: usize,
}

impl SteadyWatch {
    /// `None` if the job does not end so.
    pub fn new(criterion: Option<SteadyState>) -> Option<Self> {
        let criterion = criterion.filter(|criterion| criterion.duration.0 > 0)?;
        let seconds = criterion.duration.duration().as_secs();
        let wanted = usize::try_from(seconds).unwrap_or(usize::MAX).max(1);
        Some(Self { criterion, begin: None, last: None, values: VecDeque::new(), wanted })
    }

    /// Looks at what the job has done until now, I/Os and bytes. Returns whether it is steady.
    pub fn is_steady(&mut self, now: Instant, (ios, bytes): (u64, u64)) -> bool {
        let done = match self.criterion.of {
            SteadyMetric::Iops => ios,
            SteadyMetric::Bytes => bytes,
        };
        let begin = *self.begin.get_or_insert(now);
        if now.duration_since(begin) < self.criterion.ramp.duration() {
            return false;
        }
        let Some((at, before)) = self.last else {
            self.last = Some((now, done));
            return false;
        };
        let passed = now.duration_since(at);
        if passed < INTERVAL {
            return false;
        }
        self.last = Some((now, done));
        self.values.push_back(done.saturating_sub(before) as f64 / passed.as_secs_f64());
        if self.values.len() > self.wanted {
            self.values.pop_front();
        }
        self.values.len() == self.wanted && self.within()
    }

    /// Whether the slope or the largest deviation of the values is below the limit.
    fn within(&self) -> bool {
        let count = self.values.len() as f64;
        let mean = self.values.iter().sum::<f64>() / count;
        let found = if self.criterion.by_slope {
            let middle = (count - 1.0) / 2.0;
            let numbered = || (0..self.values.len()).map(|number| number as f64 - middle).zip(&self.values);
            let squares: f64 = numbered().map(|(place, _)| place * place).sum();
            let products: f64 = numbered().map(|(place, value)| place * (value - mean)).sum();
            if squares > 0.0 { products / squares } else { 0.0 }
        } else {
            self.values.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max)
        };
        let found = if self.criterion.in_percent { 100.0 * found / mean } else { found };
        // A job that does nothing is not steady: 0 / 0.
        found.abs() < self.criterion.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::unit::Nanos;

    /// The second in which a job with these I/Os per second is steady.
    fn steady_after(criterion: SteadyState, rates: &[u64]) -> Option<usize> {
        let mut watch = SteadyWatch::new(Some(criterion)).unwrap();
        let begin = Instant::now();
        let mut done = 0;
        assert!(!watch.is_steady(begin, (0, 0)));
        rates.iter().enumerate().find_map(|(second, rate)| {
            done += rate;
            let now = begin + Duration::from_secs(second as u64 + 1);
            watch.is_steady(now, (done, 0)).then_some(second + 1)
        })
    }

    #[test]
    fn the_slope_or_the_largest_deviation_decides() {
        let seconds = |seconds: u64| Nanos(seconds * 1_000_000_000);
        let by_slope = SteadyState { limit: 1.0, duration: seconds(4), ..SteadyState::USUAL };
        let rates = [100, 110, 120, 130, 131, 132, 131, 132, 131, 131, 131];
        // The slopes of four at a time: 10, 7.2, 4.1, 0.5 and less, of some 130.
        assert_eq!(steady_after(by_slope, &rates), Some(7));
        assert_eq!(steady_after(SteadyState { ramp: seconds(5), ..by_slope }, &rates), Some(9));
        let by_mean = SteadyState { by_slope: false, limit: 2.0, ..by_slope };
        assert_eq!(steady_after(by_mean, &[100, 105, 98, 100, 100, 101, 100]), Some(6));
        let absolute = SteadyState { limit: 3.0, in_percent: false, ..by_mean };
        assert_eq!(steady_after(absolute, &[100, 102, 98, 100]), Some(4));
        assert_eq!(steady_after(by_mean, &[0; 20]), None);
        assert!(SteadyWatch::new(Some(SteadyState::USUAL)).is_none(), "without a duration");
    }
}
