//! Planted loads land in their accounts, and nothing is missing from the sum.

use super::*;
use crate::skipping::note_skipped;
use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;
use sys::clock::{monotonic_nanos, own_thread_nanos};

/// Accounts, or the printed reason why this machine has none.
fn open(test: &str) -> Option<Accounts> {
    match Accounts::open_with(TASKS) {
        Ok(accounts) => Some(accounts),
        Err(error @ (Error::Refused { .. } | Error::NoBpf | Error::Unsupported { .. })) => {
            note_skipped(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn attached(test: &str) -> Option<Accounts> {
    let mut accounts = open(test)?;
    accounts.attach().unwrap();
    Some(accounts)
}

fn spin(duration: Duration) {
    let end = own_thread_nanos() + u64::try_from(duration.as_nanos()).unwrap();
    while own_thread_nanos() < end {
        std::hint::spin_loop();
    }
}

/// Within a thousandth.
fn assert_complete(times: &AccountTimes) {
    let tasks = times.tasks.iter().map(|task| task.nanos);
    let softirqs = times.softirqs.iter().map(|softirq| softirq.used.nanos);
    let interrupts = times.interrupts.iter().map(|interrupt| interrupt.used.nanos);
    let rest = [times.idle_entry.nanos, times.idle.nanos, times.lost.nanos];
    let sum: u64 = tasks.chain(softirqs).chain(interrupts).chain(rest).map(|nanos| nanos.0).sum();
    let passed = times.passed().0;
    assert!(sum.abs_diff(passed) <= passed / 1000, "{sum} of {passed} ns: {times:#?}");
}

#[test]
fn the_sum_of_all_accounts_is_the_time_that_passed() {
    let Some(mut accounts) = open("accounts: their sum") else { return };
    let before = monotonic_nanos();
    accounts.attach().unwrap();
    let began = monotonic_nanos();
    for part in [false, true, false] {
        if part {
            spin(Duration::from_millis(100))
        } else {
            std::thread::sleep(Duration::from_millis(100))
        }
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
        assert!(task.parent.is_some());
        assert!(times.tasks.iter().any(|task| task.kernel_thread), "{times:?}");
    }
    assert!(!task.kernel_thread);
    // The scheduler's clock has the interrupts too, but not what a hypervisor takes.
    assert!((nanos / 2..elapsed).contains(&task.nanos.0), "{task:?} of {nanos} ns, {elapsed} ns passed");
    let timer = times.interrupts.iter().find(|interrupt| interrupt.name == "local_timer");
    if cfg!(target_arch = "x86_64") {
        assert!(timer.is_some_and(|timer| timer.used.count > 0 && timer.used.nanos.0 > 0), "{:?}", times.interrupts);
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
    let softirq = times.softirqs.iter().find(|softirq| softirq.vector == "net_rx" && !softirq.from_idle).unwrap();
    assert!(softirq.used.count >= PACKETS / 10 && softirq.used.nanos.0 >= 100 * softirq.used.count, "{softirq:?}");
}

#[test]
fn sleeping_makes_cpus_idle() {
    const TEST: &str = "accounts: sleeping";
    let Some(mut accounts) = attached(TEST) else { return };
    for _ in 0..30 {
        (0..100).for_each(|_| std::thread::sleep(Duration::from_micros(200)));
        let times = accounts.read().unwrap();
        assert_complete(&times);
        if times.idle_entry.count > 0 && times.idle.count > 0 {
            assert!(times.idle_entry.nanos.0 > 0 && times.idle.nanos.0 > 0, "{times:?}");
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
    let parent = |child: &TaskUse| child.parent.and_then(task);
    let is_ours = |child: &&TaskUse| parent(child).is_some_and(|task| task.parent == Some(accounts.own_process()));
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
    if open(TEST).is_none() {
        return;
    }
    let mut accounts = Accounts::open_with(1).unwrap();
    accounts.attach().unwrap();
    let busy = || (0..20).for_each(|_| std::thread::sleep(Duration::from_micros(100)));
    std::thread::scope(|scope| {
        (0..20).for_each(|_| {
            scope.spawn(busy);
        });
    });
    let times = accounts.read().unwrap();
    assert!(times.lost.count > 0 && times.lost.nanos.0 > 0, "{:?}", times.lost);
    assert_complete(&times);
}

#[test]
fn nothing_stays_in_the_kernel() {
    let Some(mut accounts) = attached("accounts: nothing stays in the kernel") else { return };
    accounts.read().unwrap();
    let own: Vec<u32> = accounts.programs.all().map(|program| program.statistics().unwrap().id).collect();
    let left = || sys::bpf::loaded_programs().unwrap().into_iter().filter(|id| own.contains(id)).count();
    assert_eq!(left(), own.len());
    drop(accounts);
    // The kernel frees them a moment later.
    let gone = |_| {
        std::thread::sleep(Duration::from_millis(10));
        left() == 0
    };
    assert!((0..500).any(gone), "{} stay", left());
}
