//! Exact accounts of simulated windows.

use super::*;
use crate::account::{Account, AccountKind, Accounts, TaskOwner};

/// Milliseconds of each account in a window of 100 ms on two CPUs; the rest is idle.
fn accounts(of: &[(AccountKind, Option<TaskOwner>, &str, u64)]) -> Option<Box<Accounts>> {
    let passed: u64 = 200;
    let idle = passed - of.iter().map(|(_, _, _, millis)| millis).sum::<u64>();
    let all = of.iter().copied().chain([(AccountKind::Idle, None, "", idle)]);
    let account = |(kind, owner, name, millis): (AccountKind, Option<TaskOwner>, &str, u64)| Account {
        kind,
        name: name.to_owned(),
        owner,
        nanos: Nanos::from_millis(millis),
        count: 1,
    };
    let passed_nanos = Nanos::from_millis(passed);
    Some(Box::new(Accounts { passed_nanos, accounts: all.map(account).collect() }))
}

/// Undisturbed windows, and one with these accounts after each second.
fn stretch(happening: Happening, of: &[(AccountKind, Option<TaskOwner>, &str, u64)]) -> Stretch {
    let kept = Mode::Alone(Meter::Accounts);
    let mut machine = Machine::begin(Mode::Quiet);
    for _ in 0..6 {
        for next in [Mode::Quiet, Mode::Gap, kept, Mode::Gap, Mode::Quiet] {
            let keeps = machine.snapshots.last().is_some_and(|snapshot| snapshot.mode == kept);
            machine.pass(happening, next);
            if keeps {
                machine.snapshots.last_mut().unwrap().accounts = accounts(of);
            }
        }
    }
    machine.stretch()
}

#[test]
fn exact_accounts_are_shares_of_the_cost_net_of_the_background() {
    use AccountKind::{IdleEntry, Softirq, Task};
    let daemon = (Task, Some(TaskOwner::Other), "daemon", 10);
    let timer = (Softirq, None, "timer", 2);
    let background = stretch(Happening { busy: 12_000_000, ..NOTHING }, &[daemon, timer]);
    let load = Happening { busy: 134_000_000, thread: 80_000_000, ios: 1000, steal: 0 };
    let own = (Task, Some(TaskOwner::Workload), "fio", 40);
    let other = (Task, Some(TaskOwner::Workload), "fio-2", 40);
    let net_rx = (Softirq, None, "net_rx", 30);
    let execution = Execution {
        jobs: vec![job(30_000)],
        stretch: stretch(load, &[own, other, net_rx, daemon, timer, (IdleEntry, None, "", 12)]),
        ..Execution::default()
    };
    let found = study(&record(vec![background.clone(), background], vec![execution]));
    let phase = &found.phases[0];
    let net = phase.cycles_per_io().unwrap();
    // 134 − 12 ms of two CPUs for 1000 I/Os.
    assert!((net / (122e6 * CLOCK / 1e9 / 1000.0) - 1.0).abs() < 0.01, "{net}");
    let told: Vec<_> =
        phase.accounts.iter().map(|it| (it.name.as_str(), it.kind, (it.share * 122.0).round())).collect();
    assert_eq!(
        told,
        [
            ("the workload's own threads", Some(Task), 80.0),
            ("softirq net_rx", Some(Softirq), 30.0),
            ("idle entry and exit", Some(IdleEntry), 12.0),
            ("others, each below 1 %", None, 0.0),
        ]
    );
    for account in phase.accounts.iter().filter(|account| account.kind.is_some()) {
        assert!(account.low.unwrap() <= account.cycles_per_io && account.cycles_per_io <= account.high.unwrap());
        assert!((account.cycles_per_io - account.share * net).abs() < 1e-6);
    }
    assert!((phase.accounts.iter().map(|account| account.share).sum::<f64>() - 1.0).abs() < 1e-9);
    // Once in a window of 1000 I/Os; what the machine does anyway is taken off, and tasks are not counted.
    let times = |place: usize| phase.accounts[place].times_per_io.map(|times| (times.value * 1e6).round());
    assert_eq!([times(0), times(1), times(2)], [None, Some(1000.0), Some(1000.0)]);
}

