//! Phases whose rate steps: each regime is reported, and no mean of both.

use super::*;
use crate::page_cache::{CacheRecord, CacheState, CachedPages};
use crate::plan::{JobPlan, Phase};

const COLD: Happening = Happening { busy: 60_000_000, thread: 50_000_000, ios: 1000, steal: 0 };
const WARM: Happening = Happening { busy: 110_000_000, thread: 90_000_000, ios: 100_000, steal: 0 };
const IDLE: Happening = Happening { busy: 10_000_000, ..NOTHING };

/// Windows of cold reads, all of them delivered by storage, then of warm ones.
fn stepping(cold: usize, warm: usize) -> Stretch {
    let mut machine = Machine::begin(Mode::Quiet);
    for _ in 0..cold {
        machine.storage_read += COLD.ios * 4096;
        machine.pass(COLD, Mode::Quiet);
    }
    (0..warm).for_each(|_| machine.pass(WARM, Mode::Quiet));
    machine.stretch()
}

/// A job `a` that reads a file of 1 MiB, which was dropped first.
fn measured(stretch: Stretch, ios: u64) -> Record {
    let pages = |resident| Reading::Taken(CachedPages { of: Bytes(1 << 20), resident: Bytes(resident), dirty: None });
    let page_cache = Some(CacheRecord { dropped: true, before: pages(0), after: pages(1 << 20) });
    let execution = Execution { page_cache, ..execution(stretch, ios) };
    let plan = JobPlan { name: "a".into(), ..JobPlan::default() };
    let plan = Plan { phases: vec![Phase { jobs: vec![plan] }], ..Plan::default() };
    Record { source: Source::Run(plan), ..record(vec![quiet(10, IDLE)], vec![execution]) }
}

#[test]
fn cold_and_warm_regimes_have_separate_costs_and_no_mean() {
    let finding = study(&measured(stepping(8, 22), 8 * COLD.ios + 22 * WARM.ios));
    let phase = &finding.phases[0];
    let [cold, warm] = phase.regimes.as_slice() else { panic!("{:?}", phase.regimes) };
    assert!((cold.end_seconds - 0.8).abs() < 1e-9 && (warm.end_seconds - 3.0).abs() < 1e-9);
    // (60 − 10) ms × 2 GHz ÷ 1000 I/Os, (110 − 10) ms × 2 GHz ÷ 100,000.
    let near = |found: Option<f64>, expected: f64| assert!((found.unwrap() / expected - 1.0).abs() < 1e-9, "{found:?}");
    near(cold.iops, 10_000.0);
    near(warm.iops, 1_000_000.0);
    near(cold.cycles_per_io.map(|it| it.value), 100_000.0);
    near(warm.cycles_per_io.map(|it| it.value), 2_000.0);
    assert_eq!((cold.from_storage_fraction, warm.from_storage_fraction), (Some(1.0), Some(0.0)));
    assert_eq!(
        (phase.cycles_per_io(), phase.value(Metric::CyclesPerByte), finding.jobs[0].cycles_per_io),
        (None, None, None)
    );
    assert!(phase.by_meter.values().all(Option::is_none) && phase.accounts.is_empty());
    let first = &finding.head.warnings[0];
    assert_eq!(first.code, Code::TwoRegimes);
    assert!(first.message.contains("stepped after 0.8 s (the first read from storage"), "{}", first.message);
    assert!(first.message.contains("ramp_time=1s") && first.message.contains("invalidate=0"), "{}", first.message);
    assert!(!has(&finding, Code::UnsteadyLoad));
    let cache = phase.page_cache.as_ref().unwrap();
    let part = cache.reads_from_storage_fraction.unwrap();
    assert_eq!((cache.state, cache.dropped), (CacheState::Warming, true));
    assert!((part - 8_000.0 / 2_208_000.0).abs() < 1e-9, "{part}");
}

