//! Planted loads land in their accounts, and nothing is missing from the sum.

use super::*;
use crate::skipping::{allowed, note_skipped, spin};
use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};
use sys::clock::{monotonic_nanos, own_thread_nanos};

/// Accounts, or the printed reason why this machine has none.
fn open(test: &str) -> Option<Accounts> {
    allowed(test, Accounts::open_with(TASKS))
}

fn attached(test: &str) -> Option<Accounts> {
    let mut accounts = open(test)?;
    accounts.attach().unwrap();
    Some(accounts)
}

/// Within a thousandth.
fn assert_complete(times: &AccountTimes) {
    let tasks = times.tasks.iter().map(|task| task.nanos);
    let others = times.others.values().chain([&times.lost]).map(|used| used.nanos);
    let sum: u64 = tasks.chain(others).map(|nanos| nanos.0).sum();
    let passed = times.passed().0;
    assert!(sum.abs_diff(passed) <= passed / 1000, "{sum} of {passed} ns: {times:#?}");
}

#[test]
fn the_sum_of_all_accounts_is_the_time_that_passed() {
    let Some(mut accounts) = open("accounts: their sum") else { return };
    let before = monotonic_nanos();
    accounts.attach().unwrap();
    let began = monotonic_nanos();
    for pass in [std::thread::sleep as fn(Duration), spin, std::thread::sleep] {
        pass(Duration::from_millis(100));
        let end = monotonic_nanos();
        let times = accounts.read().unwrap();
        let after = monotonic_nanos();
        assert_complete(&times);
        assert_eq!(times.cpus.len(), sys::schedule::online_cpus().unwrap().len());
        for (cpu, nanos) in &times.cpus {
            assert!((end - began..=after - before).contains(&nanos.0), "CPU {cpu}: {nanos:?}");
        }
        assert_eq!((times.lost, times.forks_lost), (Use::default(), 0));
    }
    accounts.detach();
    assert!(accounts.read().is_err());
    accounts.attach().unwrap();
    let anew = accounts.read().unwrap();
    assert!(anew.passed().0 < 100_000_000 * u64::try_from(anew.cpus.len()).unwrap(), "{anew:?}");
}

#[test]
fn a_spinning_thread_has_its_time() {
    let Some(mut accounts) = attached("accounts: a spinning thread") else { return };
    let began = monotonic_nanos();
    let spinner = std::thread::Builder::new().name("spinner".to_owned()).spawn(|| {
        let cpu = *sys::schedule::allowed_cpus().unwrap().last().unwrap();
        sys::schedule::pin_to(&[cpu]).unwrap();
        spin(Duration::from_millis(200));
        (sys::schedule::thread_id().unsigned_abs(), own_thread_nanos())
    });
    let (thread, nanos) = spinner.unwrap().join().unwrap();
    let elapsed = monotonic_nanos() - began;
    let times = accounts.read().unwrap();
    let task = times.tasks.iter().find(|task| task.name == "spinner").unwrap();
    if accounts.own_process() == std::process::id() {
        assert_eq!((task.process, task.thread), (std::process::id(), thread));
        assert!(times.parents.contains_key(&task.process));
        assert!(times.tasks.iter().any(|task| task.kernel_thread), "{times:?}");
    }
    assert!(!task.kernel_thread);
    // The scheduler's clock has the interrupts too, but not what a hypervisor takes.
    assert!((nanos / 2..elapsed).contains(&task.nanos.0), "{task:?} of {nanos} ns, {elapsed} ns passed");
    let timer = times.others.get(&(AccountKind::Irq, "local_timer".to_owned()));
    if cfg!(target_arch = "x86_64") {
        assert!(timer.is_some_and(|timer| timer.count > 0 && timer.nanos.0 > 0), "{:?}", times.others);
    }
}

#[test]
fn received_packets_are_softirqs() {
    const PACKETS: u64 = 5000;
    let Some(mut accounts) = attached("accounts: received packets") else { return };
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..PACKETS {
        sender.send_to(&[0; 64], receiver.local_addr().unwrap()).unwrap();
    }
    let times = accounts.read().unwrap();
    assert_complete(&times);
    let softirq = times.others[&(AccountKind::Softirq, "net_rx".to_owned())];
    assert!(softirq.count >= PACKETS / 10 && softirq.nanos.0 >= 100 * softirq.count, "{softirq:?}");
}

