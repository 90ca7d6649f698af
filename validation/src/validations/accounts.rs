//! Loads whose CPU time other clocks of the kernel know are charged to their accounts and to no other, all accounts sum to the time that
//! passed, and what keeping them costs.

mod charged;
mod own_cost;

use crate::bench::evidence::{self, Evidence};
use crate::bench::loop_disk::LoopDisk;
use crate::bench::{Bench, fio};
use crate::load::Truth;
use charged::{Charged, Place};

/// Furthest that an account may be from its truth, and largest part of the planted time that another one may grow by.
const MOST: f64 = 0.05;
/// Likewise where ticks sample the truth: three standard errors of some 1000 ticks.
const MOST_OF_SAMPLED: f64 = 0.1;
/// Furthest that the sum of all accounts may be from the time that passed.
const MOST_OF_ALL: f64 = 0.0005;
/// Furthest that a count of interrupts may be from the kernel's own.
const MOST_OF_COUNTS: f64 = 0.01;
/// Approximate rate of one CPU of a virtual machine.
const DATAGRAMS_PER_SECOND: f64 = 300_000.0;
/// Between two timers: so often that the ticks beside them are few.
const TIMER_MICROS: &str = "125";

/// A load, the account its time belongs to, and the clock of the kernel that knows it.
struct Planted {
    name: &'static str,
    words: Vec<String>,
    checks: Vec<Check>,
    /// Accounts in which it has a part that no clock knows.
    inherent: Vec<Place>,
}

/// A time that must be in an account.
#[derive(Clone)]
struct Check {
    name: &'static str,
    places: Vec<Place>,
    by: &'static str,
    truth: fn(&Truth) -> u64,
    /// Known by samples at ticks, so only the sum over all rounds is compared.
    sampled: bool,
}

const BY_SCHEDULER: &str = "CPU clock of the processes (scheduler)";

fn own(name: &'static str, places: &[Place]) -> Check {
    Check { name, places: places.to_vec(), by: BY_SCHEDULER, truth: |truth| truth.own_nanos, sampled: false }
}

