//! Stalls that repeat: found in the spectrum, refined by folding, then taken out of the series before the next search.

use crate::ftq::series::Grid;
use model::stats::basics::quantile;
use model::stats::series::fold::{Dip, NoiseByWidth, WIDEST, refine, refine_known};
use model::stats::series::level::{local_level, trend};
use model::stats::series::spectrum::{Comb, FALSE_ALARM, FEWEST_PERIODS, SUMS, Spectrum};
use model::stats::series::{mean, rotated};
use std::ops::Range;

/// Most periods that are reported.
const MOST_PERIODS: usize = 8;
const MOST_SEARCHES: usize = 12;
/// A stall that comes a little early or late leaves a rest, which the search finds again and which is no other period. The
/// search ends after this many in a row.
const MOST_RESTS: usize = 3;
/// Standard deviations by which a period that is found after others must be seen more often than in half of its cycles.
const SEEN: f64 = 3.0;
/// Part of its cycles in which it must be seen.
const LEAST_SEEN: f64 = 0.6;
/// Periods that differ by less are the same.
pub(super) const SAME: f64 = 0.02;
/// Values are clipped above this quantile: bursts of speed are no stalls.
const FASTEST: f64 = 0.98;
/// Places of a comb in a bin that count as trials.
const PLACES: usize = 2;
/// Smaller deviations are rounding errors.
const NOTHING: f64 = 1e-6;
/// Depth below which consecutive slots are one stall, as a part of the undisturbed amount.
const DEEP: f64 = 0.5;
/// The longest stalls that are too few to repeat are cut to the length of the next one.
const TOO_FEW: usize = 3;
/// Largest number of parts of a period of which one may be the fundamental. Where a period is no whole number of quanta, a
/// multiple that is one fits the quanta better: 11 ticks of 4 ms are 100 quanta of 440 µs.
const MOST_PARTS: u32 = 16;
/// Multiples that are suggested.
const SUGGESTED: usize = 2;
/// Largest multiple that is suggested.
const LARGEST_MULTIPLE: usize = 1000;
/// How many times as certain another period must be.
const BETTER: f64 = 1.05;
/// Most steps in which the edges of a dip are moved.
const MOST_FITS: usize = 10;
/// Steps in the width of a dip.
const FINE: f64 = 8.0;
/// Part of a dip's depth that slots beside it have to belong to it.
const LOW_BESIDE: f64 = 0.3;
/// Part of the period by which a dip is widened at most on each side.
const WIDENED: f64 = 0.2;
/// Slots beside a dip whose mean replaces it when it is taken out.
const BESIDE: usize = 4;
/// Lengths of a dip on each side of it in which a deep slot belongs to a stall that came early or late.
const NEAR: usize = 6;
/// Part of the cycles, at each end, that the mean over cycles leaves out.
const TRIMMED: f64 = 0.05;
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

impl Loss {
    /// Whether it is surely more than a rest of a period that was taken out, which is in a series that was changed and
    /// in which the probability of a false alarm is therefore not exact.
    fn is_no_rest(&self) -> bool {
        let (seen, of) = (self.seen as f64, self.of as f64);
        self.seen == self.of || 2.0 * seen - of >= SEEN * of.sqrt() && seen >= LEAST_SEEN * of
    }
}

/// All periods of a series, the longest stall first: the kernel's timer tick is the surest of all, and seldom the question.
pub(super) fn periods(grid: &Grid) -> Vec<Period> {
    let mut search = Search {
        amounts: running(&grid.values),
        views: [deviations(grid, trend), deviations(grid, local_level)],
        found: Vec::new(),
        slots: grid.slots(),
    };
    search.run();
    search.found.sort_by(|one, other| other.loss.slots.total_cmp(&one.loss.slots));
    search.found
}

/// The search for periods.
struct Search {
    /// Running sums of the amount.
    amounts: Vec<f64>,
    /// The series without the slow trend, and without the local level, which follows steps; each period that is found is taken out.
    views: [Vec<f64>; 2],
    found: Vec<Period>,
    slots: usize,
}