#[test]
fn sleeping_makes_cpus_idle() {
    const TEST: &str = "accounts: sleeping";
    let Some(mut accounts) = attached(TEST) else { return };
    // The tests beside it take some ten seconds.
    let until = Instant::now() + Duration::from_secs(30);
    while Instant::now() < until {
        (0..100).for_each(|_| std::thread::sleep(Duration::from_micros(200)));
        let times = accounts.read().unwrap();
        assert_complete(&times);
        let (entry, idle) = (times.of(AccountKind::IdleEntry), times.of(AccountKind::Idle));
        if entry.count > 0 && idle.count > 0 {
            assert!(entry.nanos.0 > 0 && idle.nanos.0 > 0, "{times:?}");
            return;
        }
    }
    note_skipped(TEST, "other programs left no CPU idle");
}

#[test]
fn a_child_that_ended_is_known_with_its_parents() {
    const TEST: &str = "accounts: a child that ended";
    let Some(mut accounts) = attached(TEST) else { return };
    if !accounts.knows_parents() {
        return note_skipped(TEST, "where a task has its numbers is unknown here (lockdown)");
    }
    let script = "(i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done); exit 0";
    let status = Command::new("/bin/sh").args(["-c", script]).status().unwrap();
    assert!(status.success());
    let times = accounts.read().unwrap();
    let task = |process| times.tasks.iter().find(|task| task.process == process);
    let parent = |child: &TaskUse| times.parents.get(&child.process).and_then(|parent| task(*parent));
    let us = accounts.own_process();
    let is_ours = |child: &&TaskUse| parent(child).is_some_and(|task| times.parents.get(&task.process) == Some(&us));
    let child = times.tasks.iter().filter(|task| task.name == "sh").find(is_ours).unwrap();
    assert!(child.nanos > Nanos::from_millis(1), "{child:?}");
    assert_eq!(parent(child).map(|parent| parent.name.as_str()), Some("sh"));
    // It stays in the sums of later readings.
    let later = accounts.read().unwrap();
    assert!(later.tasks.iter().any(|task| task.process == child.process && task.nanos >= child.nanos));
}

#[test]
fn tasks_without_room_are_counted() {
    const TEST: &str = "accounts: tasks without room";
    let Some(mut accounts) = allowed(TEST, Accounts::open_with(1)) else { return };
    accounts.attach().unwrap();
    let busy = || (0..20).for_each(|_| std::thread::sleep(Duration::from_micros(100)));
    std::thread::scope(|scope| {
        (0..20).for_each(|_| drop(scope.spawn(busy)));
    });
    let times = accounts.read().unwrap();
    assert!(times.lost.count > 0 && times.lost.nanos.0 > 0, "{:?}", times.lost);
    assert_complete(&times);
}

fn entry(process: u64, first: u64, second: u64) -> (u64, [u64; TASK_WORDS]) {
    let name = u64::from_ne_bytes(*b"server\0\0");
    (process << 32 | process, [first, second, name, 0])
}

#[test]
fn time_after_a_boundary_belongs_to_the_next_reading() {
    let mut totals = Totals::default();
    totals.add_tasks(0, &[entry(7, 100, 5)]);
    assert_eq!(totals.tasks[&(7, 7)].nanos, 100);
    totals.add_tasks(1, &[entry(7, 3, 20)]);
    assert_eq!(totals.tasks[&(7, 7)].nanos, 125);
    // Its last 3 ns were after the second boundary; it did not run since.
    totals.add_tasks(0, &[]);
    assert_eq!(totals.tasks[&(7, 7)].nanos, 128);
    assert_eq!(totals.tasks[&(7, 7)].name, "server");
}

#[test]
fn a_task_has_what_the_tables_of_all_cpus_have() {
    let mut totals = Totals::default();
    totals.add_tasks(0, &[entry(7, 100, 5)]);
    totals.add_places(&[(7 << 32 | 7, 30), (7 << 32 | 7, 4)]);
    totals.add_tasks(1, &[]);
    assert_eq!((totals.tasks[&(7, 7)].nanos, totals.tasks[&(7, 7)].name.as_str()), (139, "server"));
}

#[test]
fn an_account_is_the_sum_of_both_banks_at_their_closing() {
    let mut totals = Totals::default();
    let sum = |nanos| Sum { nanos, count: 1 };
    totals.close(0, vec![sum(10)]);
    assert_eq!(totals.account(0), sum(10));
    totals.close(1, vec![sum(5)]);
    assert_eq!(totals.account(0).nanos, 15);
    totals.close(0, vec![sum(30)]);
    assert_eq!(totals.account(0).nanos, 35);
    assert_eq!(totals.account(1), Sum::default());
}

#[test]
fn parents_stay_known() {
    let mut totals = Totals::default();
    totals.add_parents(&[(8, [7])]);
    totals.add_parents(&[(9, [8])]);
    assert_eq!((totals.parents.get(&8), totals.parents.get(&9)), (Some(&7), Some(&8)));
}
