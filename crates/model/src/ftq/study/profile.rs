//! Takes a period of many cycles out of a series: the mean of the series at each phase of the period.
//!
//! The kernel's tick is in nearly every recording. A quantum is no whole part of it, so it falls into slots in a pattern of its
//! own, which a dip of one shape does not describe: what a dip leaves of a tick hides rarer stalls. The mean at each phase, in
//! steps much finer than a slot, is the pattern. For fewer cycles that mean would be noise. It contains each shorter period that
//! fits into the longer one, too: one that is not found before is lost.

use crate::stats::quantile::quantile;
use crate::stats::series::fold::Dip;

/// Cycles of a period from which on it is taken out in this way.
const MANY_CYCLES: f64 = 512.0;
/// The same for a period whose dip has a shape, because it covers at least [`SHAPED`] slots.
const FEWEST_CYCLES: f64 = 64.0;
/// Slots of such a dip.
const SHAPED: f64 = 8.0;
/// Steps in a slot.
const STEPS: f64 = 16.0;
/// Fewest slots that fall into a step on average.
const FEWEST_SLOTS: f64 = 64.0;
/// The period is refined by what moves the last cycle by this number of slots, in each direction.
const UNCERTAIN: f64 = 0.5;
/// Rarer values, on each side, are clipped before the mean is taken: a single long stall would leave its mark in every cycle.
const RARE: f64 = 0.02;
/// Trials in each direction.
const TRIALS: i32 = 24;

/// Whether the mean at each phase describes a period in a series of `slots` better than its dip alone.
pub(super) fn describes(dip: &Dip, slots: usize) -> bool {
    let cycles = slots as f64 / dip.period;
    cycles >= MANY_CYCLES || cycles >= FEWEST_CYCLES && dip.width * dip.period >= SHAPED
}

/// Subtracts from each series its mean at each phase of the period near that of `dip`. The period is refined on the last series.
pub(super) fn take_out(series: &mut [Vec<f64>], dip: &Dip) {
    let Some(values) = series.last() else { return };
    let typical = typical(values, dip);
    let steps = (dip.period * STEPS).min(values.len() as f64 / FEWEST_SLOTS).max(1.0) as usize;
    let cycles = values.len() as f64 / dip.period;
    let tried = (-TRIALS..=TRIALS).map(|trial| {
        let moved = f64::from(trial) / f64::from(TRIALS) * UNCERTAIN / (dip.period * cycles);
        Profile::of(&typical, dip.period * (1.0 + moved), steps)
    });
    let Some(best) = tried.max_by(|one, other| one.explained.total_cmp(&other.explained)) else { return };
    for values in series {
        let profile = Profile::of(&self::typical(values, dip), best.period, steps);
        for (slot, value) in values.iter_mut().enumerate() {
            *value -= profile.means.get(profile.step(slot)).copied().unwrap_or(0.0);
        }
    }
}

/// The values without those that are rarer than the dips of the period.
fn typical(values: &[f64], dip: &Dip) -> Vec<f64> {
    let mut sorted = values.to_vec();
    let rare = RARE.min(dip.width / 4.0);
    let (low, high) = (quantile(&mut sorted, rare), quantile(&mut sorted, 1.0 - RARE));
    let (low, high) = (low.unwrap_or(0.0), high.unwrap_or(0.0));
    values.iter().map(|value| value.clamp(low, high.max(low))).collect()
}

/// A series by phase.
struct Profile {
    period: f64,
    /// Deviations from the mean of all.
    means: Vec<f64>,
    /// Sum of the squares that the means explain.
    explained: f64,
}

impl Profile {
    fn of(values: &[f64], period: f64, steps: usize) -> Self {
        let mut profile = Self { period, means: vec![0.0; steps], explained: 0.0 };
        let mut counts = vec![0.0; steps];
        let all = values.iter().sum::<f64>() / values.len().max(1) as f64;
        for (slot, value) in values.iter().enumerate() {
            let step = profile.step(slot);
            if let (Some(sum), Some(count)) = (profile.means.get_mut(step), counts.get_mut(step)) {
                *sum += value - all;
                *count += 1.0;
            }
        }
        for (mean, count) in profile.means.iter_mut().zip(counts) {
            if count > 0.0 {
                profile.explained += *mean * *mean / count;
                *mean /= count;
            }
        }
        profile
    }

    /// The phase of a slot's middle.
    fn step(&self, slot: usize) -> usize {
        (((slot as f64 + 0.5) / self.period).fract() * self.means.len() as f64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tick of 4 ms in quanta of 440 µs: it takes 6 % of a slot, or of two.
    #[test]
    fn a_tick_between_slots_leaves_nothing() {
        const PERIOD: f64 = 4.0 / 0.44;
        let lost = |slot: usize| {
            let (begin, end) = (slot as f64, slot as f64 + 1.0);
            let tick = (begin / PERIOD).ceil() * PERIOD;
            let before = tick - PERIOD;
            let within = |at: f64| ((at + 0.06).min(end) - at.max(begin)).max(0.0);
            within(tick) + within(before)
        };
        let mut values: Vec<f64> = (0..68_000).map(|slot| -lost(slot)).collect();
        // Known a little wrong, and a rare stall beside it.
        let stall = 30_000..30_010;
        stall.clone().for_each(|slot| values[slot] -= 0.5);
        let mut series = [values];
        take_out(
            &mut series,
            &Dip { period: PERIOD * (1.0 + 0.3 / 68_000.0), phase: 0.0, width: 0.12, explained: 1.0 },
        );
        let rest = series[0].iter().enumerate().filter(|(slot, _)| !stall.contains(slot)).map(|(_, value)| value.abs());
        assert!(rest.fold(0.0, f64::max) < 0.02);
        assert!(series[0][stall].iter().all(|value| (value + 0.5).abs() < 0.05));
    }

    /// 0.5 ms every 100 ms: deep, and rarer than what is clipped elsewhere.
    #[test]
    fn rare_deep_dips_are_taken_out_whole() {
        let value = |slot: usize| if slot % 227 == 50 { -1.0 } else { 0.0 };
        let mut series = [(0..136_200).map(value).collect::<Vec<f64>>()];
        take_out(&mut series, &Dip { period: 227.0, phase: 50.0 / 227.0, width: 1.0 / 227.0, explained: 1.0 });
        assert!(series[0].iter().all(|value| value.abs() < 0.05));
    }
}
