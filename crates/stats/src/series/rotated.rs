//! How often chance alone lays the low places of a series over each other as well as a period does.
//!
//! The noise of a spectrum's lowest bins is hardly known: there are few of them, and the power of a busy machine's noise
//! changes by decades over them. So a period of few cycles is also tested without a model of the noise: each of its cycles
//! is rotated by a random amount. What is low within a cycle stays, its place is lost. For many cycles, the spectrum is the
//! sharper test.

use super::fold::{Column, Dip, NoiseByWidth, best_dip, most_columns};
use super::mean;
use crate::basics::Random;

/// Probability above which a period of few cycles is not reported. The spectrum has already found it improbable.
pub const FALSE_ALARM: f64 = 1e-3;
/// The spectrum knows the noise around the bins of a period with this many cycles or more.
pub const ENOUGH_CYCLES: f64 = 64.0;
/// Times that all cycles are rotated.
const ROTATIONS: usize = 200;
/// Euler's constant: the mean of Gumbel's distribution.
const EULER: f64 = 0.577_215_664_901_532_9;
/// First state of the random numbers: a study of the same record always has the same result.
const SEED: u64 = 0x5eed;

/// Logarithm of the probability that a series without a period has one of few cycles that explains as much as `dip`: what
/// chance reaches with this period, times the number of periods that could be told from each other. Two can if they place the
/// last cycle a dip's width apart. It is a rough figure: the distribution is fitted to 200 rotations, and few stalls have a
/// longer tail.
pub fn ln_false_alarm(values: &[f64], noise: &NoiseByWidth, dip: &Dip) -> f64 {
    let cycles = ENOUGH_CYCLES.max(values.len() as f64 / dip.period);
    ln_probability(values, noise, dip) + (cycles / dip.width).max(1.0).ln()
}

/// Logarithm of the probability that low places whose phase is random explain as much as `dip`. The greatest of many
/// such sums is distributed as Gumbel's; its parameters are those of the rotated series, by their mean and standard
/// deviation, so that probabilities far below 1 ÷ 200 can be told.
fn ln_probability(values: &[f64], noise: &NoiseByWidth, dip: &Dip) -> f64 {
    let Some(columns) = most_columns(values, dip.period) else { return 0.0 };
    let cycles = Cycles::of(values, dip.period, columns);
    let slots_per_column = dip.period / columns as f64;
    let noise_of = |width: usize| noise.at(width as f64 * slots_per_column);
    let mut sums = Vec::new();
    let mut explained = |profile: &[Column]| best_dip(profile, &mut sums, noise_of).map_or(0.0, |(.., most)| most);
    let mut profile = Vec::new();
    cycles.laid_over(|| 0, &mut profile);
    let found = explained(&profile);
    let mut random = Random(SEED);
    let rotated: Vec<f64> = (0..ROTATIONS)
        .map(|_| {
            cycles.laid_over(|| (random.part() * columns as f64) as usize, &mut profile);
            explained(&profile)
        })
        .collect();
    // What a rotation reaches is no evidence, whatever the fit says.
    if rotated.iter().any(|rotated| *rotated >= found) { 0.0 } else { ln_gumbel_tail(&rotated, found) }
}

/// Logarithm of the probability that a variable of Gumbel's distribution, of which these are examples, exceeds `value`.
fn ln_gumbel_tail(examples: &[f64], value: f64) -> f64 {
    let count = examples.len() as f64;
    let mean = mean(examples);
    let variance = examples.iter().map(|example| (example - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let scale = (6.0 * variance).sqrt() / std::f64::consts::PI;
    if scale <= 0.0 {
        return if value > mean { f64::NEG_INFINITY } else { 0.0 };
    }
    let above = (value - (mean - EULER * scale)) / scale;
    // 1 − exp(−exp(−above)), which is exp(−above) far out.
    if above > 30.0 { -above } else { (-(-(-above).exp()).exp_m1()).ln() }
}

/// A series by cycle and column of a period.
struct Cycles {
    columns: usize,
    /// The places (cycle × columns + column) and values of the slots, in order.
    slots: Vec<(usize, f64)>,
}

impl Cycles {
    fn of(values: &[f64], period: f64, columns: usize) -> Self {
        let turn = columns as f64 / period;
        // A slot counts where its middle is.
        let place = |slot: usize| ((slot as f64 + 0.5) * turn) as usize;
        Self { columns, slots: values.iter().enumerate().map(|(slot, value)| (place(slot), *value)).collect() }
    }

    /// All cycles as one, each rotated by another `rotation` in columns.
    fn laid_over(&self, mut rotation: impl FnMut() -> usize, profile: &mut Vec<Column>) {
        profile.clear();
        profile.resize(self.columns, Column::default());
        let (mut cycle, mut rotated) = (0, rotation());
        for (place, value) in &self.slots {
            if place / self.columns != cycle {
                (cycle, rotated) = (place / self.columns, rotation());
            }
            if let Some(column) = profile.get_mut((place + rotated) % self.columns) {
                column.sum += value;
                column.count += 1.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOTS: usize = 60_000;

    /// Zeros with stalls of 40 slots at these places.
    fn stalls(begins: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut values = vec![0.0; SLOTS];
        for begin in begins {
            values.iter_mut().skip(begin as usize).take(40).for_each(|value| *value = -1.0);
        }
        values
    }

    fn ln_probability_of(values: &[f64], cycles: f64) -> f64 {
        let (noise, period) = (NoiseByWidth::of(values), SLOTS as f64 / cycles);
        ln_probability(values, &noise, &Dip { period, phase: 0.0, width: 0.01, explained: 0.0 })
    }

    #[test]
    fn six_stalls_in_phase_are_no_chance() {
        let period = SLOTS as f64 / 6.0;
        let found = ln_probability_of(&stalls((0..6).map(|cycle| (f64::from(cycle) + 0.4) * period)), 6.0);
        assert!(found < -25.0, "{found}");
    }

    #[test]
    fn stalls_at_random_places_are_chance() {
        let random = &mut Random(1);
        for _ in 0..20 {
            let found = ln_probability_of(&stalls((0..60).map(|_| random.part() * SLOTS as f64)), 6.0);
            assert!(found > -8.0, "{found}");
        }
    }

    #[test]
    fn the_tail_is_that_of_the_distribution() {
        let random = &mut Random(1);
        let examples: Vec<f64> = (0..20_000).map(|_| 5.0 - 2.0 * (-random.part().max(1e-12).ln()).ln()).collect();
        // scipy.stats.gumbel_r.logsf(value, 5, 2)
        for (value, ln_tail) in [(5.0, -0.4587), (9.0, -2.0669), (45.0, -20.0)] {
            let found = ln_gumbel_tail(&examples, value);
            assert!((found / ln_tail - 1.0).abs() < 0.05, "{value}: {found}");
        }
        assert_eq!(ln_gumbel_tail(&[1.0; 5], 1.0), 0.0);
        assert_eq!(ln_gumbel_tail(&[1.0; 5], 2.0), f64::NEG_INFINITY);
    }
}
