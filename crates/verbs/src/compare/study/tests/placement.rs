//! Arms with different placements: findings and caveats.

use super::*;
use crate::compare::CompareFinding;
use model::experiment::Work;
use model::placement::{Mode, Place, RanOn, Side, Whereabouts};

/// Rounds in which each case has the load `load`, while its server runs on the CPU `server`; the worker is on CPU 0.
fn placed(
    rounds: usize,
    load: impl Fn(usize, usize) -> Load,
    server: impl Fn(usize, usize) -> Option<u32>,
) -> CompareRecord {
    let mut record = record(experiment(Draft::default()), rounds, load);
    for case in &mut record.header.experiment.cases {
        let Work::Jobs(plan) = &mut case.work else { panic!("no jobs") };
        plan.phases
            .iter_mut()
            .flat_map(|phase| &mut phase.jobs)
            .for_each(|job| job.path.uri = Some("nbd://localhost".into()));
    }
    let ran = |side, cpu, process| RanOn {
        side,
        name: "a".into(),
        process,
        threads: 1,
        cpu,
        moved: false,
        nanos: Nanos(SLICE / 2),
    };
    for Parts { round, case, ends: [_, after], .. } in parts(&mut record.rounds) {
        let Some(case) = case else { continue };
        let peer = server(round, case).map(|cpu| ran(Side::Peer, cpu, Some(77)));
        let found = [Some(ran(Side::Workload, 0, None)), peer].into_iter().flatten().collect();
        after.whereabouts = Some(Box::new(Whereabouts { ran: found, servers: vec![77] }));
    }
    record
}

fn told(found: &CompareFinding, code: Code) -> Option<&str> {
    found.head.warnings.iter().find(|warning| warning.code == code).map(|warning| warning.message.as_str())
}

const EVEN: Load = Load { nanos_per_io: 1000, ios: 1000 };
const FAST: Load = Load { nanos_per_io: 1000, ios: 4000 };

#[test]
fn different_placements_of_arms_are_a_caveat() {
    let found = study(&placed(20, |_, _| EVEN, |round, case| Some(u32::from(case == 0 || round % 10 == 0))));
    let parts: Vec<_> = found.placement.iter().map(|case| (case.arm.as_str(), case.same_fraction)).collect();
    assert_eq!(parts, [("baseline", 0.0), ("candidate", 0.9)]);
    let message = told(&found, Code::PlacementDiffers).unwrap();
    for part in
        ["arm 'candidate'", "90 % of the time", "one CPU: 0.9 s, 20000 IOPS and 2.0 kcycles/IO", "'baseline' in 0 %"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(told(&found, Code::PlacementModes), None, "both modes are as fast");
}

#[test]
fn an_arm_with_two_rates_is_a_caveat_but_equal_placement_is_not() {
    let load = |round, _| if round % 2 == 0 { FAST } else { EVEN };
    let two = study(&placed(20, load, |round, _| Some((round % 2) as u32)));
    let message = told(&two, Code::PlacementModes).unwrap();
    for part in ["arm 'baseline'", "one CPU: 0.5 s, 80000 IOPS", "two: 0.5 s, 20000 IOPS", "--place same"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(told(&two, Code::PlacementDiffers), None);
    let [baseline, _] = two.placement.as_slice() else { panic!("{:?}", two.placement) };
    assert_eq!((baseline.same_fraction, baseline.modes[0].mode, baseline.modes[0].windows), (0.5, Mode::Same, 10));
    let mut pinned = placed(20, load, |round, _| Some((round % 2) as u32));
    pinned.header.experiment.place = Some(Place::Cpus(vec![0, 1]));
    let message = study(&pinned);
    let message = told(&message, Code::PlacementModes).unwrap();
    assert!(message.contains("pin what --place 0,1 does not:") && !message.contains("--place same"), "{message}");
    let one = study(&placed(20, |_, _| EVEN, |_, _| Some(1)));
    assert!(one.head.warnings.iter().all(|warning| !format!("{:?}", warning.code).starts_with("Placement")));
}

#[test]
fn too_few_slices_or_one_thread_give_no_caveat() {
    let few = study(&placed(4, |_, _| EVEN, |_, case| Some(case as u32)));
    assert_eq!((few.placement.len(), told(&few, Code::PlacementDiffers)), (2, None));
    let mut strangers = placed(20, |_, _| EVEN, |round, case| Some(u32::from(case == 0 || round % 10 == 0)));
    strangers.header.experiment.cases = experiment(Draft::default()).cases;
    strangers.header.experiment.place = Some(Place::Same);
    let found = study(&strangers);
    assert!(found.placement.is_empty(), "jobs without a server talk to nobody: {:?}", found.placement);
    assert!(found.head.warnings.iter().all(|warning| !format!("{:?}", warning.code).starts_with("Placement")));
    let alone = study(&placed(20, |_, _| EVEN, |_, _| None));
    assert!(alone.placement.is_empty());
    let unseen = study(&record(experiment(Draft::default()), 20, |_, _| EVEN));
    assert!(unseen.placement.is_empty());
}

/// For commands, the windows within an execution decide, and an execution has the mode of nearly all of them.
#[test]
fn the_mode_of_an_execution_follows_from_its_windows() {
    let mut record = placed(12, |_, _| EVEN, |round, case| Some(if case == 0 { 1 } else { u32::from(round % 4 == 0) }));
    execute(&mut record.rounds, |ends, _| Execution { stretch: window(ends), ..Execution::default() });
    record.header.schedule = Schedule::Executions;
    let found = study(&record);
    let parts: Vec<_> = found.placement.iter().map(|case| case.same_fraction).collect();
    assert_eq!(parts, [0.0, 0.75]);
    assert!(told(&found, Code::PlacementDiffers).is_some());
}

#[test]
fn a_misplaced_server_is_a_caveat() {
    let mut record = placed(20, |_, _| EVEN, |_, _| Some(1));
    record.header.experiment.place = Some(Place::Same);
    let found = study(&record);
    let message = told(&found, Code::PlacementElsewhere).unwrap();
    assert!(message.contains("--place same") && message.contains("taskset -a -c -p 0 77"), "{message}");
    record.header.experiment.place = Some(Place::Apart);
    assert_eq!(told(&study(&record), Code::PlacementElsewhere), None);
}

/// The header has half the CPUs of these rounds.
#[test]
fn a_round_is_studied_with_its_own_cpus() {
    let load = |_, case: usize| Load { nanos_per_io: if case == 0 { 1000 } else { 1100 }, ios: 40_000 };
    let small = study(&record(experiment(Draft::default()), 12, load));
    let mut large = record(experiment(Draft::default()), 12, load);
    for snapshot in parts(&mut large.rounds).flat_map(|slice| slice.ends) {
        // Two more CPUs, which are idle.
        let list = snapshot.counts.get_mut(Meter::TimerList).unwrap();
        (list.cpus, list.total) = (4, list.total + 2 * snapshot.at_nanos.0);
    }
    let large = study(&large);
    let cost = |found: &CompareFinding| found.cells[0].metrics["cycles_per_io"].baseline.unwrap();
    assert!((cost(&large) / cost(&small) - 1.0).abs() < 1e-9, "{} {}", cost(&large), cost(&small));
    let busy = |found: &CompareFinding| found.environment.background_busy_fraction.unwrap();
    assert!((busy(&large) - busy(&small) / 2.0).abs() < 1e-9, "{} {}", busy(&large), busy(&small));
}
