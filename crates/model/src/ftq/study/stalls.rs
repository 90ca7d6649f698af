//! Stalls one by one: slots in which the worker did much less than around them, joined. And the threads of a process, of which
//! one may stand still while the others go on, so that the sum of their amounts hides it.

use super::periodic;
use super::periods::{Period, in_dip};
use crate::ftq::finding::ThreadFinding;
use crate::ftq::record::FtqRecord;
use crate::ftq::series::{Grid, Series};
use crate::stats::series::level::{local_level, spread};
use crate::stats::series::mean;
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
/// Periods are searched in the threads with the longest standstills, because a search takes long.
const SEARCHED: usize = 4;

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

/// Every thread that did something while it was read, the longest standstill first: the longest time in which it did nothing at
/// all, because a thread may have few I/Os in a quantum, or wait for work.
pub(super) fn threads(record: &FtqRecord, series: &Series) -> Vec<ThreadFinding> {
    let read = record.threads().map(|(number, thread)| (series.of_probe(number), thread));
    let found = read.filter(|(own, _)| own.amount() > 0.0).map(|(own, thread)| {
        let (at_seconds, standstill_seconds) = longest_standstill(&own);
        let (name, bytes, seconds) = (thread.meaning.clone(), own.amount(), own.length());
        (ThreadFinding { name, bytes, seconds, at_seconds, standstill_seconds, periodic: Vec::new() }, own)
    });
    let mut found: Vec<(ThreadFinding, Series)> = found.collect();
    found.sort_by(|(one, _), (other, _)| other.standstill_seconds.total_cmp(&one.standstill_seconds));
    for (thread, own) in found.iter_mut().take(SEARCHED) {
        thread.periodic = periodic(&Grid::of(own), &thread.name);
    }
    found.into_iter().map(|(thread, _)| thread).collect()
}

/// When the longest time began that passed between two readings of the same amount, and its length.
fn longest_standstill(series: &Series) -> (f64, f64) {
    let readings: Vec<(f64, f64)> = series.seconds.iter().copied().zip(series.done.iter().copied()).collect();
    let alike = readings.chunk_by(|(_, done), (_, next)| next <= done);
    let standstills = alike.filter_map(|alike| Some((alike.first()?.0, alike.last()?.0 - alike.first()?.0)));
    // The first among equals.
    standstills.rev().max_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftq::record::tests::{QUANTUM, record_of};
    use crate::ftq::study::study;
    use crate::probe::{Descriptor, Kind, Scope};

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
        use crate::stats::series::fold::Dip;
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

    /// 12 threads that each do an I/O of 50 in 4 of 11 quanta, of which one stops for 300 ms every 2 s, in 20 s.
    #[test]
    fn the_one_of_twelve_threads_that_stalls_is_named() {
        let stalls = |at: f64| (at + 0.7).rem_euclid(2.0) < 0.3;
        let quanta = (20e9 / QUANTUM) as u64;
        let mut done = [0_u64; 12];
        let mut columns: Vec<Vec<Option<f64>>> = vec![Vec::new(); 12];
        let mut rows = Vec::new();
        for quantum in 0..quanta {
            let at = quantum as f64 * QUANTUM;
            for (thread, column) in columns.iter_mut().enumerate() {
                // Two threads end, one of them at once, so that nothing is known of it.
                let ended = (thread == 5 && at > 9e9) || (thread == 6 && quantum > 0);
                let works = (quantum * 7 + thread as u64 * 3) % 11 < 4;
                if works && !ended && !(thread == 9 && stalls(at / 1e9)) {
                    done[thread] += 50;
                }
                column.push((!ended).then_some(done[thread] as f64));
            }
            rows.push((at as u64, done.iter().sum()));
        }
        let thread = |number: usize| Descriptor {
            name: format!("thread.{number}"),
            meaning: format!("thread {number} (io-{number})"),
            unit: "bytes".to_owned(),
            kind: Kind::Counter,
            scope: Scope::Thread,
        };
        let probes = columns.into_iter().enumerate().map(|(number, column)| (thread(number), column)).collect();
        let finding = study(&record_of(rows.into_iter(), probes), None);
        let found = &finding.threads;
        assert!(finding.probes.is_empty() && finding.pictures.probes.is_empty() && found.len() == 11);
        assert_eq!(found[0].name, "thread 9 (io-9)");
        assert!((found[0].standstill_seconds - 0.3).abs() < 0.002, "{:?}", found[0]);
        assert!((found[0].at_seconds.rem_euclid(2.0) - 1.3).abs() < 0.002, "{:?}", found[0]);
        let period = &found[0].periodic[0];
        assert!((period.period_seconds - 2.0).abs() < 0.01, "{period:?}");
        assert!((period.stall_seconds - 0.3).abs() < 0.01, "{period:?}");
        assert!(period.sentence.starts_with("every 2.00 s thread 9 (io-9) stops for "), "{period:?}");
        assert!(found[1].standstill_seconds < 0.005, "{:?}", found[1]);
        let ended = found.iter().find(|thread| thread.name.contains("(io-5)")).unwrap();
        assert!((ended.seconds - 9.0).abs() < 0.01, "{ended:?}");
    }
}