impl Search {
    /// Finds one period after the other.
    fn run(&mut self) {
        let mut rests = 0;
        for _ in 0..MOST_SEARCHES {
            let Some((dip, ln_false_alarm)) = self.next() else { break };
            if self.profile_describes(&dip) {
                take_out_profile(&mut self.views, &dip);
            } else {
                self.views.iter_mut().for_each(|view| take_out(view, &dip));
            }
            let Some(ln_false_alarm) = ln_false_alarm else { continue };
            rests = if self.is_new(dip, ln_false_alarm) { 0 } else { rests + 1 };
            if rests == MOST_RESTS {
                break;
            }
        }
    }

    /// The dip of the most significant comb; and the logarithm of the probability of a false alarm, if the rotated cycles of a period of
    /// few cycles do not reach it by chance. `None` if no comb is significant.
    fn next(&self) -> Option<(Dip, Option<f64>)> {
        let (comb, view) = strongest(&self.views).filter(|_| self.found.len() < MOST_PERIODS)?;
        let trials = (SUMS.len() * self.views.len() * PLACES) as f64 * self.slots as f64 / 2.0;
        let ln_false_alarm = comb.ln_probability + trials.ln();
        if ln_false_alarm > FALSE_ALARM.ln() {
            return None;
        }
        let noise = NoiseByWidth::of(view);
        let dip = fundamental(view, &noise, comb)?;
        if view.len() as f64 / dip.period >= rotated::ENOUGH_CYCLES {
            return Some((dip, Some(ln_false_alarm)));
        }
        let rotated = rotated::ln_false_alarm(view, &noise, &dip);
        Some((dip, (rotated <= rotated::FALSE_ALARM.ln()).then_some(rotated.max(ln_false_alarm))))
    }

    /// Whether the mean at each phase describes a new period better than its dip alone.
    fn profile_describes(&self, dip: &Dip) -> bool {
        let cycles = self.slots as f64 / dip.period;
        let many = cycles >= MANY_CYCLES || cycles >= FEWEST_CYCLES && dip.width * dip.period >= SHAPED;
        many && !self.is_again(dip)
    }

    /// Whether this period was found before.
    fn is_again(&self, dip: &Dip) -> bool {
        self.found.iter().any(|other| (other.dip.period / dip.period - 1.0).abs() < SAME)
    }

    /// Adds a period, unless it is a rest of another, or an accident.
    fn is_new(&mut self, dip: Dip, ln_false_alarm: f64) -> bool {
        let loss = losses(&self.amounts, &dip);
        let new = !self.is_again(&dip) && loss.is_no_rest() && loss.slots > 0.0;
        if new {
            self.found.push(Period { dip, ln_false_alarm, loss });
        }
        new
    }
}

/// What the series deviates from its `level`, as a part of its undisturbed amount.
fn deviations(grid: &Grid, level: fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
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
    let is_deep = |value: &f64| *value < -DEEP;
    let alike = |one: &f64, next: &f64| is_deep(one) == is_deep(next);
    let deep = deviations.chunk_by(alike).filter(|run| run.iter().any(is_deep));
    let mut lengths: Vec<usize> = deep.map(<[f64]>::len).collect();
    lengths.sort_unstable_by(|one, other| other.cmp(one));
    let longest = lengths.get(TOO_FEW).copied().unwrap_or(1);
    for run in deviations.chunk_by_mut(alike).filter(|run| run.iter().any(is_deep)) {
        run.iter_mut().skip(longest).for_each(|value| *value = 0.0);
    }
}

/// The most significant comb of all views, and its view.
fn strongest(views: &[Vec<f64>]) -> Option<(Comb, &[f64])> {
    let combs = views.iter().filter(|view| view.iter().any(|value| value.abs() >= NOTHING)).flat_map(|view| {
        let combs = Spectrum::of(view).map_or_else(Vec::new, |spectrum| spectrum.combs());
        combs.into_iter().map(|comb| (comb, view.as_slice()))
    });
    combs.min_by(|one, other| one.0.ln_probability.total_cmp(&other.0.ln_probability))
}

