//! The threads of a process: which of them stalls. The sum of their amounts hides it where the others go on.

use super::{periods, stalls, told};
use crate::ftq::finding::ThreadFinding;
use crate::ftq::record::FtqRecord;
use crate::ftq::series::{Grid, Series};

/// Periods are searched in the threads with the longest stalls, because a search takes long.
const SEARCHED: usize = 4;

/// Every thread that was read, the longest stall first.
pub(super) fn threads(record: &FtqRecord, series: &Series) -> Vec<ThreadFinding> {
    let mut found: Vec<(ThreadFinding, Grid)> = record
        .threads()
        .map(|(number, thread)| {
            let own = series.of_probe(number);
            let grid = Grid::of(&own);
            let stalls = stalls::stalls(&grid, &[]);
            let longest = stalls.iter().map(|stall| stall.slots.len()).max();
            let finding = ThreadFinding {
                name: thread.meaning.clone(),
                amount: own.amount(),
                seconds: own.length(),
                longest_stall_seconds: longest.map(|slots| slots as f64 * grid.step),
                stall_count: stalls.len() as u64,
                periodic: Vec::new(),
            };
            (finding, grid)
        })
        .collect();
    let longest = |thread: &ThreadFinding| thread.longest_stall_seconds.unwrap_or(0.0);
    found.sort_by(|(one, _), (other, _)| longest(other).total_cmp(&longest(one)));
    for (thread, grid) in found.iter_mut().take(SEARCHED) {
        let periods = periods::periods(grid);
        thread.periodic = periods.iter().map(|period| told(period, Vec::new(), grid, &thread.name)).collect();
    }
    found.into_iter().map(|(thread, _)| thread).collect()
}

#[cfg(test)]
mod tests {
    use crate::ftq::record::tests::{QUANTUM, record_of};
    use crate::ftq::study::study;
    use crate::probe::{Descriptor, Kind, Scope};

    /// 40 threads that each do 100 in a quantum, of which one stops for 300 ms every 2 s, in 20 s.
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
                // Two threads end, one of them at once.
                let ended = (thread == 5 && at > 9e9) || (thread == 6 && quantum > 0);
                if !ended && !(thread == 17 && stalls(at / 1e9)) {
                    done[thread] += 100 + (quantum * 7 + thread as u64 * 3) % 11;
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
        assert!(finding.probes.is_empty() && finding.pictures.probes.is_empty() && found.len() == 40);
        assert_eq!(found[0].name, "thread 17 (io-17)");
        assert!((found[0].longest_stall_seconds.unwrap() - 0.3).abs() < 0.002, "{:?}", found[0]);
        assert_eq!(found[0].stall_count, 10);
        let period = &found[0].periodic[0];
        assert!((period.period_seconds - 2.0).abs() < 0.01, "{period:?}");
        assert_eq!(period.sentence, "every 2.00 s thread 17 (io-17) stops for 300 ms");
        assert!(found[1..].iter().all(|thread| thread.stall_count == 0), "{:?}", &found[1]);
        let ended = found.iter().find(|thread| thread.name.contains("(io-5)")).unwrap();
        assert!((ended.seconds - 9.0).abs() < 0.01, "{ended:?}");
    }
}
