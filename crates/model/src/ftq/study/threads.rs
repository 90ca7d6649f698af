//! The threads of a process: which of them stands still. The sum of their amounts hides it where the others go on.
//!
//! A thread may have few I/Os in a quantum, or wait for work. So its standstill is a time in which it did nothing at all.

use super::{periods, told};
use crate::ftq::finding::ThreadFinding;
use crate::ftq::record::FtqRecord;
use crate::ftq::series::{Grid, Series};

/// Periods are searched in the threads with the longest standstills, because a search takes long.
const SEARCHED: usize = 4;

/// Every thread that did something while it was read, the longest standstill first.
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
        let grid = Grid::of(own);
        let periods = periods::periods(&grid);
        thread.periodic = periods.iter().map(|period| told(period, Vec::new(), &grid, &thread.name)).collect();
    }
    found.into_iter().map(|(thread, _)| thread).collect()
}

/// When the longest time began that passed between two readings of the same amount, and its length.
fn longest_standstill(series: &Series) -> (f64, f64) {
    let readings = || series.seconds.iter().copied().zip(series.done.iter().copied());
    let mut since = readings().next().unwrap_or_default();
    let mut longest = (since.0, 0.0);
    for (at, done) in readings() {
        if done > since.1 {
            since = (at, done);
        } else if at - since.0 > longest.1 {
            longest = (since.0, at - since.0);
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use crate::ftq::record::tests::{QUANTUM, record_of};
    use crate::ftq::study::study;
    use crate::probe::{Descriptor, Kind, Scope};

    /// 40 threads that each do an I/O of 50 in 4 of 11 quanta, of which one stops for 300 ms every 2 s, in 20 s.
    #[test]
    fn the_one_of_forty_threads_that_stalls_is_named() {
        let stalls = |at: f64| (at + 0.7).rem_euclid(2.0) < 0.3;
        let quanta = (20e9 / QUANTUM) as u64;
        let mut done = [0_u64; 40];
        let mut columns: Vec<Vec<Option<f64>>> = vec![Vec::new(); 40];
        let mut rows = Vec::new();
        for quantum in 0..quanta {
            let at = quantum as f64 * QUANTUM;
            for (thread, column) in columns.iter_mut().enumerate() {
                // Two threads end, one of them at once, so that nothing is known of it.
                let ended = (thread == 5 && at > 9e9) || (thread == 6 && quantum > 0);
                let works = (quantum * 7 + thread as u64 * 3) % 11 < 4;
                if works && !ended && !(thread == 17 && stalls(at / 1e9)) {
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
        assert!(finding.probes.is_empty() && finding.pictures.probes.is_empty() && found.len() == 39);
        assert_eq!(found[0].name, "thread 17 (io-17)");
        assert!((found[0].standstill_seconds - 0.3).abs() < 0.002, "{:?}", found[0]);
        assert!((found[0].at_seconds.rem_euclid(2.0) - 1.3).abs() < 0.002, "{:?}", found[0]);
        let period = &found[0].periodic[0];
        assert!((period.period_seconds - 2.0).abs() < 0.01, "{period:?}");
        assert!((period.stall_seconds - 0.3).abs() < 0.01, "{period:?}");
        assert!(period.sentence.starts_with("every 2.00 s thread 17 (io-17) stops for "), "{period:?}");
        assert!(found[1].standstill_seconds < 0.005, "{:?}", found[1]);
        let ended = found.iter().find(|thread| thread.name.contains("(io-5)")).unwrap();
        assert!((ended.seconds - 9.0).abs() < 0.01, "{ended:?}");
    }
}