fn planted(bench: &Bench, disk: &LoopDisk, file: &str) -> Vec<Planted> {
    let length = bench.options.seconds;
    let truth = bench.path("truth").display().to_string();
    let seconds = length.to_string();
    let load =
        |name: &str, amount: &str, more: &[String]| [bench.load(&[name, amount, &truth]).as_slice(), more].concat();
    let datagrams = format!("{:.0}", DATAGRAMS_PER_SECOND * length);
    let job = fio::job(
        "io_uring",
        length,
        &["--thread", "--bs=1m", "--size=64m", "--iodepth=4", "--force_async=1", "--invalidate=0", file],
    );
    let workers =
        |name, place, by| Check { name, places: vec![place], by, truth: |it| it.workers_nanos, sampled: false };
    vec![
        Planted {
            name: "computing",
            words: load("known-spin", &seconds, &[]),
            checks: vec![own("own threads", &[Place::Own])],
            inherent: Vec::new(),
        },
        Planted {
            name: "system calls (getppid)",
            words: load("known-system-calls", &seconds, &[]),
            checks: vec![own("own threads", &[Place::Own])],
            inherent: Vec::new(),
        },
        Planted {
            name: "UDP over loopback",
            words: load("known-datagrams", &datagrams, &[]),
            checks: vec![
                own("own threads and softirq net_rx", &[Place::Own, Place::Softirq("net_rx")]),
                Check {
                    name: "softirq net_rx",
                    places: vec![Place::Softirq("net_rx")],
                    by: "ticks in softirqs (/proc/stat)",
                    truth: |truth| truth.softirq_nanos,
                    sampled: true,
                },
            ],
            inherent: vec![Place::Own, Place::IdleEntry, Place::Interrupt("call_function_single")],
        },
        Planted {
            name: "a timer each 125 µs",
            words: load("known-timers", &seconds, &[TIMER_MICROS.to_owned()]),
            checks: vec![Check {
                name: "interrupt local_timer, idle entry, own threads",
                places: vec![Place::Interrupt("local_timer"), Place::IdleEntry, Place::Own],
                by: "not idle, by the tickless clock (/proc/timer_list)",
                truth: |truth| truth.busy_nanos,
                sampled: false,
            }],
            inherent: Vec::new(),
        },
        Planted {
            name: "io_uring, force_async (fio)",
            words: load("known-ring-workers", &seconds, &[&["fio".to_owned()], job.as_slice()].concat()),
            checks: vec![
                own("own threads and io_uring's workers", &[Place::Own, Place::RingWorkers]),
                workers(
                    "io_uring's workers",
                    Place::RingWorkers,
                    "CPU time of the ended process (wait4) less schedstat of its other threads",
                ),
            ],
            inherent: vec![Place::Own, Place::IdleEntry, Place::Interrupt("call_function_single")],
        },
        Planted {
            name: "a loop device",
            words: load("known-kernel-workers", &seconds, &[disk.path().to_owned()]),
            checks: vec![workers("workers of the kernel", Place::KernelWorkers, "schedstat of kworker threads")],
            inherent: vec![
                Place::Own,
                Place::Softirq("block"),
                Place::IdleEntry,
                Place::Interrupt("call_function_single"),
            ],
        },
    ]
}

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let file = bench.file("backing", 64)?;
    let disk = LoopDisk::attach(&file)?;
    let loads = planted(bench, &disk, &format!("--filename={}", file.display()));
    let found = bench.in_rounds(
        &loads,
        |_| 0,
        |load| load.name.to_owned(),
        |bench, load| Ok((charged::measure(bench, &load.words)?, Truth::read(&bench.path("truth"))?)),
    )?;
    let mut evidence = Evidence::default();
    evidence.note(
        "CPU time of loads, by `iotoll cost --meters accounts` and by clocks of the kernel that have no part in it. All rounds together; the \
         accounts are net of the machine's rates without the load, except where the other clock counts the whole machine.",
    );
    let (mut rows, mut near, mut all) = (Vec::new(), 0, 0);
    for (load, runs) in loads.iter().zip(&found) {
        for check in &load.checks {
            let judged = judge(check, runs);
            all += judged.all;
            near += judged.near;
            rows.push(vec![
                load.name.to_owned(),
                check.name.to_owned(),
                check.by.to_owned(),
                format!("{:.1}", judged.planted / 1e6),
                format!("{:.1}", judged.found / 1e6),
                format!("{:+.2}", judged.off * 100.0),
                evidence::number(judged.worst.map(|worst| worst * 100.0), 2),
            ]);
        }
    }
    evidence.table(&["load", "account", "known by", "planted, ms", "found, ms", "off, %", "worst run, %"], &rows);
    evidence.criterion(
        near == all,
        format!("planted time is in its account within 5 %, by ticks within 10 %: {near} of {all}"),
    );
    elsewhere(&loads, &found, &mut evidence);
    counted(&loads, &found, &mut evidence);
    let sums: Vec<f64> = found.iter().flatten().map(|(charged, _)| charged.of_all() - 1.0).collect();
    let worst = sums.iter().map(|off| off.abs()).fold(0.0, f64::max);
    let held = sums.iter().filter(|off| off.abs() <= MOST_OF_ALL).count();
    let text = format!(
        "all accounts sum to wall time × CPUs within 0.05 %: {held} of {} runs, worst {:.4} %",
        sums.len(),
        worst * 100.0
    );
    evidence.criterion(held == sums.len(), text);
    let stolen = found.iter().flatten().map(|(charged, _)| charged.stolen()).fold(0.0, f64::max);
    evidence.note(format!(
        "A hypervisor took at most {:.2} % of the time of a run: the accounts charge it to what it stopped, the scheduler's clocks to nobody.",
        stolen * 100.0
    ));
    own_cost::measure(bench, &mut evidence)?;
    Ok(evidence)
}

type Run = (Charged, Truth);