#[test]
fn without_windows_of_accounts_tasks_are_told() {
    let execution = Execution {
        jobs: vec![job(6000)],
        stretch: quiet(6, Happening { busy: 100_000_000, thread: 80_000_000, ios: 1000, steal: 0 }),
        ..Execution::default()
    };
    let found = study(&record(vec![quiet(6, NOTHING)], vec![execution]));
    let last = found.phases[0].accounts.last().unwrap();
    assert!(last.kind.is_none() && last.name.starts_with("no task"), "{last:?}");
}

/// The windows of accounts lie between the quiet ones, whose cost must not be divided by their I/Os too.
#[test]
fn work_that_is_only_counted_in_total_is_divided_over_the_measured_time() {
    let load = Happening { busy: 100_000_000, thread: 80_000_000, ios: 1000, steal: 0 };
    let mut whole = stretch(load, &[(AccountKind::Task, Some(TaskOwner::Workload), "fio", 100)]);
    whole.snapshots.iter_mut().for_each(forget_work);
    let wall_nanos = Nanos(30 * WINDOW);
    let execution =
        Execution { jobs: vec![JobRecord { wall_nanos, ..job(30_000) }], stretch: whole, ..Execution::default() };
    let found = study(&record(vec![stretch(NOTHING, &[])], vec![execution]));
    let phase = &found.phases[0];
    let truth = 100e6 * CLOCK / 1e9 / 1000.0;
    for cost in [phase.others.cycles_per_io_by_level, phase.others.cycles_per_io_by_name] {
        assert!((cost.unwrap().value / truth - 1.0).abs() < 0.01, "{cost:?} {truth}");
    }
}

/// Two switches for each I/O, beside a program that uses a third of the machine.
#[test]
fn what_accounts_add_to_a_cost_by_name_is_told_where_it_is_much() {
    let daemon = (AccountKind::Task, Some(TaskOwner::Other), "daemon", 60);
    let of = |ios: u64| {
        let own = (AccountKind::Task, Some(TaskOwner::Workload), "fio", 80);
        let load = Happening { busy: 140_000_000, thread: 80_000_000, ios, steal: 0 };
        let execution =
            Execution { jobs: vec![job(30 * ios)], stretch: stretch(load, &[own, daemon]), ..Execution::default() };
        let background = stretch(Happening { busy: 60_000_000, ..NOTHING }, &[daemon]);
        let found = study(&record(vec![background.clone(), background], vec![execution]));
        assert!(found.phases[0].others.known_by_name);
        let told = found.head.warnings.iter().find(|warning| warning.code == Code::BusyBackground);
        told.map(|warning| warning.message.clone()).unwrap()
    };
    // 0.49 µs of 13.3 µs, and of 80 µs.
    let much = of(6000);
    assert!(much.contains("Of the cost, some 4 % are what keeping accounts adds to its context switches"), "{much}");
    assert!(!of(1000).contains("Of the cost"));
}

/// Before and after the load, the kernel writes back what an earlier one left behind: that is no negative cost of this one.
#[test]
fn work_of_the_kernel_that_the_load_ends_is_no_negative_cost_by_name() {
    let own = (AccountKind::Task, Some(TaskOwner::Workload), "fio", 40);
    let daemon = (AccountKind::Task, Some(TaskOwner::Other), "daemon", 60);
    let writer = |millis| (AccountKind::Task, Some(TaskOwner::Kernel), "kworker/u4:1-flush", millis);
    let background = stretch(Happening { busy: 160_000_000, ..NOTHING }, &[daemon, writer(100)]);
    let load = Happening { busy: 105_000_000, thread: 40_000_000, ios: 1000, steal: 0 };
    let stretch = stretch(load, &[own, daemon, writer(5)]);
    let execution = Execution { jobs: vec![job(30_000)], stretch, ..Execution::default() };
    let found = study(&record(vec![background.clone(), background], vec![execution]));
    let phase = &found.phases[0];
    assert!(phase.others.known_by_name);
    let own = 40e6 * CLOCK / 1e9 / 1000.0;
    assert!((phase.cycles_per_io().unwrap() / own - 1.0).abs() < 0.01, "{:?}", phase.cycles_per_io());
    assert!(phase.accounts.iter().all(|account| account.cycles_per_io >= 0.0), "{:?}", phase.accounts);
}
