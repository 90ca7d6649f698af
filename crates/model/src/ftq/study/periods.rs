//! Stalls that repeat: found in the spectrum, refined by folding, then taken out of the series before the next search.

use super::fold::{Dip, refine};
use super::level::{local_level, trend};
use super::spectrum::{Comb, FEWEST_PERIODS, SUMS, Spectrum};
use crate::ftq::series::Grid;
use crate::stats::quantile::quantile;

/// Probability of finding a period in a series without any, above which nothing is reported.
pub(super) const FALSE_ALARM: f64 = 1e-4;
/// Most periods that are reported.
const MOST_PERIODS: usize = 8;
/// Most searches: a stall that comes a little early or late leaves a rest, which is found again and is no other period.
const MOST_SEARCHES: usize = 12;
/// Periods that differ by less are the same.
pub(super) const SAME: f64 = 0.02;
/// Values are clipped above this quantile: bursts of speed are no stalls.
const FASTEST: f64 = 0.98;
/// One of the views of the series is clipped below this quantile, so that rare deep stalls do not hide shallow ones that
/// repeat. The others are not, because a deep stall once a second is rarer than that.
const SLOWEST: f64 = 0.02;
/// Number of views: without the slow trend; without the local level, which follows steps; and that one clipped.
const VIEWS: usize = 3;
/// Smaller deviations are rounding errors.
const NOTHING: f64 = 1e-6;
/// Depth below which consecutive slots are one stall, as a part of the undisturbed amount.
const DEEP: f64 = 0.5;
/// The longest stalls that are too few to repeat are cut to the length of the next one.
const TOO_FEW: usize = 3;
/// Factors from a period to the one that may be the fundamental, beside the multiples that its dips suggest.
const FACTORS: [f64; 6] = [2.0, 3.0, 5.0, 1.0 / 2.0, 1.0 / 3.0, 1.0 / 5.0];
/// Multiples that are suggested.
const SUGGESTED: usize = 2;
/// Largest multiple that is suggested.
const LARGEST_MULTIPLE: usize = 1000;
/// How many times as certain another period must be.
const BETTER: f64 = 1.05;
/// Part of the cycles, at each end, that the mean over cycles leaves out.
const TRIMMED: f64 = 0.05;

/// A period.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Period {
    /// Where the series is low.
    pub(super) dip: Dip,
    /// Logarithm of the probability that a series without a period shows one as strong.
    pub(super) ln_false_alarm: f64,
    /// What each period loses.
    pub(super) loss: Loss,
}

/// What the periods of a dip lose.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Loss {
    /// Slots that the worker loses in each period, at its speed in the rest of the period.
    pub(super) slots: f64,
    /// Part of the amount that the dip lacks.
    pub(super) depth: f64,
    /// Periods that lose half of that or more.
    pub(super) seen: u64,
    /// Periods.
    pub(super) of: u64,
}

/// All periods of a series, the strongest first.
pub(super) fn periods(grid: &Grid) -> Vec<Period> {
    let amounts = running(&grid.values);
    let mut rests = [deviations(grid, trend), deviations(grid, local_level)];
    let mut found: Vec<Period> = Vec::new();
    for _ in 0..MOST_SEARCHES {
        let Some((comb, view)) = strongest(&rests) else { break };
        let bins = grid.slots() as f64 / 2.0;
        let ln_false_alarm = comb.ln_probability + (bins * (SUMS.len() * VIEWS) as f64).ln();
        if ln_false_alarm > FALSE_ALARM.ln() {
            break;
        }
        let Some(dip) = fundamental(&view, comb) else { break };
        let loss = losses(&amounts, &dip);
        rests.iter_mut().for_each(|rest| take_out(rest, &dip));
        let again = found.iter().any(|other| (other.dip.period / dip.period - 1.0).abs() < SAME);
        if !again && loss.slots > 0.0 {
            found.push(Period { dip, ln_false_alarm, loss });
        }
        if found.len() == MOST_PERIODS {
            break;
        }
    }
    found
}

/// What the series deviates from its `level`, as a part of its undisturbed amount.
pub(super) fn deviations(grid: &Grid, level: fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let mut sorted = grid.values.clone();
    // A worker that moves in rare lumps has nothing to clip.
    let fast = [FASTEST, 1.0].into_iter().filter_map(|part| quantile(&mut sorted, part)).find(|fast| *fast > 0.0);
    let Some(fast) = fast else { return vec![0.0; grid.slots()] };
    let clipped: Vec<f64> = grid.values.iter().map(|value| value.min(fast)).collect();
    let level = level(&clipped);
    let mut deviations: Vec<f64> = clipped.iter().zip(level).map(|(value, level)| (value - level) / fast).collect();
    cut_single_stalls(&mut deviations);
    deviations
}

