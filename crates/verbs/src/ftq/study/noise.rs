//! The levels of the rate, and what the worker lost against its undisturbed quantum at each level. A mean over two levels describes neither. Quanta that hold few I/Os differ by whole ones, which
//! is no noise.

use super::stalls::Stalled;
use crate::ftq::finding::{Level, Noise};
use crate::ftq::record::{FtqRecord, Worker};
use crate::ftq::series::{Grid, Series};
use model::stats::basics::quantile;
use model::stats::regimes;
use model::stats::series::mean;
use std::ops::Range;

/// Quantile of the quanta that is one without noise: a few are faster than the worker can sustain.
const UNDISTURBED: f64 = 0.95;
/// Fewest I/Os in an undisturbed quantum: with 20, one more or less is 5 %.
pub(super) const FEWEST_IOS: f64 = 20.0;
/// Readings that steps are searched in: as many as the search looks at.
const POINTS: usize = 128;
/// Fewest of them in a level, 3 % of the recording: what is shorter is a stall or a burst.
const FEWEST: usize = 4;
/// A smaller common divisor of all increases is no size of an I/O: the I/Os have several sizes.
const SMALLEST_IO: u64 = 512;

/// Why the undisturbed amount of a quantum is unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unknown {
    /// The quanta of a level hold so few I/Os on average.
    Few(f64),
    /// Nearly all work is done in few quanta.
    Lumps,
}

/// The noise of a series, each level of its rate by itself, and why a part of it is unknown.
pub(super) fn noise(
    grid: &Grid,
    (stalls, levels): (&[Stalled], &[Range<usize>]),
    grain: Option<Grain>,
) -> (Noise, Option<Unknown>) {
    let parts: Vec<Undisturbed> = levels.iter().filter_map(|slots| Undisturbed::of(grid, slots, grain)).collect();
    let slots = grid.slots().max(1) as f64;
    let available = parts.iter().map(|part| Some(part.available.ok()? * part.slots / slots)).sum::<Option<f64>>();
    let available = available.filter(|_| !parts.is_empty());
    let longest = stalls.iter().map(|stall| stall.slots.len()).max();
    let noise = Noise {
        undisturbed_per_quantum: parts.iter().map(|part| part.amount * part.slots / slots).sum(),
        available_fraction: available,
        lost_seconds: available.map(|available| (1.0 - available) * grid.seconds()),
        longest_stall_seconds: longest.map(|slots| slots as f64 * grid.step),
    };
    (noise, parts.iter().find_map(|part| part.available.err()))
}

/// What the worker does in a quantum of a level without noise.
struct Undisturbed {
    slots: f64,
    amount: f64,
    /// The mean as a part of it.
    available: Result<f64, Unknown>,
}

impl Undisturbed {
    fn of(grid: &Grid, slots: &Range<usize>, grain: Option<Grain>) -> Option<Self> {
        let (all, filled) = (grid.values.get(slots.clone())?, grid.filled.get(slots.clone())?);
        let in_time = all.iter().zip(filled).filter(|(_, filled)| !**filled);
        let mut values: Vec<f64> = in_time.map(|(value, _)| *value).collect();
        // If every reading was late, means over spans are all there is.
        let undisturbed = quantile(&mut values, UNDISTURBED).or_else(|| quantile(&mut all.to_vec(), UNDISTURBED))?;
        let mean = mean(all);
        let ios = |amount: f64| grain.map_or(f64::INFINITY, |grain| amount / grain.amount);
        let available = if ios(mean) < FEWEST_IOS && mean > 0.0 && ios(undisturbed) < FEWEST_IOS {
            Err(Unknown::Few(ios(mean)))
        } else if undisturbed <= 0.0 || undisturbed < mean || ios(undisturbed) < FEWEST_IOS {
            // A worker that does all its work in a few quanta has an undisturbed amount below its mean.
            Err(Unknown::Lumps)
        } else {
            Ok((mean / undisturbed).min(1.0))
        };
        Some(Self { slots: slots.len() as f64, amount: undisturbed, available })
    }
}

/// What a worker does at once: an I/O, or a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Grain {
    /// Its amount, in the unit of the recording.
    pub(super) amount: f64,
    /// Several of them, in words.
    pub(super) plural: &'static str,
}

