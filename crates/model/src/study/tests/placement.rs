//! Phases whose threads run sometimes on one CPU and sometimes on two: findings and caveats.

use super::*;
use crate::placement::{Mode, Place, RanOn, Side, Whereabouts};
use crate::record::Mode::Quiet;

/// Client and server on one CPU: 20 kcycles per I/O, 100 ms busy in a window.
const SAME: Happening = Happening { busy: 100_000_000, thread: 50_000_000, ios: 10_000, steal: 0 };
/// On two CPUs: 200 kcycles per I/O.
const APART: Happening = Happening { busy: 100_000_000, thread: 40_000_000, ios: 1_000, steal: 0 };

fn ran(side: Side, cpu: u32, millis: u64) -> RanOn {
    let (name, process) = match side {
        Side::Workload => ("job a", None),
        Side::Peer => ("nbdkit", Some(77)),
    };
    RanOn { side, name: name.into(), process, threads: 1, cpu, moved: false, nanos: Nanos(millis * 1_000_000) }
}

/// For each window, its load, and the CPU of the server; the worker is on CPU 0.
fn stretch(windows: impl IntoIterator<Item = (Happening, Option<u32>)>) -> Stretch {
    let mut machine = Machine::begin(Quiet);
    machine.snapshots[0].whereabouts = Some(Box::new(Whereabouts { servers: vec![77], ..Whereabouts::default() }));
    for (happening, server) in windows {
        machine.pass(happening, Quiet);
        let mut found = vec![ran(Side::Workload, 0, 50)];
        found.extend(server.map(|cpu| ran(Side::Peer, cpu, 45)));
        let whereabouts = Whereabouts { ran: found, servers: vec![] };
        machine.snapshots.last_mut().unwrap().whereabouts = Some(Box::new(whereabouts));
    }
    machine.stretch()
}

fn found(windows: impl IntoIterator<Item = (Happening, Option<u32>)>) -> RunFinding {
    study(&record(vec![quiet(10, NOTHING)], vec![execution(stretch(windows), 30_000)]))
}

#[test]
fn two_modes_have_a_rate_and_a_cost_each_and_are_a_caveat() {
    // Alternating, so that it is not a step.
    let finding = found((0..24).map(|number| if number % 2 == 0 { (SAME, Some(0)) } else { (APART, Some(1)) }));
    let placement = finding.phases[0].placement.as_ref().unwrap();
    assert_eq!(placement.mode, Some(Mode::Mixed));
    assert_eq!(placement.cpus, [(0, 1.0)].into());
    let [peer] = placement.peers.as_slice() else { panic!("{placement:?}") };
    assert_eq!((peer.name.as_str(), peer.process, peer.server), ("nbdkit", Some(77), true));
    assert_eq!(peer.cpus, [(0, 0.5), (1, 0.5)].into());
    let [same, apart] = placement.modes.as_slice() else { panic!("{placement:?}") };
    assert_eq!((same.mode, same.windows, apart.mode, apart.windows), (Mode::Same, 12, Mode::Apart, 12));
    let near =
        |found: Option<f64>, truth: f64| assert!((found.unwrap() / truth - 1.0).abs() < 1e-9, "{found:?} {truth}");
    near(same.iops, 100_000.0);
    near(apart.iops, 10_000.0);
    near(same.cycles_per_io, 20_000.0);
    near(apart.cycles_per_io, 200_000.0);
    let told = finding.head.warnings.iter().find(|warning| warning.code == Code::PlacementModes).unwrap();
    for figure in ["1.2 s, 100000 IOPS and 20.0 kcycles/IO", "1.2 s, 10000 IOPS and 200.0 kcycles/IO", "--place same"] {
        assert!(told.message.contains(figure), "{figure}: {}", told.message);
    }
    assert!(!has(&finding, Code::UnsteadyLoad), "the reason has been said");
}

#[test]
fn one_mode_or_too_little_of_the_other_is_no_caveat() {
    let one = found((0..20).map(|_| (APART, Some(1))));
    assert_eq!(one.phases[0].placement.as_ref().unwrap().mode, Some(Mode::Apart));
    // Two windows of the other mode are only the start-up.
    let begins = found((0..22).map(|number| if number < 2 { (SAME, Some(0)) } else { (APART, Some(1)) }));
    assert_eq!(begins.phases[0].placement.as_ref().unwrap().mode, Some(Mode::Apart));
    // Both modes are equally fast.
    let alike = found((0..20).map(|number| (APART, Some(number % 2))));
    assert_eq!(alike.phases[0].placement.as_ref().unwrap().mode, Some(Mode::Mixed));
    for finding in [one, begins, alike] {
        assert!(!has(&finding, Code::PlacementModes), "{:?}", finding.head.warnings);
    }
}

#[test]
fn one_busy_thread_has_no_mode_and_missing_snapshots_no_placement() {
    let alone = found((0..20).map(|_| (APART, None)));
    let placement = alone.phases[0].placement.as_ref().unwrap();
    assert_eq!((placement.mode, placement.modes.len()), (None, 0));
    let unseen = study(&record(vec![], vec![execution(quiet(20, APART), 20_000)]));
    assert_eq!(unseen.phases[0].placement, None);
}

#[test]
fn a_misplaced_server_is_a_caveat_with_a_fix() {
    let with = |place, servers: [u32; 20]| {
        let stretch = stretch(servers.map(|cpu| (APART, Some(cpu))));
        let record = Record { place: Some(place), ..record(vec![], vec![execution(stretch, 20_000)]) };
        let found = study(&record).head.warnings.into_iter().find(|warning| warning.code == Code::PlacementElsewhere);
        found.map(|warning| warning.message)
    };
    let mut mostly = [1; 20];
    assert_eq!(with(Place::Apart, mostly), None);
    let same = with(Place::Same, mostly).unwrap();
    assert!(same.contains("nbdkit (process 77)") && same.contains("in 100 %"), "{same}");
    assert!(same.contains("taskset -a -c -p 0 77"), "{same}");
    mostly[..3].fill(0);
    let apart = with(Place::Apart, mostly).unwrap();
    assert!(apart.contains("in 15 %") && apart.contains("taskset -a -c -p 1 77"), "{apart}");
    assert_eq!(with(Place::Cpus(vec![0]), mostly), None, "nothing was said of servers");
    mostly[..2].fill(1);
    assert_eq!(with(Place::Apart, mostly), None, "5 % is how long a server may take to be found");
}