/// The dip of the fundamental. A short stall has the same power in hundreds of harmonics, so the spectrum may name any
/// of them; the dip of the true period is the most certain one.
fn fundamental(view: &[f64], noise: &NoiseByWidth, comb: Comb) -> Option<Dip> {
    let sums = running(view);
    let longest = view.len() as f64 / FEWEST_PERIODS;
    let certain = |dip: &Dip| certainty(&depths(&sums, dip));
    let mut best = refine(view, noise, view.len() as f64 / comb.periods, 1.0 / comb.harmonics as f64)?;
    let (mut fitted, mut most) = fitted(best, certain);
    loop {
        let factors =
            multiples(&depths(&sums, &fitted)).into_iter().chain((2..=MOST_PARTS).map(|parts| 1.0 / f64::from(parts)));
        let better = factors.into_iter().find_map(|factor| {
            let other = refine_known(view, noise, best.period * factor).filter(|other| other.period <= longest)?;
            let (fitted, certain) = self::fitted(other, certain);
            (certain > BETTER * most).then_some((other, fitted, certain))
        });
        match better {
            Some(better) => (best, fitted, most) = better,
            None => return Some(widened(&sums, best)),
        }
    }
}

/// A dip with the slots beside it that are low on average, too: a long stall is not worth more than its steadiest part
/// if the noise is slow.
fn widened(sums: &[f64], dip: Dip) -> Dip {
    let all: Vec<Cycle> = cycles(&dip, sums.len().saturating_sub(1)).collect();
    let mean = |slots: &Range<usize>| sum_of(sums, slots) / slots.len().max(1) as f64;
    let depth = |slots: &dyn Fn(&Cycle) -> Option<Range<usize>>| {
        let depths = all.iter().filter_map(|cycle| Some(mean(&cycle.rest) - mean(&slots(cycle)?)));
        depths.sum::<f64>() / all.len().max(1) as f64
    };
    let low = LOW_BESIDE * depth(&|cycle| Some(cycle.dip.clone()));
    let most = (dip.period * WIDENED) as usize;
    let before = (1..=most)
        .take_while(|by| depth(&|cycle| Some(cycle.dip.start.checked_sub(*by)?..cycle.dip.start - by + 1)) > low);
    let after = (0..most).take_while(|by| depth(&|cycle| Some(cycle.dip.end + by..cycle.dip.end + by + 1)) > low);
    let (before, after) = (before.count() as f64 / dip.period, after.count() as f64 / dip.period);
    Dip { phase: (dip.phase - before).rem_euclid(1.0), width: (dip.width + before + after).min(WIDEST), ..dip }
}