impl Grain {
    /// The grain of a recording; `None` if the amount never grew.
    pub(super) fn of(record: &FtqRecord, series: &Series) -> Option<Self> {
        let last = record.chunks.iter().rev().find_map(|chunk| chunk.amount.last()).copied();
        let ios = record.end.as_ref().and_then(|end| end.ios).filter(|ios| *ios > 0);
        let bytes = record.header.unit == "bytes";
        let of_io = |amount| Self { amount, plural: "I/Os" };
        match (&record.header.plan.worker, last.zip(ios)) {
            (Worker::Cpu, _) => (series.amount() > 0.0).then_some(Self { amount: 1.0, plural: "steps" }),
            // Its own count of I/Os is known.
            (Worker::Job(_), Some((bytes_done, ios))) if bytes && bytes_done > 0 => {
                Some(of_io(bytes_done as f64 / ios as f64))
            }
            _ => {
                let (divisor, least) = steps(series)?;
                Some(match bytes {
                    true if divisor >= SMALLEST_IO => of_io(divisor as f64),
                    true => of_io(least),
                    false => Self { amount: divisor as f64, plural: "counts" },
                })
            }
        }
    }
}

/// The greatest common divisor of all increases between readings, and the least of them. I/Os of one size have that size as
/// their divisor, however many are in each quantum; a steady worker never shows a single one.
fn steps(series: &Series) -> Option<(u64, f64)> {
    let increases = series.done.iter().zip(series.done.iter().skip(1)).map(|(before, done)| done - before);
    increases.filter(|step| *step > 0.0).fold(None, |found, step| {
        let (divisor, least) = found.unwrap_or((0, f64::INFINITY));
        Some((common_divisor(divisor, step as u64), least.min(step)))
    })
}

/// Euclid's algorithm.
fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one.max(1)
}

/// The slots of each level, in the order of time; one range if there is one level.
pub(super) fn ranges(grid: &Grid) -> Vec<Range<usize>> {
    let values = &grid.values;
    let joined = values.len().div_ceil(POINTS).max(1);
    // A last piece that is short has the noise of few slots.
    let pieces = values.chunks(joined).filter(|piece| 2 * piece.len() >= joined);
    let points: Vec<f64> = pieces.map(mean).collect();
    let coarse = long_ones(regimes(&points));
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut begin = 0;
    for (one, next) in coarse.iter().zip(coarse.iter().skip(1)) {
        let end = border(values, (one, next), joined);
        found.push(begin..end);
        begin = end;
    }
    found.push(begin..values.len());
    found
}

/// The ranges without short ones, which belong to the neighbour before, or to the one after the first.
fn long_ones(ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match found.last_mut() {
            Some(before) if before.len() < FEWEST || range.len() < FEWEST => before.end = range.end,
            _ => found.push(range),
        }
    }
    found
}

/// The slot where one level ends and the next begins: within the piece beside the border, where the slots are nearest to the
/// levels on their side.
fn border(values: &[f64], (one, next): (&Range<usize>, &Range<usize>), joined: usize) -> usize {
    let slots = |pieces: &Range<usize>| pieces.start * joined..(pieces.end * joined).min(values.len());
    let level = |pieces: &Range<usize>| mean(values.get(slots(pieces)).unwrap_or_default());
    let (before, after) = (level(one), level(next));
    let middle = one.end * joined;
    let near = middle.saturating_sub(joined)..(middle + joined).min(values.len());
    // How much nearer the slots so far are to the level before than to the one after.
    let (mut sum, mut best) = (0.0, (0.0, near.start));
    for slot in near {
        let value = values.get(slot).copied().unwrap_or(0.0);
        sum += (value - after).abs() - (value - before).abs();
        if sum > best.0 {
            best = (sum, slot + 1);
        }
    }
    best.1
}

