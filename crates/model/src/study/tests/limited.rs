//! Limits of the load's control groups at the boundaries of windows.

use super::*;
use crate::group_limit::tests::quota;

#[test]
fn a_quota_that_stops_the_load_is_the_likely_cause_of_an_unsteady_rate() {
    let load = |ios| Happening { busy: 100_000_000, thread: 80_000_000, ios, steal: 0 };
    let told = |limited: bool| {
        let mut machine = Machine::begin(Mode::Quiet);
        [1000, 300, 1000, 300, 1000, 300, 1000, 300]
            .map(load)
            .into_iter()
            .for_each(|load| machine.pass(load, Mode::Quiet));
        let mut whole = machine.stretch();
        for (place, snapshot) in (0..).zip(whole.snapshots.iter_mut()).filter(|_| limited) {
            snapshot.group_limits = vec![quota(place / 2, place, place / 2 * 70)];
        }
        study(&record(vec![quiet(6, NOTHING)], vec![execution(whole, 5200)])).head.warnings
    };
    let of = |warnings: &[Warning], code| warnings.iter().find(|it| it.code == code).map(|it| it.message.clone());
    let found = told(true);
    let quota = of(&found, Code::CpuLimited).unwrap();
    assert!(quota.contains("in 4 of 8 periods, for 0.3 s added up over the CPUs, in 4 of 8 windows: "), "{quota}");
    let unsteady = of(&found, Code::UnsteadyLoad).unwrap();
    assert!(unsteady.ends_with("; the limit of the cgroup may explain it"), "{unsteady}");
    let found = told(false);
    assert_eq!(of(&found, Code::CpuLimited), None);
    assert!(of(&found, Code::UnsteadyLoad).unwrap().ends_with("does not describe it"), "{found:?}");
}