#[test]
fn a_steady_load_has_no_regimes_and_keeps_its_mean() {
    for (cold, warm, state) in [(0, 30, CacheState::Warm), (30, 0, CacheState::Cold)] {
        let ios = cold * COLD.ios + warm * WARM.ios;
        let mut record = measured(stepping(cold as usize, warm as usize), ios);
        if let Some(pages) = record.phases[0].executions[0].page_cache.as_mut().filter(|_| cold == 0) {
            pages.before = pages.after.clone();
        }
        let finding = study(&record);
        let phase = &finding.phases[0];
        assert!(phase.regimes.is_empty() && phase.cycles_per_io().is_some(), "{:?}", phase.regimes);
        assert_eq!(phase.page_cache.as_ref().unwrap().state, state);
        assert!(!has(&finding, Code::TwoRegimes));
    }
}

/// Kernel threads write back what the load's threads left in memory: the load's threads cost the same as before, the
/// machine does not.
#[test]
fn work_of_others_for_a_load_makes_it_a_different_load() {
    const INTO_MEMORY: Happening = Happening { busy: 30_000_000, thread: 20_000_000, ios: 10_000, steal: 0 };
    const THROTTLED: Happening = Happening { busy: 60_000_000, thread: 4_000_000, ios: 2000, steal: 0 };
    let mut machine = Machine::begin(Mode::Quiet);
    (0..15).for_each(|_| machine.pass(INTO_MEMORY, Mode::Quiet));
    (0..15).for_each(|_| machine.pass(THROTTLED, Mode::Quiet));
    let finding = study(&measured(machine.stretch(), 15 * 12_000));
    let phase = &finding.phases[0];
    let [first, last] = phase.regimes.as_slice() else { panic!("{:?}", phase.regimes) };
    assert_eq!(first.thread_cycles_per_io, last.thread_cycles_per_io);
    assert_eq!(phase.cycles_per_io(), None, "{:?}", phase.regimes);
    assert!(finding.head.warnings[0].message.contains("no single mean"), "{}", finding.head.warnings[0].message);
}

/// The window in which the rate stepped contains I/Os of both regimes, and belongs to neither.
#[test]
fn the_window_of_the_step_belongs_to_no_regime() {
    const BETWEEN: Happening = Happening { busy: 85_000_000, thread: 70_000_000, ios: 30_000, steal: 0 };
    let mut machine = Machine::begin(Mode::Quiet);
    (0..8).for_each(|_| machine.pass(COLD, Mode::Quiet));
    machine.pass(BETWEEN, Mode::Quiet);
    (0..22).for_each(|_| machine.pass(WARM, Mode::Quiet));
    let finding = study(&measured(machine.stretch(), 8 * COLD.ios + BETWEEN.ios + 22 * WARM.ios));
    let rates: Vec<f64> = finding.phases[0].regimes.iter().map(|regime| regime.iops.unwrap().round()).collect();
    assert_eq!(rates, [10_000.0, 1_000_000.0]);
}

/// The I/Os of a command are not counted live, but what storage reads for it is.
#[test]
fn a_command_that_reads_the_disk_at_first_keeps_its_mean_with_a_caveat() {
    let mut stretch = stepping(8, 22);
    stretch.snapshots.iter_mut().for_each(|snapshot| snapshot.done = None);
    let mut job = job(2_208_000);
    job.engine = "fio psync".into();
    let execution = Execution { jobs: vec![job], stretch, ..Execution::default() };
    let source = Source::Cost { command: vec!["fio".into()], counted_by: "fio".into() };
    let finding = study(&Record { source, ..record(vec![quiet(10, IDLE)], vec![execution]) });
    let phase = &finding.phases[0];
    assert_eq!(phase.regimes.len(), 2, "{:?}", phase.regimes);
    assert!(phase.regimes.iter().all(|regime| regime.iops.is_none() && regime.cycles_per_io.is_none()));
    assert!(phase.regimes[0].storage_bytes_per_second.unwrap() > 1e7);
    assert!(phase.cycles_per_io().is_some());
    assert!(has(&finding, Code::TwoRegimes));
    let part = phase.page_cache.as_ref().unwrap().reads_from_storage_fraction.unwrap();
    assert!((part - 8_000.0 / 2_208_000.0).abs() < 1e-6, "{part}");
}