/// Cuts the longest stalls, which are too few to repeat, to the length of the next one: they would dominate all
/// frequencies.
fn cut_single_stalls(deviations: &mut [f64]) {
    let mut lengths: Vec<usize> = Vec::new();
    let mut length = 0;
    for deep in deviations.iter().map(|value| *value < -DEEP).chain([false]) {
        match deep {
            true => length += 1,
            false if length > 0 => {
                lengths.push(length);
                length = 0;
            }
            false => {}
        }
    }
    lengths.sort_unstable_by(|one, other| other.cmp(one));
    let longest = lengths.get(TOO_FEW).copied().unwrap_or(1);
    length = 0;
    for value in deviations {
        length = if *value < -DEEP { length + 1 } else { 0 };
        if length > longest {
            *value = 0.0;
        }
    }
}

/// The most significant comb of all views, and its view.
fn strongest(rests: &[Vec<f64>]) -> Option<(Comb, Vec<f64>)> {
    let clipped = |rest: &Vec<f64>| -> Option<Vec<f64>> {
        let least = quantile(&mut rest.clone(), SLOWEST)?;
        Some(rest.iter().map(|value| value.max(least)).collect())
    };
    let views = rests.iter().cloned().chain(rests.last().and_then(clipped));
    let best = |view: Vec<f64>| {
        if view.iter().all(|value| value.abs() < NOTHING) {
            return None;
        }
        let combs = Spectrum::of(&view)?.combs().into_iter();
        let comb = combs.min_by(|one, other| one.ln_probability.total_cmp(&other.ln_probability))?;
        Some((comb, view))
    };
    views.filter_map(best).min_by(|one, other| one.0.ln_probability.total_cmp(&other.0.ln_probability))
}

/// The dip of the fundamental. A short stall has the same power in hundreds of harmonics, so the spectrum may name any
/// of them; the dip of the true period is the most certain one.
fn fundamental(view: &[f64], comb: Comb) -> Option<Dip> {
    let sums = running(view);
    let longest = view.len() as f64 / FEWEST_PERIODS;
    let mut best = refine(view, view.len() as f64 / comb.periods, 1.0 / comb.harmonics as f64)?;
    let mut most = certainty(&depths(&sums, &best));
    loop {
        let suggested = multiples(&depths(&sums, &best));
        let others = suggested.into_iter().chain(FACTORS).filter_map(|factor| {
            let other = refine(view, best.period * factor, 0.02)?;
            let certain = certainty(&depths(&sums, &other));
            (other.period <= longest && certain > BETTER * most).then_some((certain, other))
        });
        match others.max_by(|one, other| one.0.total_cmp(&other.0)) {
            Some((certain, other)) => (most, best) = (certain, other),
            None => return Some(best),
        }
    }
}

/// The multiples of a period that its dips suggest. If every mth dip is the true one, the dips whose number has one
/// remainder modulo m are deep and the others are not.
fn multiples(depths: &[f64]) -> Vec<f64> {
    let largest = ((depths.len() as f64 / FEWEST_PERIODS) as usize).min(LARGEST_MULTIPLE);
    let explained = |multiple: usize| {
        let mut sums = vec![(0.0, 0.0); multiple];
        for chunk in depths.chunks(multiple) {
            for ((sum, count), depth) in sums.iter_mut().zip(chunk) {
                *sum += depth;
                *count += 1.0;
            }
        }
        sums.iter().map(|(sum, count)| sum * f64::max(*sum, 0.0) / count).fold(0.0, f64::max)
    };
    let mut found: Vec<(f64, usize)> = (2..=largest).map(|multiple| (explained(multiple), multiple)).collect();
    found.sort_by(|one, other| other.0.total_cmp(&one.0));
    found.into_iter().take(SUGGESTED).map(|(_, multiple)| multiple as f64).collect()
}

/// Running sums: element n is the sum of the first n values.
pub(super) fn running(values: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let sums = values.iter().map(|value| {
        sum += value;
        sum
    });
    std::iter::once(0.0).chain(sums).collect()
}

/// A running sum at a place between slots.
fn sum_until(sums: &[f64], place: f64) -> f64 {
    let place = place.clamp(0.0, sums.len().saturating_sub(1) as f64);
    let low = sums.get(place as usize).copied().unwrap_or(0.0);
    let high = sums.get(place as usize + 1).copied().unwrap_or(low);
    low + (high - low) * place.fract()
}