struct Judged {
    planted: f64,
    found: f64,
    off: f64,
    worst: Option<f64>,
    near: usize,
    all: usize,
}

fn judge(check: &Check, runs: &[Run]) -> Judged {
    let whole_machine = check.by.contains("(/proc/");
    let found = |charged: &Charged| -> f64 {
        let of = |place: &Place| if whole_machine { charged.gross(*place) } else { charged.net(*place) };
        if check.places.contains(&Place::IdleEntry) { charged.busy() } else { check.places.iter().map(of).sum() }
    };
    let pairs: Vec<(f64, f64)> =
        runs.iter().map(|(charged, truth)| ((check.truth)(truth) as f64, found(charged))).collect();
    let (planted, all_found) = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    let off = all_found / planted - 1.0;
    let offs: Vec<f64> = pairs.iter().map(|(planted, found)| (found / planted - 1.0).abs()).collect();
    let (near, all) = if check.sampled {
        (usize::from(off.abs() <= MOST_OF_SAMPLED), 1)
    } else {
        (offs.iter().filter(|off| **off <= MOST).count(), offs.len())
    };
    Judged { planted, found: all_found, off, worst: offs.into_iter().reduce(f64::max), near, all }
}

/// No other account grows with a load.
fn elsewhere(loads: &[Planted], found: &[Vec<Run>], evidence: &mut Evidence) {
    let (mut rows, mut held) = (Vec::new(), 0);
    for (load, runs) in loads.iter().zip(found) {
        let Some(check) = load.checks.first() else { continue };
        let planted = judge(check, runs).planted;
        let mut expected = check.places.clone();
        expected.extend(&load.inherent);
        let sums = charged::net_of_all(runs.iter().map(|(charged, _)| charged));
        let part = |(_, nanos): &(Place, f64)| nanos / planted;
        let named = sums.iter().filter(|(place, _)| load.inherent.contains(place) && !check.places.contains(place));
        let named: Vec<String> = named.map(|it| format!("{} {:+.1} %", it.0.words(), part(it) * 100.0)).collect();
        let others = sums.iter().filter(|(place, _)| !expected.contains(place));
        let largest = others.max_by(|one, other| one.1.total_cmp(&other.1));
        held += usize::from(largest.is_none_or(|it| part(it) <= MOST));
        rows.push(vec![
            load.name.to_owned(),
            if named.is_empty() { "–".to_owned() } else { named.join(", ") },
            largest.map_or_else(|| "–".to_owned(), |it| it.0.words()),
            evidence::number(largest.map(|it| part(it) * 100.0), 2),
        ]);
    }
    evidence.note("Growth of other accounts of the load, in parts of the planted time.");
    evidence.table(&["load", "inherent", "largest other account", "%"], &rows);
    evidence.criterion(
        held == loads.len(),
        format!("no other account grows by more than 5 % of the planted time: {held} of {} loads", loads.len()),
    );
}

/// Interrupts of the timers are counted one by one.
fn counted(loads: &[Planted], found: &[Vec<Run>], evidence: &mut Evidence) {
    let runs = loads
        .iter()
        .zip(found)
        .filter(|(load, _)| load.checks.iter().any(|it| it.places.contains(&Place::Interrupt("local_timer"))));
    for (load, runs) in runs {
        let sum = |of: &dyn Fn(&Run) -> f64| runs.iter().map(of).sum::<f64>();
        let by_accounts = sum(&|(charged, _)| charged.count(Place::Interrupt("local_timer")));
        let by_kernel = sum(&|(_, truth)| truth.local_timers as f64);
        let expired = sum(&|(_, truth)| truth.expired as f64);
        let off = by_accounts / by_kernel - 1.0;
        evidence.criterion(
            off.abs() <= MOST_OF_COUNTS,
            format!(
                "{}: {expired:.0} expired; local timer interrupts by /proc/interrupts {by_kernel:.0}, by the accounts {by_accounts:.0}: \
                 {:+.2} % (within 1 %; the rest are ticks)",
                load.name,
                off * 100.0
            ),
        );
    }
}