/// A dip whose begin and end are moved to where it is most certain, and how certain it is. This is fair to periods of
/// other lengths; what a stall costs is better seen in the dip that explains most.
fn fitted(dip: Dip, certain: impl Fn(&Dip) -> f64) -> (Dip, f64) {
    let (mut best, mut most) = (dip, certain(&dip));
    for _ in 0..MOST_FITS {
        // A slot, or a part of a long dip.
        let step = (1.0 / best.period).max(best.width / FINE);
        let moves = [(-step, step), (0.0, step), (step, -step), (0.0, -step)];
        let moved = moves.into_iter().map(|(begin, longer)| Dip {
            phase: (best.phase + begin).rem_euclid(1.0),
            width: best.width + longer,
            ..best
        });
        let possible = moved.filter(|dip| dip.width * dip.period > 0.5 && dip.width < 1.0 - step);
        let tried = possible.map(|dip| (certain(&dip), dip));
        match tried.max_by(|one, other| one.0.total_cmp(&other.0)).filter(|(certain, _)| *certain > most) {
            Some((certain, dip)) => (most, best) = (certain, dip),
            None => break,
        }
    }
    (best, most)
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

/// A part of running sums: the sum of the values in `slots`.
fn sum_of(sums: &[f64], slots: &Range<usize>) -> f64 {
    let until = |slot: usize| sums.get(slot).or(sums.last()).copied().unwrap_or(0.0);
    until(slots.end) - until(slots.start)
}

/// A dip, and the rest of its period until the next one: the slots whose middle lies there.
pub(super) struct Cycle {
    pub(super) dip: Range<usize>,
    pub(super) rest: Range<usize>,
}

/// The cycles of a dip whose period lies completely in a series of `slots`. One of a dip shorter than a slot may have
/// no slot and is left out.
pub(super) fn cycles(dip: &Dip, slots: usize) -> impl Iterator<Item = Cycle> {
    let (period, begin) = (dip.period, dip.phase * dip.period);
    let length = dip.width * period;
    let slot = move |place: f64| ((place - 0.5).ceil().max(0.0) as usize).min(slots);
    let count = ((slots as f64 - begin - length) / period).ceil().max(0.0) as usize;
    let cycle = move |number: usize| {
        let at = begin + number as f64 * period;
        let (begin, end, next) = (slot(at), slot(at + length), slot(at + period));
        (begin < end && end < next).then_some(Cycle { dip: begin..end, rest: end..next })
    };
    (0..count).filter_map(cycle)
}

/// How much lower each dip is than the rest of its period.
fn depths(sums: &[f64], dip: &Dip) -> Vec<f64> {
    let mean = |slots: &Range<usize>| sum_of(sums, slots) / slots.len() as f64;
    let cycles = cycles(dip, sums.len().saturating_sub(1));
    cycles.map(|cycle| mean(&cycle.rest) - mean(&cycle.dip)).collect()
}

/// How certain it is that the dips of a period are deeper than 0: the t of their mean as a normal deviate (Wallace's
/// approximation, 1959). A multiple of the period has fewer dips; a part of it has some that are none, and noise makes
/// neither more certain.
fn certainty(depths: &[f64]) -> f64 {
    let count = depths.len() as f64;
    let mean = mean(depths);
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
    mean(values.get(cut..values.len() - cut).unwrap_or_default())
}

/// What each period loses, from the running sums of the amount.
fn losses(amounts: &[f64], dip: &Dip) -> Loss {
    let slots = amounts.len().saturating_sub(1);
    let mut lost = Vec::new();
    let (mut inside, mut expected) = (0.0, 0.0);
    for cycle in cycles(dip, slots) {
        let speed = sum_of(amounts, &cycle.rest) / cycle.rest.len() as f64;
        if speed > 0.0 {
            let (done, length) = (sum_of(amounts, &cycle.dip), cycle.dip.len() as f64);
            lost.push(length - done / speed);
            inside += done;
            expected += speed * length;
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

/// Takes a period of few cycles out: each dip, with a slot on each side, becomes a line between what is beside it; and
/// so does every deep slot near it, because stalls come early and late. No more is taken out: the mean of all columns
/// contains every period of which this one is a multiple.
fn take_out(rest: &mut [f64], dip: &Dip) {
    for cycle in cycles(dip, rest.len()) {
        let slots = cycle.dip.start.saturating_sub(1)..(cycle.dip.end + 1).min(rest.len());
        let near = (1 + NEAR * cycle.dip.len()).min(cycle.rest.len() / 4);
        let mean = |slots: Range<usize>| mean(rest.get(slots).unwrap_or_default());
        let low = mean(slots.start.saturating_sub(BESIDE)..slots.start);
        let high = mean(slots.end..(slots.end + BESIDE).min(rest.len()));
        let step = (high - low) / slots.len() as f64;
        let around = slots.start.saturating_sub(near)..(slots.end + near).min(rest.len());
        for slot in around {
            let Some(value) = rest.get_mut(slot) else { continue };
            let part = (slot as f64 - slots.start as f64 + 0.5).clamp(0.0, slots.len() as f64);
            let line = low + step * part;
            if slots.contains(&slot) || *value < line - DEEP / 2.0 {
                *value = line;
            }
        }
    }
}

/// Takes a period of many cycles out: subtracts from each series its mean at each phase of the period near that of `dip`, which is
/// refined on the last series.
///
/// The kernel's tick is in nearly every recording. A quantum is no whole part of it, so it falls into slots in a pattern of its
/// own, which a dip of one shape does not describe: what a dip leaves of a tick hides rarer stalls. The mean at each phase, in
/// steps much finer than a slot, is the pattern. For fewer cycles that mean would be noise. It contains each shorter period that
/// fits into the longer one, too: one that is not found before is lost.
fn take_out_profile(series: &mut [Vec<f64>], dip: &Dip) {
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
        let all = mean(values);
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

/// Whether a place (in slots) lies in a dip, or at most `margin` slots beside it.
pub(super) fn in_dip(dip: &Dip, place: f64, margin: f64) -> bool {
    let after = (place - dip.phase * dip.period + margin).rem_euclid(dip.period);
    after < dip.width * dip.period + 2.0 * margin
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
        take_out_profile(
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
        take_out_profile(&mut series, &Dip { period: 227.0, phase: 50.0 / 227.0, width: 1.0 / 227.0, explained: 1.0 });
        assert!(series[0].iter().all(|value| value.abs() < 0.05));
    }
}
