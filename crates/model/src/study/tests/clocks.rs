//! What a window has of the idle clocks: without iotoll's own time, and beside CPUs that come.

use super::{CLOCK, CPUS, Happening, NOTHING, quiet, set_idle};
use crate::record::{Meter, Stretch};
use crate::unit::Nanos;

#[test]
fn what_iotoll_uses_itself_is_in_no_window() {
    let context = crate::study::Context { clock: crate::unit::Hertz(CLOCK), cpus: CPUS, steal_in_task_clocks: false };
    let load = Happening { busy: 40_000_000, thread: 0, ios: 1000, steal: 0 };
    let plain = quiet(20, load);
    let mut watched = plain.clone();
    for (number, snapshot) in (0..).zip(&mut watched.snapshots) {
        snapshot.own_nanos = Nanos(number * 3_000_000);
        set_idle(snapshot, |idle| idle - number * 3_000_000);
    }
    let windows = |stretch: &Stretch| crate::study::windows::windows(stretch, Meter::Idle, None, &context);
    assert_eq!(windows(&watched), windows(&plain));
    watched.snapshots.iter_mut().for_each(|snapshot| snapshot.own_nanos = Nanos(0));
    assert!(windows(&watched)[0].cycles > 1.05 * windows(&plain)[0].cycles);
}

#[test]
fn a_cpu_that_comes_ends_a_window_and_nothing_else() {
    let context = crate::study::Context { clock: crate::unit::Hertz(CLOCK), cpus: CPUS, steal_in_task_clocks: false };
    let plain = quiet(20, NOTHING);
    let mut changed = plain.clone();
    for snapshot in changed.snapshots.iter_mut().skip(10) {
        // The third one has slept since the beginning.
        let at = snapshot.at_nanos.0;
        set_idle(snapshot, |idle| idle + at);
        snapshot.counts.get_mut(Meter::Idle).unwrap().cpus = 3;
    }
    let windows = |stretch: &Stretch| crate::study::windows::windows(stretch, Meter::Idle, None, &context);
    let (before, after) = (windows(&plain), windows(&changed));
    assert_eq!((before.len(), after.len()), (20, 19));
    assert!(after.iter().all(|window| window.cycles.abs() < 1.0), "{after:?}");
    assert!((after[18].capacity_seconds / after[0].capacity_seconds - 1.5).abs() < 1e-9);
}
