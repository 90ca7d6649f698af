//! What a worker does at once: an I/O, or a step. Quanta that hold few of them differ by whole ones, which is no noise.

use crate::ftq::plan::Worker;
use crate::ftq::record::FtqRecord;
use crate::ftq::series::Series;

/// A smaller common divisor of all increases is no size of an I/O: the I/Os have several sizes.
const SMALLEST_IO: u64 = 512;

/// What is done at once.
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
                match bytes {
                    true if divisor >= SMALLEST_IO => Some(of_io(divisor as f64)),
                    true => Some(of_io(least)),
                    false => Some(Self { amount: divisor as f64, plural: "counts" }),
                }
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
        assert!(steady.warnings.iter().all(|warning| !warning.message.contains("I/Os")), "{:?}", steady.warnings);
        let few = recorded(6);
        assert_eq!(few.noise.available_fraction, None);
        let told = few.warnings.iter().find(|warning| warning.code == crate::warning::Code::FewIosPerQuantum).unwrap();
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
}