/// `cost --repeat` of a command whose files are on the disk at first: a mean over its executions is meaningless.
#[test]
fn an_execution_that_reads_the_disk_among_warm_ones_is_a_regime() {
    let execution = |cold: usize, warm: usize, engine: &str| {
        let mut stretch = stepping(cold, warm);
        stretch.snapshots.iter_mut().for_each(forget_work);
        let ios = cold as u64 * COLD.ios + warm as u64 * WARM.ios;
        Execution { jobs: vec![JobRecord { engine: engine.into(), ..job(ios) }], stretch, ..Execution::default() }
    };
    let repeated = |executions: Vec<Execution>| {
        let source = Source::Cost { command: vec!["fio".into()], counted_by: "fio".into() };
        study(&Record { source, ..record(vec![quiet(10, IDLE)], executions) })
    };
    let finding = repeated(vec![execution(10, 0, "fio psync"), execution(0, 10, "fio"), execution(0, 10, "fio")]);
    let phase = &finding.phases[0];
    let [cold, warm] = phase.regimes.as_slice() else { panic!("{:?}", phase.regimes) };
    assert_eq!(
        (cold.executions().unwrap(), warm.executions().unwrap().as_str()),
        ("execution 1".into(), "executions 2 to 3")
    );
    assert_eq!((cold.from_storage_fraction, warm.from_storage_fraction), (Some(1.0), Some(0.0)));
    assert!(
        (cold.cycles_per_io.unwrap().value - 100_000.0).abs() < 1e-6
            && (warm.cycles_per_io.unwrap().value - 2000.0).abs() < 1e-6
    );
    assert_eq!(phase.cycles_per_io(), None);
    assert!(
        finding.head.warnings[0].message.contains("execution 1 100 %, executions 2 to 3 0 %"),
        "{:?}",
        finding.head.warnings[0]
    );
    for alike in [(0, 10), (10, 0)] {
        let finding = repeated(vec![execution(alike.0, alike.1, "fio"), execution(alike.0, alike.1, "fio")]);
        assert!(finding.phases[0].regimes.is_empty() && finding.phases[0].cycles_per_io().is_some());
    }
    // The total bytes read are unknown: about 40 MB came from the disk.
    let finding = repeated(vec![execution(10, 0, "stated"), execution(0, 10, "stated")]);
    assert_eq!((finding.phases[0].regimes.len(), finding.phases[0].cycles_per_io()), (2, None));
}

#[test]
fn a_cost_that_wanders_from_window_to_window_is_a_caveat() {
    let windows = |costs: Vec<u64>| {
        let mut machine = Machine::begin(Mode::Quiet);
        for busy in &costs {
            machine.pass(Happening { busy: *busy, ..WARM }, Mode::Quiet);
        }
        study(&measured(machine.stretch(), costs.len() as u64 * WARM.ios))
    };
    // Half of the time the same I/Os cost a tenth more.
    let wandering = windows([[104_000_000; 20], [114_000_000; 20]].concat());
    let correlation = wandering.phases[0].spread.correlation.unwrap();
    assert!(correlation > 0.5, "{correlation}");
    let caveat = wandering.head.warnings.iter().find(|warning| warning.code == Code::WindowsCorrelated).unwrap();
    assert!(caveat.message.contains(&format!("({correlation:.2})")), "{}", caveat.message);
    let alternating = windows([104_000_000, 114_000_000].repeat(20));
    assert_eq!(alternating.phases[0].spread.correlation, None);
    assert!(!has(&alternating, Code::WindowsCorrelated));
}
