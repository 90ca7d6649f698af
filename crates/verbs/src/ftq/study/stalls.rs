//! Stalls one by one: slots in which the worker did much less than around them, joined.

use super::periods::{Period, in_dip};
use crate::ftq::series::Grid;
use model::stats::series::level::{local_level, spread};
use model::stats::series::mean;
use std::ops::Range;

/// Part of the level that a stall lacks at least.
const DEEP: f64 = 0.25;
/// Standard deviations of the noise that a stall lacks at least: normal noise does so once in 10^9 slots.
const DEVIATIONS: f64 = 6.0;
/// Slots between two stalls that are joined to one.
const JOINED: usize = 2;
/// If the noise is too large for the threshold above, a slot is low below this part of the level.
const NEARLY_NOTHING: f64 = 0.1;
/// A run of such slots is a stall if independent slots contain, on average, at most this number of runs as long in a recording.
const BY_CHANCE: f64 = 0.01;
/// Slots beside the dip of a period in which a stall still belongs to it.
const MARGIN: f64 = 2.0;
/// The same is at most the period divided by this.
const NARROW: f64 = 8.0;
/// A stall of a period is at most this many times as long as its dip: a timer tick explains no stall of 200 ms.
const LONGER: f64 = 2.0;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stalled {
    pub(super) slots: Range<usize>,
    /// Slots that the worker lost, at the level around it.
    pub(super) lost: f64,
    /// Whether it is a stall of one of the periods.
    pub(super) periodic: bool,
}

/// All stalls in the order of time.
pub(super) fn stalls(grid: &Grid, periods: &[Period]) -> Vec<Stalled> {
    let levels = local_level(&grid.values);
    let noise = spread(&grid.values, &levels);
    let quiet = DEVIATIONS * noise < mean(&levels);
    let low = |(value, level): (&f64, &f64)| match quiet {
        true => *value < level - (DEVIATIONS * noise).max(DEEP * level),
        false => *level > 0.0 && *value < NEARLY_NOTHING * level,
    };
    let low: Vec<bool> = grid.values.iter().zip(&levels).map(low).collect();
    let shortest = if quiet { 1 } else { shortest_by_chance(&low) };
    let lost = |slots: &Range<usize>| {
        let lost = |slot: usize| {
            let (value, level) = (grid.values.get(slot)?, levels.get(slot)?);
            (*level > 0.0).then(|| 1.0 - value / level)
        };
        // In the short gaps of a stall the worker may catch up, which is part of the sum.
        slots.clone().filter_map(lost).sum::<f64>().max(0.0)
    };
    let belongs = |slots: &Range<usize>| {
        let middle = (slots.start as f64).midpoint(slots.end as f64);
        periods.iter().any(|period| {
            let (dip, length) = (&period.dip, period.dip.width * period.dip.period);
            let longest = (LONGER * length).max(length + 1.0).min(dip.period / 2.0);
            slots.len() as f64 <= longest && in_dip(dip, middle, MARGIN.min(dip.period / NARROW))
        })
    };
    let runs = runs(&low).into_iter().filter(|run| run.len() >= shortest);
    runs.map(|slots| Stalled { lost: lost(&slots), periodic: belongs(&slots), slots }).collect()
}

/// Ranges of low slots, joined across short gaps.
fn runs(low: &[bool]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (slot, _) in low.iter().enumerate().filter(|(_, low)| **low) {
        match runs.last_mut() {
            Some(run) if slot <= run.end + JOINED => run.end = slot + 1,
            _ => runs.push(slot..slot + 1),
        }
    }
    runs
}

/// The shortest run that independent slots of which as many are low do not contain by chance.
fn shortest_by_chance(low: &[bool]) -> usize {
    let slots = low.len().max(1) as f64;
    let part = low.iter().filter(|low| **low).count() as f64 / slots;
    if part <= 0.0 || part >= 1.0 {
        return low.len() + 1;
    }
    // Joining makes runs longer: a gap of two slots counts as low.
    let joined = 1.0 - (1.0 - part).powi(1 + JOINED as i32);
    ((BY_CHANCE / slots).ln() / joined.ln()).ceil().clamp(1.0, slots) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(values: Vec<f64>) -> Grid {
        let filled = vec![false; values.len()];
        Grid { begin: 0.0, step: 1e-3, quanta: 1.0, values, filled }
    }

    #[test]
    fn stalls_are_joined_and_weighed_by_what_they_lost() {
        let value = |slot: usize| match slot {
            500..510 | 512..520 => 0.0,
            3000 => 50.0,
            _ => 100.0 + (slot % 7) as f64,
        };
        let found = stalls(&grid((0..5000).map(value).collect()), &[]);
        let slots: Vec<Range<usize>> = found.iter().map(|stall| stall.slots.clone()).collect();
        assert_eq!(slots, [500..520, 3000..3001]);
        assert!((found[0].lost - 18.0).abs() < 0.3 && (found[1].lost - 0.5).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn an_amount_that_comes_in_lumps_stalls_only_where_none_comes_for_long() {
        let value = |slot: usize| if slot.is_multiple_of(8) && !(2000..2400).contains(&slot) { 800.0 } else { 0.0 };
        let found = stalls(&grid((0..5000).map(value).collect()), &[]);
        assert!(found.len() <= 1, "{found:?}");
    }

    #[test]
    fn a_tick_explains_its_own_stalls_and_no_longer_ones() {
        use super::super::periods::{Loss, Period};
        use model::stats::series::fold::Dip;
        // A tick of 8 slots that takes a slot, and a stall of 30 slots that begins with one.
        let value = |slot: usize| if slot.is_multiple_of(8) || (2000..2030).contains(&slot) { 0.0 } else { 100.0 };
        let dip = Dip { period: 8.0, phase: 0.0, width: 1.0 / 8.0, explained: 1.0 };
        let tick = Period { dip, ln_false_alarm: -100.0, loss: Loss::default() };
        let found = stalls(&grid((0..5000).map(value).collect()), &[tick]);
        let single: Vec<&Stalled> = found.iter().filter(|stall| !stall.periodic).collect();
        assert!(found.len() > 500, "{}", found.len());
        assert!(matches!(single.as_slice(), [stall] if (30..34).contains(&stall.slots.len())), "{single:?}");
    }

    #[test]
    fn a_worker_that_never_worked_has_no_stalls() {
        assert_eq!(stalls(&grid(vec![0.0; 1000]), &[]), []);
        assert_eq!(stalls(&grid(Vec::new()), &[]), []);
    }
}