/// Begin and end of each dip that lies completely in a series of `slots`, in slots, and the end of its period.
pub(super) fn cycles(dip: &Dip, slots: usize) -> impl Iterator<Item = (f64, f64, f64)> {
    let (period, begin) = (dip.period, dip.phase * dip.period);
    let length = dip.width * period;
    let count = ((slots as f64 - length - begin) / period).floor().max(-1.0) as i64 + 1;
    (0..count).map(move |cycle| {
        let begin = begin + cycle as f64 * period;
        (begin, begin + length, (begin + period).min(slots as f64))
    })
}

/// How much lower each dip is than the rest of its period.
fn depths(sums: &[f64], dip: &Dip) -> Vec<f64> {
    let mean = |from: f64, to: f64| (sum_until(sums, to) - sum_until(sums, from)) / (to - from).max(1e-9);
    let cycles = cycles(dip, sums.len().saturating_sub(1));
    cycles.map(|(begin, end, next)| mean(end, next.max(end)) - mean(begin, end)).collect()
}

/// How certain it is that the dips of a period are deeper than 0: the t of their mean as a normal deviate (Wallace's
/// approximation, 1959). A multiple of the period has fewer dips; a part of it has some that are none, and noise makes
/// neither more certain.
fn certainty(depths: &[f64]) -> f64 {
    let count = depths.len() as f64;
    let mean = depths.iter().sum::<f64>() / count;
    let squares: f64 = depths.iter().map(|depth| (depth - mean).powi(2)).sum();
    let freedom = count - 1.0;
    if freedom < 1.0 || mean <= 0.0 || squares <= 0.0 {
        // Without any noise, every period that has dips everywhere is certain, and more of them are better.
        return if mean > 0.0 && freedom >= 1.0 { count * 1e6 } else { 0.0 };
    }
    let t_squared = mean * mean * count * freedom / squares;
    (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0) * (freedom * (t_squared / freedom).ln_1p()).sqrt()
}

/// The mean without the lowest and highest twentieth, at least one value each.
fn trimmed_mean(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let cut = ((values.len() as f64 * TRIMMED).ceil() as usize).min(values.len().saturating_sub(1) / 2);
    let kept = values.get(cut..values.len() - cut).unwrap_or_default();
    kept.iter().sum::<f64>() / kept.len().max(1) as f64
}

/// What each period loses, from the running sums of the amount.
fn losses(amounts: &[f64], dip: &Dip) -> Loss {
    let slots = amounts.len().saturating_sub(1);
    let amount = |from: f64, to: f64| sum_until(amounts, to) - sum_until(amounts, from);
    let mut lost = Vec::new();
    let (mut inside, mut expected) = (0.0, 0.0);
    for (begin, end, next) in cycles(dip, slots) {
        let speed = amount(end, next) / (next - end);
        if speed.is_finite() && speed > 0.0 {
            lost.push(end - begin - amount(begin, end) / speed);
            inside += amount(begin, end);
            expected += speed * (end - begin);
        }
    }
    let typical = trimmed_mean(&mut lost);
    Loss {
        slots: typical.max(0.0),
        depth: if expected > 0.0 { (1.0 - inside / expected).clamp(0.0, 1.0) } else { 0.0 },
        seen: lost.iter().filter(|lost| **lost >= 0.5 * typical).count() as u64,
        of: lost.len() as u64,
    }
}

/// Takes a period out: nothing remains in its dips and a slot around them, and elsewhere the mean of each column.
fn take_out(rest: &mut [f64], dip: &Dip) {
    let columns = (dip.period as usize).clamp(1, 4096);
    let column = |slot: usize| ((slot as f64 / dip.period).fract() * columns as f64) as usize;
    let mut means = vec![(0.0, 0.0); columns];
    for (slot, value) in rest.iter().enumerate() {
        if let Some((sum, count)) = means.get_mut(column(slot)) {
            *sum += value;
            *count += 1.0;
        }
    }
    for (slot, value) in rest.iter_mut().enumerate() {
        let (sum, count) = means.get(column(slot)).copied().unwrap_or((0.0, 1.0));
        *value = if in_dip(dip, slot as f64 + 0.5, 1.0) { 0.0 } else { *value - sum / f64::max(count, 1.0) };
    }
}

/// Whether a place (in slots) lies in a dip, or at most `margin` slots beside it.
pub(super) fn in_dip(dip: &Dip, place: f64, margin: f64) -> bool {
    let after = (place - dip.phase * dip.period + margin).rem_euclid(dip.period);
    after < dip.width * dip.period + 2.0 * margin
}
