//! Samples of simulated windows as parts of a cost.

use super::*;
use crate::account::{Account, AccountKind, Accounts, TaskOwner};
use crate::profile::{Function, Profile, Stack};

type Charged<'a> = (AccountKind, Option<TaskOwner>, &'a str);

const OWN: Charged<'_> = (AccountKind::Task, Some(TaskOwner::Workload), "fio");
const NET_RX: Charged<'_> = (AccountKind::Softirq, None, "net_rx");

fn profile(stacks: &[(Charged<'_>, &[u32], u64)]) -> Option<Box<Profile>> {
    let function = |name: &str, kernel: bool| {
        let module = if kernel { "" } else { "fio" };
        Function { name: name.to_owned(), module: module.to_owned(), kernel, ..Function::default() }
    };
    let stack = |((kind, owner, name), functions, samples): &(Charged<'_>, &[u32], u64)| Stack {
        kind: *kind,
        name: (*name).to_owned(),
        owner: *owner,
        functions: functions.to_vec(),
        whole: *samples != 7,
        samples: *samples,
    };
    Some(Box::new(Profile {
        period_nanos: Nanos(1_000_000),
        functions: vec![
            function("main", false),
            function("work;er", false),
            function("vfs_read", true),
            function("_raw_spin_unlock_irqrestore", true),
            function("net_rx_action", true),
        ],
        stacks: stacks.iter().map(stack).collect(),
        lost: 2,
        ..Profile::default()
    }))
}

/// Undisturbed windows, and after each turn one with accounts and one with samples.
fn sampled(load: Happening, with_accounts: bool) -> Stretch {
    let (kept, sampled) = (Mode::Alone(Meter::Accounts), Mode::Alone(Meter::Sampler));
    let mut machine = Machine::begin(Mode::Quiet);
    for _ in 0..6 {
        for next in [Mode::Quiet, Mode::Gap, kept, Mode::Gap, sampled, Mode::Gap, Mode::Quiet] {
            let now = machine.snapshots.last().unwrap().mode;
            machine.pass(load, next);
            let after = machine.snapshots.last_mut().unwrap();
            if now == kept && with_accounts {
                let account = |(kind, owner, name): Charged<'_>, millis| Account {
                    kind,
                    owner,
                    name: name.to_owned(),
                    nanos: Nanos::from_millis(millis),
                    count: 1,
                };
                let idle = (AccountKind::Idle, None, "");
                let accounts = match load.ios {
                    0 => vec![account(idle, 200)],
                    _ => vec![account(OWN, 80), account(NET_RX, 20), account(idle, 100)],
                };
                after.accounts = Some(Box::new(Accounts { passed_nanos: Nanos::from_millis(200), accounts }));
            }
            if now == sampled && load.ios > 0 {
                let other = (AccountKind::Task, Some(TaskOwner::Other), "cc1");
                after.profile = profile(&[
                    (OWN, &[0, 1], 60),
                    (OWN, &[0, 2], 13),
                    (OWN, &[0, 2, 3], 7),
                    (NET_RX, &[4], 50),
                    (other, &[0], 30),
                ]);
            }
        }
    }
    machine.stretch()
}

fn studied(with_accounts: bool) -> crate::finding::PhaseFinding {
    let load = Happening { busy: 100_000_000, thread: 80_000_000, ios: 1000, steal: 0 };
    let stretch = sampled(load, with_accounts);
    let execution = Execution { jobs: vec![job(42_000)], stretch, ..Execution::default() };
    let background = sampled(NOTHING, with_accounts);
    study(&record(vec![background.clone(), background], vec![execution])).phases.remove(0)
}

#[test]
fn functions_are_parts_of_their_account() {
    let phase = studied(true);
    let net = phase.cycles_per_io().unwrap();
    let told: Vec<_> = phase
        .functions
        .symbols
        .iter()
        .map(|it| (it.symbol.as_str(), it.module.as_str(), (it.cycles_per_io.value / net * 1000.0).round()))
        .collect();
    // The account is 80 % of the cost and has 80 samples of each window; net_rx has fewer samples than its time.
    assert_eq!(
        told,
        [
            ("work;er", "fio", 600.0),
            ("net_rx_action", "kernel", 200.0),
            ("vfs_read", "kernel", 130.0),
            ("_raw_spin_unlock_irqrestore", "kernel", 70.0),
        ]
    );
    let of = |name: &str| {
        phase.functions.symbols.iter().filter(|it| it.account == name).map(|it| it.cycles_per_io.value).sum::<f64>()
    };
    for account in phase.accounts.iter().filter(|account| account.kind.is_some() && account.cycles_per_io > 0.0) {
        let missed = (of(&account.name) / account.cycles_per_io - 1.0).abs();
        assert!(missed < 1e-9 || account.kind == Some(AccountKind::IdleEntry), "{}: {missed}", account.name);
    }
    let unlock = &phase.functions.symbols[3];
    assert_eq!((unlock.interrupts_on, unlock.caller.as_deref()), (true, Some("vfs_read")));
    for symbol in &phase.functions.symbols {
        let (low, value, high) =
            (symbol.cycles_per_io.low.unwrap(), symbol.cycles_per_io.value, symbol.cycles_per_io.high.unwrap());
        assert!(low < value && value < high, "{symbol:?}");
        assert!((symbol.share - value / net).abs() < 1e-12);
    }
}

#[test]
fn stacks_sum_to_what_was_sampled_and_calls_are_separated() {
    let phase = studied(true);
    let sum: f64 = phase.functions.stacks.iter().map(|stack| stack.cycles_per_io).sum();
    assert!((sum / phase.cycles_per_io().unwrap() - 1.0).abs() < 1e-9);
    let calls: Vec<&str> = phase.functions.stacks.iter().map(|stack| stack.calls.as_str()).collect();
    assert!(calls.contains(&"the workload's own threads;main;work:er"), "{calls:?}");
    let profile = phase.functions.profile.unwrap();
    // Without the 30 of another program.
    assert_eq!((profile.samples, profile.lost), (6 * 130, 6 * 2));
    // 7 of the 80 samples of its programs.
    assert!((profile.whole_stacks_fraction.unwrap() - 73.0 / 80.0).abs() < 1e-9);
    assert!((profile.seen_fraction.unwrap() - 1.0).abs() < 1e-9);
}

#[test]
fn without_accounts_all_that_the_load_causes_is_one() {
    let phase = studied(false);
    let net = phase.cycles_per_io().unwrap();
    let told: Vec<_> = phase
        .functions
        .symbols
        .iter()
        .map(|it| (it.symbol.as_str(), (it.cycles_per_io.value / net * 130.0).round()))
        .collect();
    let expected =
        [("work;er", 60.0), ("net_rx_action", 50.0), ("vfs_read", 13.0), ("_raw_spin_unlock_irqrestore", 7.0)];
    assert_eq!(told, expected);
    assert!(phase.functions.symbols.iter().all(|symbol| symbol.account == "all that the workload causes"));
}

/// One window of a few samples: two functions of five and four of them, and three of one each.
#[test]
fn functions_of_few_samples_are_one_row() {
    let mut stretch = sampled(Happening { busy: 100_000_000, thread: 80_000_000, ios: 1000, steal: 0 }, true);
    let mut profiles = stretch.snapshots.iter_mut().filter(|snapshot| snapshot.profile.is_some());
    let few: [(Charged<'_>, &[u32], u64); 4] =
        [(OWN, &[0, 1], 40), (OWN, &[0, 2], 1), (OWN, &[0, 2, 3], 1), (NET_RX, &[0], 1)];
    profiles.next().unwrap().profile = profile(&few);
    profiles.for_each(|snapshot| snapshot.profile = None);
    let execution = Execution { jobs: vec![job(42_000)], stretch, ..Execution::default() };
    let background = sampled(NOTHING, true);
    let phase = study(&record(vec![background.clone(), background], vec![execution])).phases.remove(0);
    let told: Vec<(&str, u64)> = phase.functions.symbols.iter().map(|it| (it.symbol.as_str(), it.samples)).collect();
    assert_eq!(told, [("work;er", 40), ("3 functions, each below what 43 samples can tell", 3)]);
    assert_eq!(phase.functions.profile.unwrap().samples, 43);
    let (large, rest) = (&phase.functions.symbols[0], &phase.functions.symbols[1]);
    assert!((large.share + rest.share - 1.0).abs() < 1e-9, "nothing is lost: {told:?}");
    // Two of 42 samples of 80 % of the cost, and the one of the other 20 %.
    assert!((rest.share - (0.8 * 2.0 / 42.0 + 0.2)).abs() < 1e-9, "{rest:?}");
    assert!(rest.cycles_per_io.low.unwrap() < rest.cycles_per_io.value);
}
