//! Caveats of comparisons.

use super::super::{View, which_rounds};
use super::*;

#[test]
fn carry_over_is_a_caveat() {
    // Simulated carry-over: faster after its own arm (which never happens with one block of each in order).
    let mut record = record(experiment(Draft::default()), 60, |_, _| Load { nanos_per_io: 1000, ios: 1000 });
    for (number, round) in record.rounds.iter_mut().enumerate() {
        let (mut first, second) = (round.slices[0].clone(), round.slices[1].clone());
        let slow = |slice: &mut SliceRecord, nanos| {
            if let SliceReading::Slice { work, .. } = &mut slice.reading {
                work.wall_nanos = Nanos(nanos);
            }
        };
        slow(&mut first, SLICE + number as u64 % 7);
        let (mut after_own, mut after_other) = (first.clone(), second);
        slow(&mut after_own, SLICE + number as u64 % 5);
        slow(&mut after_other, SLICE * 11 / 10 + number as u64 % 3);
        let mut back = first.clone();
        slow(&mut back, SLICE * 11 / 10);
        round.slices = vec![first.clone(), after_own, after_other, back, first];
    }
    let change = which_rounds::carry_over(View::of(&record)).unwrap();
    assert!((0.02..0.2).contains(&change), "{change}");
}

/// One arm keeps both CPUs busy and squeezes other work; the other does not.
#[test]
fn an_arm_that_squeezes_the_background_is_a_caveat() {
    let load = |_, case: usize| Load { nanos_per_io: 1000, ios: if case == 0 { 40_000 } else { 90_000 } };
    let found = study(&record(experiment(Draft::default()), 12, load));
    let squeezed = found.head.warnings.iter().find(|warning| warning.code == Code::BackgroundSqueezed);
    assert!(squeezed.unwrap().message.contains("while candidate ran"), "{squeezed:?}");
    let calm = study(&record(experiment(Draft::default()), 12, |_, _| Load { nanos_per_io: 1000, ios: 40_000 }));
    assert!(calm.head.warnings.iter().all(|warning| warning.code != Code::BackgroundSqueezed));
}

/// The CPUs are not full, but a net cost below that of the own threads shows that the background gave way.
#[test]
fn a_net_cost_below_the_own_threads_is_a_caveat() {
    let mut record = record(experiment(Draft::default()), 12, |_, _| Load { nanos_per_io: 1000, ios: 40_000 });
    let squeezed = |record: &CompareRecord| {
        let found = study(record);
        found.head.warnings.into_iter().find(|warning| warning.code == Code::BackgroundSqueezed)
    };
    assert_eq!(squeezed(&record), None);
    for slice in parts(&mut record.rounds).filter(|slice| slice.case == Some(1)) {
        slice.work.thread_nanos = Nanos(slice.work.thread_nanos.0 * 2);
    }
    let message = squeezed(&record).unwrap().message;
    assert!(message.starts_with("the net cost of candidate is below that of the workers' own threads"), "{message}");
}