/// The levels for the finding; empty if there is one.
pub(super) fn levels(grid: &Grid, ranges: &[Range<usize>], quantum: f64) -> Vec<Level> {
    if ranges.len() < 2 {
        return Vec::new();
    }
    let level = |range: &Range<usize>| Level {
        begin_seconds: grid.begin + range.start as f64 * grid.step,
        end_seconds: grid.begin + range.end as f64 * grid.step,
        amount_per_second: mean(grid.values.get(range.clone()).unwrap_or_default()) / quantum,
    };
    ranges.iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftq::record::tests::{QUANTUM, record_of};

    fn grain_of(increases: &[u64], change: impl Fn(&mut FtqRecord)) -> Option<Grain> {
        let mut sum = 0;
        let rows = increases.iter().zip(0_u64..).map(|(increase, number)| {
            sum += increase;
            (number * QUANTUM as u64, sum)
        });
        let mut record = record_of(rows, Vec::new());
        change(&mut record);
        Grain::of(&record, &Series::of(&record))
    }

    #[test]
    fn a_steady_worker_does_small_things_often() {
        let amount = |increases: &[u64]| grain_of(increases, |_| {}).map(|grain| grain.amount);
        assert_eq!(amount(&[0, 90 << 20, 91 << 20, 90 << 20]), Some(1_048_576.0), "I/Os of 1 MiB, 90 in a quantum");
        assert_eq!(amount(&[0, 0, 1 << 20, 0]), Some(1_048_576.0));
        assert_eq!(amount(&[0, 731, 90, 4001]), Some(90.0), "of several sizes, at most the least increase");
        assert_eq!(amount(&[0, 0]), None);
    }

    /// A thread that computes 270 steps in each quantum of 440 µs, never 1.
    #[test]
    fn what_a_computing_thread_has_available_is_known_and_it_does_no_ios() {
        let recorded = |each: u64| {
            let rows = (0..2000).map(|number: u64| (number * QUANTUM as u64, number * each + number % 3));
            let mut record = record_of(rows, Vec::new());
            (record.header.plan.worker, record.header.unit) = (Worker::Cpu, "steps".to_owned());
            crate::ftq::study(&record, None)
        };
        let steady = recorded(270);
        assert!(steady.noise.available_fraction.is_some_and(|available| available > 0.98), "{:?}", steady.noise);
        assert!(
            steady.head.warnings.iter().all(|warning| !warning.message.contains("I/Os")),
            "{:?}",
            steady.head.warnings
        );
        let few = recorded(6);
        assert_eq!(few.noise.available_fraction, None);
        let told =
            few.head.warnings.iter().find(|warning| warning.code == model::warning::Code::FewIosPerQuantum).unwrap();
        assert!(told.message.contains("6.0 steps on average") && !told.message.contains("I/Os"), "{told:?}");
    }

    #[test]
    fn steps_are_no_ios_and_own_ios_are_counted() {
        let steps = grain_of(&[0, 270, 270, 269], |record| {
            (record.header.plan.worker, record.header.unit) = (Worker::Cpu, "steps".to_owned());
        });
        assert_eq!(steps, Some(Grain { amount: 1.0, plural: "steps" }));
        let own = grain_of(&[0, 270 << 16, 270 << 16], |record| {
            record.header.plan.worker = Worker::Job(Box::default());
            record.end.as_mut().unwrap().ios = Some(540);
        });
        assert_eq!(own, Some(Grain { amount: 65_536.0, plural: "I/Os" }));
    }

    fn grid(values: Vec<f64>) -> Grid {
        let filled = vec![false; values.len()];
        Grid { begin: 0.5, step: 1e-3, quanta: 1.0, values, filled }
    }

    #[test]
    fn a_step_is_found_at_its_slot_with_its_levels() {
        let value = |slot: usize| if slot < 3217 { 40.0 } else { 300.0 } + (slot % 7) as f64;
        let grid = grid((0..27_000).map(value).collect());
        let ranges = ranges(&grid);
        assert_eq!(ranges, [0..3217, 3217..27_000]);
        let found = levels(&grid, &ranges, 1e-3);
        assert!((found[0].end_seconds - 3.717).abs() < 1e-9 && found[0].end_seconds == found[1].begin_seconds);
        assert!((found[0].amount_per_second - 43e3).abs() < 100.0, "{found:?}");
        assert!((found[1].amount_per_second - 303e3).abs() < 100.0, "{found:?}");
    }

    /// A writer of 64 KiB that comes from 0.4 to 3 GiB/s after 3.2 s.
    #[test]
    fn a_step_is_told_with_place_and_levels_and_each_level_has_its_own_noise() {
        let each = |number: u64| if number < 7273 { 3 } else { 22 } + number % 2;
        let mut done = 0;
        let rows = (0..40_000).map(|number: u64| {
            done += each(number) << 16;
            (number * QUANTUM as u64, done)
        });
        let finding = crate::ftq::study(&record_of(rows, Vec::new()), None);
        let told =
            finding.head.warnings.iter().find(|warning| warning.code == model::warning::Code::TwoRegimes).unwrap();
        assert!(
            told.message.starts_with("the rate of the process stepped from 497 MiB/s to 3.12 GiB/s at 3.20 s"),
            "{told:?}"
        );
        assert_eq!(finding.levels.len(), 2);
        assert!(finding.periodic.iter().all(|period| period.period_seconds < 0.002), "{:?}", finding.periodic);
    }

    #[test]
    fn stalls_and_noise_are_no_levels() {
        let late = |slot: usize| if slot < 600 { 30.0 } else { 100.0 };
        let stalled = |slot: usize| if slot % 5000 < 1000 { 0.0 } else { 100.0 };
        for values in [
            (0..27_000).map(stalled).collect(),
            (0..27_000).map(late).collect(),
            vec![3.0; 1000],
            vec![0.0; 1000],
            vec![1.0, 2.0],
            vec![],
        ] {
            let grid = grid(values);
            assert_eq!(levels(&grid, &ranges(&grid), 1e-3), []);
        }
    }
}
