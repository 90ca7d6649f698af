//! Arms that are boots of the machine: combines the measurements of the boots into rounds with one boot of each arm.

use super::record::{CaseLatency, RoundRecord, SliceReading};
use crate::record::{Execution, Snapshot};
use crate::unit::Nanos;

/// Combines the measurements within one boot into one round: all slices, and the latencies of each case together.
pub fn within(rounds: Vec<RoundRecord>) -> RoundRecord {
    let (begin_nanos, end_nanos) = match (rounds.first(), rounds.last()) {
        (Some(first), Some(last)) => (first.begin_nanos, last.end_nanos),
        _ => Default::default(),
    };
    let mut all = RoundRecord { begin_nanos, end_nanos, ..RoundRecord::default() };
    for round in rounds {
        all.slices.extend(round.slices);
        merge(&mut all.latencies, round.latencies);
    }
    all
}

/// A round with one boot of each arm. Each boot has its own clock, so the boots are shifted to follow one another,
/// starting at `begin`.
pub fn round(boots: Vec<RoundRecord>, begin: Nanos) -> RoundRecord {
    let mut all = RoundRecord { begin_nanos: begin, end_nanos: begin, ..RoundRecord::default() };
    for mut boot in boots {
        shift(&mut boot, all.end_nanos);
        all.end_nanos = boot.end_nanos;
        all.boots.push(boot.slices.len());
        all.slices.extend(boot.slices);
        merge(&mut all.latencies, boot.latencies);
    }
    all
}

fn merge(all: &mut Vec<CaseLatency>, more: Vec<CaseLatency>) {
    for latency in more {
        match all.iter_mut().find(|known| known.case == latency.case) {
            Some(known) => known.ticks.merge(&latency.ticks),
            None => all.push(latency),
        }
    }
}

/// Shifts all times of a boot so that it begins at `begin`.
fn shift(boot: &mut RoundRecord, begin: Nanos) {
    // Modulo 2^64, because the offset may be negative.
    let offset = begin.0.wrapping_sub(boot.begin_nanos.0);
    let shift = |at: &mut Nanos| *at = Nanos(at.0.wrapping_add(offset));
    let snapshot = |snapshot: &mut Snapshot| shift(&mut snapshot.at_nanos);
    shift(&mut boot.begin_nanos);
    shift(&mut boot.end_nanos);
    for slice in &mut boot.slices {
        match &mut slice.reading {
            SliceReading::Slice { before, after, .. } => [before, after].into_iter().for_each(|at| snapshot(at)),
            SliceReading::Command { before, first, last, after } => {
                [before, after].into_iter().for_each(|at| snapshot(at));
                [first, last].into_iter().for_each(|reading| shift(&mut reading.at_nanos));
            }
            SliceReading::Execution(Execution { stretch, io_interval, .. }) => {
                stretch.snapshots.iter_mut().for_each(snapshot);
                if let Some(interval) = io_interval {
                    shift(&mut interval.begin_nanos);
                    shift(&mut interval.end_nanos);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::record::{SliceRecord, SliceWork};
    use crate::histogram::Histogram;

    fn boot(case: usize, begin: u64) -> RoundRecord {
        let at = |nanos| Box::new(Snapshot { at_nanos: Nanos(nanos), ..Snapshot::default() });
        let work = SliceWork { ios: 1, ..SliceWork::default() };
        let reading = SliceReading::Slice { before: at(begin + 10), after: at(begin + 30), work, tasks: None };
        let mut ticks = Histogram::new();
        ticks.record(7, 1);
        RoundRecord {
            begin_nanos: Nanos(begin),
            end_nanos: Nanos(begin + 100),
            slices: vec![SliceRecord { case: Some(case), reading }],
            latencies: vec![CaseLatency { case, ticks, injected_ns: None }],
            ..RoundRecord::default()
        }
    }

    #[test]
    fn boots_follow_one_another_independent_of_their_clocks() {
        let round = round(vec![boot(1, 5_000), boot(0, 40)], Nanos(1_000));
        assert_eq!((round.begin_nanos, round.end_nanos, &round.boots), (Nanos(1_000), Nanos(1_200), &vec![1, 1]));
        let at = |place: usize| match &round.slices[place].reading {
            SliceReading::Slice { before, after, .. } => (before.at_nanos.0, after.at_nanos.0),
            SliceReading::Execution(_) | SliceReading::Command { .. } => unreachable!(),
        };
        assert_eq!((at(0), at(1)), ((1_010, 1_030), (1_110, 1_130)));
        assert_eq!(round.latencies.len(), 2);
    }

    #[test]
    fn one_boot_is_one_unit() {
        let all = within(vec![boot(1, 0), boot(1, 100)]);
        assert_eq!((all.begin_nanos, all.end_nanos, all.slices.len()), (Nanos(0), Nanos(200), 2));
        assert_eq!((all.latencies.len(), all.latencies[0].ticks.total()), (1, 2));
    }
}
