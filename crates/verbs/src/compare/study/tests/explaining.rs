//! Explaining rounds whose accounts are known.

use super::*;
use crate::compare::CompareFinding;
use crate::compare::record::Line;
use model::account::{Account, AccountKind, Accounts, TaskOwner};
use model::explained::AccountChange;
use model::kind::Recorded;
use model::record::{Direction, IoInterval, JobRecord, Latency, MeterStatus, Mode};
use rand_distr::Distribution;

/// Nanoseconds of each account per I/O.
type PerIo<'a> = &'a [(AccountKind, Option<TaskOwner>, &'a str, f64)];

const OWN: (AccountKind, Option<TaskOwner>, &str) = (AccountKind::Task, Some(TaskOwner::Workload), "iotoll");
const NET_RX: (AccountKind, Option<TaskOwner>, &str) = (AccountKind::Softirq, None, "net_rx");
const DAEMON: (AccountKind, Option<TaskOwner>, &str) = (AccountKind::Task, Some(TaskOwner::Other), "daemon");
const TIMER: (AccountKind, Option<TaskOwner>, &str) = (AccountKind::Softirq, None, "timer");

const IOS: u64 = 10_000;

/// What a slice was charged to, with what the machine does anyway.
fn charge(slice: &mut SliceRecord, per_io: PerIo) {
    let SliceReading::Slice { before, after, work, .. } = &mut slice.reading else { unreachable!() };
    before.mode = Mode::Alone(Meter::Accounts);
    let passed = 2.0 * SLICE as f64;
    let account = |(kind, owner, name): (AccountKind, Option<TaskOwner>, &str), nanos: f64| Account {
        kind,
        name: name.to_owned(),
        owner,
        nanos: Nanos(nanos as u64),
        count: 1,
    };
    let anyway = [(DAEMON, 0.04), (TIMER, 0.06)].map(|(of, part)| account(of, part * passed));
    let own = per_io.iter().map(|&(kind, owner, name, nanos)| account((kind, owner, name), nanos * work.ios as f64));
    let mut accounts: Vec<Account> = Vec::new();
    for more in own.chain(anyway) {
        match accounts.iter_mut().find(|it| (it.kind, it.owner, &it.name) == (more.kind, more.owner, &more.name)) {
            Some(known) => known.nanos += more.nanos,
            None => accounts.push(more),
        }
    }
    let busy: u64 = accounts.iter().map(|account| account.nanos.0).sum();
    accounts.push(account((AccountKind::Idle, None, ""), passed - busy as f64));
    after.accounts = Some(Box::new(Accounts { passed_nanos: Nanos(passed as u64), accounts }));
}

/// A comparison whose explaining rounds charge these nanoseconds per I/O to the baseline and to the candidate.
pub(super) fn explained(draft: Draft, seed: u64, rounds: usize, charged: impl Fn(usize) -> Vec<f64>) -> CompareRecord {
    let accounts = [OWN, NET_RX, TIMER];
    let mut noise = rand_pcg::Pcg64Mcg::new(seed.into());
    let mut draw = || -> f64 { rand_distr::StandardNormal.sample(&mut noise) };
    let cases = experiment(draft.clone()).cases.len();
    // Both arms share the speed of a round; each account of each case has its own.
    let factors: Vec<f64> = (0..rounds).map(|_| 1.0 + 0.05 * draw()).collect();
    let own: Vec<f64> = (0..rounds * cases * accounts.len()).map(|_| 1.0 + 0.01 * draw()).collect();
    let nanos = |round: usize, case: usize| -> Vec<f64> {
        let of = |(place, nanos): (usize, f64)| {
            nanos * factors[round] * own[(round * cases + case) * accounts.len() + place]
        };
        charged(case).into_iter().enumerate().map(of).collect()
    };
    let load =
        |round: usize, case: usize| Load { nanos_per_io: nanos(round, case).iter().sum::<f64>() as u64, ios: IOS };
    let mut record = record(experiment(draft), rounds, load);
    record.explaining = record.rounds.clone();
    for (round, slices) in record.explaining.iter_mut().enumerate() {
        for slice in &mut slices.slices {
            let nanos = slice.case.map(|case| nanos(round, case)).unwrap_or_default();
            let per_io = accounts.iter().zip(nanos).map(|(&(kind, owner, name), nanos)| (kind, owner, name, nanos));
            charge(slice, &per_io.collect::<Vec<_>>());
        }
    }
    record
}

pub(super) fn planted(case: usize) -> Vec<f64> {
    if case.is_multiple_of(2) { vec![800.0, 300.0, 50.0] } else { vec![800.0, 360.0, 50.0] }
}

fn detected(found: &CompareFinding) -> Vec<&AccountChange> {
    found.cells.iter().flat_map(|cell| &cell.cost.accounts).filter(|account| account.per_io.detected).collect()
}

#[test]
fn a_planted_difference_is_found_in_its_account_and_nowhere_else() {
    let mut elsewhere = 0;
    for seed in 0..40 {
        let found = study(&explained(Draft::default(), seed, 12, planted));
        let changed = detected(&found);
        let of = |name: &str| changed.iter().find(|account| account.name == name);
        let net_rx = of("softirq net_rx").unwrap_or_else(|| panic!("{:?}", found.cells[0].cost.accounts));
        // 60 ns at 2 GHz.
        let change = net_rx.per_io.change;
        assert!((change.value - 120.0).abs() < 20.0 && change.low.unwrap() > 0.0, "{net_rx:?}");
        assert_eq!((net_rx.kind, net_rx.owner), (Some(AccountKind::Softirq), None));
        assert!((net_rx.per_io.baseline.value - 600.0).abs() < 60.0, "{net_rx:?}");
        assert_eq!(found.cells[0].cost.accounts[0].name, "softirq net_rx");
        elsewhere += usize::from(changed.len() > 1);
        let sum: f64 = found.cells[0].cost.accounts.iter().map(|account| account.per_io.change.value).sum();
        let whole = found.cells[0].cost.explained.unwrap();
        assert!((sum - whole.change.value).abs() < 1e-6, "{sum} {whole:?}");
        assert_eq!((whole.rounds, whole.differs), (12, false));
    }
    // 2 of 40 by chance; 6 or more has a probability of 1 %.
    assert!(elsewhere <= 6, "{elsewhere} of 40");
}

#[test]
fn identical_arms_show_no_account() {
    let axis = axis("bs", &["4k", "8k", "16k"]);
    let mut shown = 0;
    for seed in 0..100 {
        let draft = Draft { against_itself: true, axes: vec![axis.clone()], ..Draft::default() };
        let found = study(&explained(draft, seed, 12, |_| vec![800.0, 300.0, 50.0]));
        assert!(found.cells.iter().all(|cell| cell.cost.accounts.len() >= 3), "{:?}", found.cells[0].cost.accounts);
        shown += usize::from(!detected(&found).is_empty());
    }
    // At most 5 are expected; 11 or more has a probability of 1 %.
    assert!(shown <= 10, "{shown} of 100");
}

/// What the machine does anyway is in no account, and explaining rounds change nothing else.
#[test]
fn the_answer_does_not_use_explaining_rounds() {
    let record = explained(Draft::default(), 7, 12, planted);
    let mut alone = record.clone();
    alone.explaining = Vec::new();
    let (with, without) = (study(&record), study(&alone));
    let told = |found: &CompareFinding| {
        let mut json = serde_json::to_value(found).unwrap();
        for key in ["method", "account_family"] {
            json.as_object_mut().unwrap().remove(key);
        }
        for cell in json["cells"].as_array_mut().unwrap() {
            ["explained", "accounts"].into_iter().for_each(|key| {
                cell.as_object_mut().unwrap().remove(key);
            });
        }
        json
    };
    assert_eq!(told(&with), told(&without));
    assert!(without.cells[0].cost.accounts.is_empty() && without.cells[0].cost.explained.is_none());
    assert!(with.method.contains("12 further rounds kept accounts"), "{}", with.method);
    let daemon = with.cells[0].cost.accounts.iter().find(|account| account.name.contains("daemon"));
    assert!(daemon.is_none_or(|daemon| daemon.per_io.baseline.value.abs() < 1.0), "{daemon:?}");
    let mut progress = Progress::new(&record.header);
    record.rounds.iter().for_each(|round| progress.add(round));
    assert!(progress.standing().is_some());
}

#[test]
fn a_slice_without_accounts_counts_neither_with_time_nor_with_ios() {
    let whole = explained(Draft::default(), 3, 12, planted);
    let mut holes = whole.clone();
    // A second block, in whose slices the programs missed something.
    let mut second = whole.explaining.clone();
    parts(&mut second).for_each(|Parts { ends: [_, after], .. }| after.accounts = None);
    holes.explaining.iter_mut().zip(second).for_each(|(round, second)| round.slices.extend(second.slices));
    let accounts = |record: &CompareRecord| study(record).cells[0].cost.accounts.clone();
    assert_eq!(accounts(&holes), accounts(&whole));
    // A round without accounts of a case does not count; with too few rounds there are none.
    for round in holes.explaining.iter_mut().skip(2) {
        round.slices.retain(|slice| slice.case != Some(1));
    }
    assert!(accounts(&holes).is_empty());
}

/// A server that was not known from the first slice on.
#[test]
fn a_process_that_the_load_wakes_in_one_slice_is_its_server_in_all() {
    let mut record = explained(Draft::default(), 5, 12, planted);
    for (number, Parts { ends: [_, after], .. }) in parts(&mut record.explaining).enumerate() {
        let daemon = after.accounts.as_mut().unwrap().accounts.iter_mut().find(|account| account.name == "daemon");
        if number == 4 {
            daemon.unwrap().owner = Some(TaskOwner::Peer);
        }
    }
    let found = study(&record);
    let named: Vec<&str> = found.cells[0].cost.accounts.iter().map(|account| account.name.as_str()).collect();
    assert!(named.iter().all(|name| !name.contains("another process")), "{named:?}");
}

#[test]
fn accounts_that_another_change_made_are_told() {
    let mut record = explained(Draft::default(), 9, 12, planted);
    assert!(!study(&record).cells[0].cost.explained.unwrap().differs);
    // Without accounts, the candidate costs as much as the baseline.
    record.rounds = explained(Draft::default(), 8, 12, |_| vec![800.0, 300.0, 50.0]).rounds;
    let whole = study(&record).cells[0].cost.explained.unwrap();
    assert!(whole.differs && whole.undisturbed_change.unwrap().contains(0.0) == Some(true), "{whole:?}");
}

#[test]
fn beside_other_programs_accounts_are_those_of_the_load() {
    let mut record = explained(Draft::default(), 4, 12, planted);
    let mut busy = 0;
    for Parts { ends: [_, after], .. } in parts(&mut record.explaining) {
        let accounts = &mut after.accounts.as_mut().unwrap().accounts;
        // A compiler that uses between 20 and 60 % of the machine.
        busy = (busy + 17) % 40;
        accounts.iter_mut().filter(|account| account.name == "daemon").for_each(|daemon| {
            daemon.nanos = Nanos(SLICE * 2 / 100 * (20 + busy));
        });
    }
    let found = study(&record);
    let whole = found.cells[0].cost.explained.unwrap();
    assert!(whole.known_by_name && !whole.differs, "{whole:?}");
    // Without accounts nearly nothing is left of the cost: the accounts are of another one.
    let mut far = record.clone();
    far.rounds =
        explained(Draft::default(), 4, 12, |case| planted(case).iter().map(|nanos| nanos / 100.0).collect()).rounds;
    assert!(study(&far).cells[0].cost.explained.unwrap().differs);
    assert!(found.cells[0].cost.accounts.iter().all(|account| account.owner != Some(TaskOwner::Other)));
    assert_eq!(detected(&found).iter().map(|account| account.name.as_str()).collect::<Vec<_>>(), ["softirq net_rx"]);
}

/// An execution does I/O for longer than it is watched: its accounts are those of the windows within, at their rate.
#[test]
fn executions_keep_accounts_from_window_to_window() {
    let slices = explained(Draft::default(), 2, 12, planted);
    let mut executions = slices.clone();
    executions.header.schedule = Schedule::Executions;
    execute(&mut executions.explaining, |[before, after], work| {
        let read = Direction { ios: work.ios * 2, bytes: work.bytes, short: 0, latency: Latency::None };
        // A window that ends after the I/O.
        let mut outside = after.clone();
        outside.at_nanos += Nanos(3 * SLICE);
        let begin = before.at_nanos.0 - SLICE / 2;
        let io_interval = IoInterval { begin_nanos: Nanos(begin), end_nanos: Nanos(begin + 2 * SLICE) };
        let after = Snapshot { mode: before.mode, ..after.clone() };
        Execution {
            jobs: vec![JobRecord { read, ..JobRecord::default() }],
            stretch: Stretch { snapshots: vec![before.clone(), after, outside], tasks: None, starved: None },
            io_interval: Some(io_interval),
            ..Execution::default()
        }
    });
    let accounts = |record: &CompareRecord| {
        let all = study(record).cells[0].cost.accounts.clone();
        all.into_iter().map(|account| (account.name, account.per_io.change.value)).collect::<Vec<_>>()
    };
    for ((name, change), (same, expected)) in accounts(&executions).into_iter().zip(accounts(&slices)) {
        assert!(name == same && (change - expected).abs() < 1e-3, "{name}: {change} {expected}");
    }
    assert!(!accounts(&executions).is_empty());
}

#[test]
fn why_there_are_no_accounts_is_told_if_somebody_could_mend_it() {
    let mut record = record(experiment(Draft::default()), 5, |_, _| Load { nanos_per_io: 1000, ios: 1000 });
    record.header.schedule = Schedule::WholeRounds { slice_nanos: Nanos(SLICE) };
    let mut reason = |status: Reading<String>| {
        record.header.meters = vec![MeterStatus { meter: Meter::Accounts, status }];
        study(&record).explanation.unexplained
    };
    assert_eq!(reason(Reading::unavailable("this needs root")).as_deref(), Some("this needs root"));
    assert_eq!(reason(Reading::unavailable("not chosen; see --meters")), None);
    assert_eq!(reason(Reading::Taken("every nanosecond".to_owned())), None, "too short for them");
}

/// Also one that was cut off in the explaining rounds, and one of a version without them.
#[test]
fn explaining_rounds_are_lines_of_the_record() {
    let record = explained(Draft::default(), 1, 5, planted);
    let line = |name: &str, value: serde_json::Value| -> Line {
        serde_json::from_value(serde_json::json!({ name: value })).unwrap()
    };
    let lines = |explaining: usize, end: bool| {
        let mut lines = vec![line("header", serde_json::to_value(&record.header).unwrap())];
        lines.extend(record.rounds.iter().map(|round| line("round", serde_json::to_value(round).unwrap())));
        let explained = record.explaining.iter().take(explaining);
        lines.extend(explained.map(|round| line("explaining", serde_json::to_value(round).unwrap())));
        lines.extend(end.then(|| line("end", serde_json::to_value(record.end.as_ref().unwrap()).unwrap())));
        CompareRecord::assemble(record.header.envelope.clone(), lines).unwrap_or_else(|_| unreachable!())
    };
    let back = lines(5, true);
    assert_eq!(serde_json::to_value(&back).unwrap(), serde_json::to_value(&record).unwrap());
    let cut = study(&lines(3, false));
    assert_eq!((cut.rounds, cut.cells[0].cost.explained.unwrap().rounds), (5, 3));
    assert!(study(&lines(0, true)).cells[0].cost.explained.is_none());
}
