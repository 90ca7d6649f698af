//! Loads for which others work: their own threads show less than the machine paid, and the sheet says by how
//! much and where.

use crate::prove::bench::Bench;
use crate::prove::evidence::{self, Evidence};
use crate::prove::fio;
use crate::prove::iotoll::{self, Measuring};
use model::finding::PhaseFinding;

/// The headline is not enough: the two idle clocks are two definitions.
const MEASURING: Measuring = Measuring { meters: "idle,thread", background_millis: 3000, out: None };
/// Executions of each load at least: its interval is over executions, and that of a load which sleeps varies.
const LEAST_EXECUTIONS: usize = 10;
/// Accounts that are shown.
const ACCOUNTS: usize = 3;
/// The sleeper takes 200 µs, 10,000 ticks, and what waking it takes.
const SLEEPS_PER_SECOND: f64 = 3_800.0;
/// About what one CPU of a virtual machine does.
const DATAGRAMS_PER_SECOND: f64 = 200_000.0;

pub fn prove(bench: &Bench, evidence: &mut Evidence) -> anyhow::Result<()> {
    let seconds = bench.options.seconds;
    let file = bench.file("elsewhere", 64)?;
    let file = format!("--filename={}", file.display());
    let options = ["--bs=4k", "--size=64m", "--iodepth=4", "--force_async=1", "--invalidate=0", &file];
    let worker = [vec!["fio".to_owned()], fio::job("io_uring", seconds, &options)].concat();
    let count = |per_second: f64| format!("{:.0}", (per_second * seconds).max(1.0));
    let (sleeps, datagrams) = (count(SLEEPS_PER_SECOND), count(DATAGRAMS_PER_SECOND));
    let loads = [
        ("sleeps 200 µs an I/O", Some(&sleeps), bench.load(&["sleeper", &sleeps])),
        ("fio, io_uring with kernel workers (force_async)", None, worker),
        ("UDP to loopback, a sender and a receiver", Some(&datagrams), bench.load(&["udp-loopback", &datagrams])),
    ];
    let mut rows = Vec::new();
    for (name, ios, command) in loads {
        bench.progress(&format!("work done elsewhere: {name}"));
        let mut flags = vec![format!("--repeat={}", bench.options.rounds.max(LEAST_EXECUTIONS))];
        flags.extend(ios.map(|ios| format!("--ios={ios}")));
        let finding = iotoll::cost(bench, &MEASURING, &flags, &command)?;
        let phase = iotoll::phase(&finding)?;
        rows.push(row(name, phase));
        let (met, text) = paid_more(phase);
        evidence.criterion(met, format!("{name}: {text}"));
    }
    evidence.note(
        "Work done elsewhere, by `iotoll cost`: cycles per I/O of the whole machine, and what the workload's own \
         threads show.",
    );
    evidence
        .table(&["load", "machine (timer_list)", "machine (idle)", "own threads", "machine ÷ threads", "where"], &rows);
    Ok(())
}

fn row(name: &str, phase: &PhaseFinding) -> Vec<String> {
    let by = |meter: &str| evidence::number(phase.by_meter.get(meter).copied().flatten(), 0);
    let ratio = phase.cycles_per_io.zip(phase.thread_cycles_per_io).map(|(machine, threads)| machine / threads);
    let mut accounts: Vec<_> = phase.accounts.iter().collect();
    accounts.sort_by(|one, other| other.cycles_per_io.total_cmp(&one.cycles_per_io));
    let largest = accounts.iter().take(ACCOUNTS).map(|account| {
        // What follows the colon explains the name, in more words than a table has room for.
        let name = account.name.split(':').next().unwrap_or(&account.name);
        format!("{name} {:.0}", account.cycles_per_io)
    });
    vec![
        name.to_owned(),
        by("timer_list"),
        by("idle"),
        evidence::number(phase.thread_cycles_per_io, 0),
        evidence::number(ratio, 2),
        largest.collect::<Vec<_>>().join("; "),
    ]
}

/// Whether the machine paid more than the threads show, by more than the interval, in words.
fn paid_more(phase: &PhaseFinding) -> (bool, String) {
    let (Some(threads), Some(machine)) = (phase.thread_cycles_per_io, phase.cycles_per_io) else {
        return (false, "the machine's or the threads' figure is unknown".to_owned());
    };
    let (Some(low), Some(high)) = (phase.cycles_per_io_low, phase.cycles_per_io_high) else {
        return (false, "one execution has no interval; give --rounds".to_owned());
    };
    let text = format!("the machine paid {machine:.0} [{low:.0}, {high:.0}], its own threads show {threads:.0}");
    (threads < low, text)
}
