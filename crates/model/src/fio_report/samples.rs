//! Bandwidth and rate over time, as fio samples them: at intervals of half a second (`bwavgtime`).

use crate::finding::SeriesPoint;

/// Length of a sample, in seconds.
const LENGTH: f64 = 0.5;

/// Smallest, largest, mean and deviation of samples of one quantity; all 0 without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Samples {
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    pub deviation: f64,
    pub count: u64,
}

impl Samples {
    /// Of what `work` counts in each point, per second. A last part shorter than a sample is left out, as in fio.
    pub(super) fn of(series: &[SeriesPoint], work: fn(&SeriesPoint) -> Option<u64>) -> Self {
        let (mut rates, mut seconds, mut done) = (Vec::new(), 0.0, 0.0);
        for point in series {
            let Some(count) = work(point) else { continue };
            seconds += point.window_seconds;
            done += count as f64;
            if seconds >= LENGTH {
                rates.push(done / seconds);
                (seconds, done) = (0.0, 0.0);
            }
        }
        let count = rates.len() as f64;
        if rates.is_empty() {
            return Self::default();
        }
        let mean = rates.iter().sum::<f64>() / count;
        let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        Self {
            min: rates.iter().copied().fold(f64::INFINITY, f64::min),
            max: rates.iter().copied().fold(0.0, f64::max),
            mean,
            deviation: if rates.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 },
            count: rates.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_joined_to_samples_of_half_a_second() {
        let point = |ios| SeriesPoint {
            seconds: 0.0,
            busy_cpus: None,
            iops: None,
            window_seconds: 0.25,
            ios,
            bytes: None,
            cycles: None,
            cycles_per_io: None,
        };
        let series = [Some(1), Some(2), None, Some(5), Some(5), Some(9)].map(point);
        let samples = Samples::of(&series, |point| point.ios);
        assert_eq!((samples.min, samples.max, samples.mean, samples.count), (6.0, 20.0, 13.0, 2));
        assert!((samples.deviation - 98.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(Samples::of(&series, |point| point.bytes), Samples::default());
    }
}
