//! What the worker does when nothing disturbs it, as it drifts over the recording.

use crate::basics::quantile;

/// Points of the slow trend that periods are searched without. Each lies in a part of the recording that contains
/// most of a period or more, so that no period is taken for a trend.
const TREND_POINTS: usize = 6;
/// Parts of the recording that have a level of their own.
const PARTS: usize = 64;
/// Fewest slots of such a part.
const FEWEST_SLOTS: usize = 64;
/// Parts on each side that decide with a part about its level: a stall may cover half of all of them.
const NEIGHBOURS: usize = 4;
/// The quantile of a part that is its level: three quarters of a stall's part may be stalled.
const UNDISTURBED: f64 = 0.75;

/// The slow trend of `values`: straight lines between the medians of [`TREND_POINTS`] parts.
pub fn trend(values: &[f64]) -> Vec<f64> {
    let part = values.len().div_ceil(TREND_POINTS).max(1);
    let medians: Vec<f64> = values.chunks(part).map(|part| quantile(&mut part.to_vec(), 0.5).unwrap_or(0.0)).collect();
    let value = |slot: usize| {
        let place = ((slot as f64 + 0.5) / part as f64 - 0.5).clamp(0.0, medians.len().saturating_sub(1) as f64);
        let low = medians.get(place as usize).copied().unwrap_or(0.0);
        let high = medians.get(place as usize + 1).copied().unwrap_or(low);
        low + (high - low) * place.fract()
    };
    (0..values.len()).map(value).collect()
}

/// The level of each slot: the undisturbed amount of its surroundings. It follows steps, and no stall that is shorter
/// than a fifteenth of the recording.
pub fn local_level(values: &[f64]) -> Vec<f64> {
    let part = values.len().div_ceil(PARTS).max(FEWEST_SLOTS);
    let levels: Vec<f64> =
        values.chunks(part).map(|part| quantile(&mut part.to_vec(), UNDISTURBED).unwrap_or(0.0)).collect();
    let smooth = |number: usize| {
        let around = number.saturating_sub(NEIGHBOURS)..(number + NEIGHBOURS + 1).min(levels.len());
        quantile(&mut levels.get(around).unwrap_or_default().to_vec(), 0.5).unwrap_or(0.0)
    };
    let smoothed: Vec<f64> = (0..levels.len()).map(smooth).collect();
    (0..values.len()).map(|slot| smoothed.get(slot / part).copied().unwrap_or(0.0)).collect()
}

/// A robust standard deviation: the median distance of `values` from `around`, times 1.4826, which makes it the
/// standard deviation of normal noise.
pub fn spread(values: &[f64], around: &[f64]) -> f64 {
    let mut distances: Vec<f64> = values.iter().zip(around).map(|(value, level)| (value - level).abs()).collect();
    1.4826 * quantile(&mut distances, 0.5).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_follows_a_step_but_no_stall() {
        let value = |slot: usize| match slot {
            3000..3400 => 0.0,
            5000.. => 50.0,
            _ => 100.0,
        };
        let values: Vec<f64> = (0..10_000).map(value).collect();
        let level = local_level(&values);
        assert!(level.iter().take(4900).all(|level| *level == 100.0));
        assert!(level.iter().skip(5200).all(|level| *level == 50.0));
    }

    #[test]
    fn a_trend_is_a_line_through_a_drift() {
        let values: Vec<f64> = (0..6000).map(f64::from).collect();
        let trend = trend(&values);
        let far = trend.iter().zip(&values).skip(500).take(5000).map(|(trend, value)| (trend - value).abs());
        assert!(far.fold(0.0, f64::max) < 1.0);
    }
}
