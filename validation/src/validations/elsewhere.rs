//! Loads for which other tasks do work: their own threads show less than the machine's cost. The sheet reports the
//! difference and where it was spent.

use crate::bench::Bench;
use crate::bench::evidence::{self, Evidence};
use crate::bench::fio;
use crate::bench::iotoll::{self, Measuring};
use crate::bench::rounds;
use model::finding::PhaseFinding;

/// Two meters, because the two idle clocks define idle differently. The background is an eighth of the sleeper's cost,
/// and the difference in question a fifteenth, so it is measured for long.
const MEASURING: Measuring = Measuring { meters: "idle,thread", background_millis: 3000, out: None };
/// Number of accounts shown.
const ACCOUNTS: usize = 3;
/// The sleeper takes 200 µs, 10,000 ticks, and its wake-up.
const SLEEPS_PER_SECOND: f64 = 3_800.0;
/// Approximate rate of one CPU of a virtual machine.
const DATAGRAMS_PER_SECOND: f64 = 200_000.0;

/// One load and its name.
struct Load {
    name: &'static str,
    ios: Option<String>,
    command: Vec<String>,
}

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let seconds = bench.options.seconds;
    let file = bench.file("elsewhere", 64)?;
    let file = format!("--filename={}", file.display());
    let options = ["--bs=4k", "--size=64m", "--iodepth=4", "--force_async=1", "--invalidate=0", &file];
    let worker = [vec!["fio".to_owned()], fio::job("io_uring", seconds, &options)].concat();
    let count = |per_second: f64| format!("{:.0}", (per_second * seconds).max(1.0));
    let (sleeps, datagrams) = (count(SLEEPS_PER_SECOND), count(DATAGRAMS_PER_SECOND));
    let load = |name, ios: Option<&String>, command| Load { name, ios: ios.cloned(), command };
    let loads = [
        load("sleeps 200 µs per I/O", Some(&sleeps), bench.load(&["sleeper", &sleeps])),
        load("fio, io_uring with kernel workers (force_async)", None, worker),
        load("UDP to loopback, a sender and a receiver", Some(&datagrams), bench.load(&["udp-loopback", &datagrams])),
    ];
    let found = bench.in_rounds(
        &loads,
        |_| 0,
        |load| load.name.to_owned(),
        |bench, load| {
            let flags: Vec<String> = load.ios.iter().map(|ios| format!("--ios={ios}")).collect();
            Ok(iotoll::phase(&iotoll::cost(bench, &MEASURING, &flags, &load.command)?)?.clone())
        },
    )?;
    let mut evidence = Evidence::default();
    let mut rows = Vec::new();
    for (load, found) in loads.iter().zip(&found) {
        rows.push(row(load.name, found));
        let (met, text) = paid_more(found);
        evidence.criterion(met, format!("{}: {text}", load.name));
    }
    evidence.note(
        "Work done elsewhere, measured by `iotoll cost`: cycles per I/O of the whole machine and of the workload's own \
         threads. Means over measurements; `where` is from the last one.",
    );
    evidence
        .table(&["load", "machine (timer_list)", "machine (idle)", "own threads", "machine ÷ threads", "where"], &rows);
    Ok(evidence)
}

fn row(name: &str, found: &[PhaseFinding]) -> Vec<String> {
    let mean = |of: &dyn Fn(&PhaseFinding) -> Option<f64>| {
        let values: Option<Vec<f64>> = found.iter().map(of).collect();
        values.map(|values| rounds::mean(&values).value)
    };
    let by = |meter: &str| evidence::number(mean(&|phase| phase.by_meter.get(meter).copied().flatten()), 0);
    let threads = mean(&|phase| phase.thread_cycles_per_io);
    let ratio = mean(&|phase| phase.cycles_per_io).zip(threads).map(|(machine, threads)| machine / threads);
    let mut accounts: Vec<_> = found.last().map(|phase| phase.accounts.iter().collect()).unwrap_or_default();
    accounts.sort_by(|one, other| other.cycles_per_io.total_cmp(&one.cycles_per_io));
    let largest = accounts.iter().take(ACCOUNTS).map(|account| {
        // The text behind the colon explains the name and is too long for the table.
        let name = account.name.split(':').next().unwrap_or(&account.name);
        format!("{name} {:.0}", account.cycles_per_io)
    });
    vec![
        name.to_owned(),
        by("timer_list"),
        by("idle"),
        evidence::number(threads, 0),
        evidence::number(ratio, 2),
        largest.collect::<Vec<_>>().join("; "),
    ]
}

/// Whether the machine's cost exceeds that of the threads, and a sentence about it. Both vary together between
/// measurements, so the interval is that of their difference.
fn paid_more(found: &[PhaseFinding]) -> (bool, String) {
    let more = |phase: &PhaseFinding| Some(phase.cycles_per_io? - phase.thread_cycles_per_io?);
    let Some(more) = found.iter().map(more).collect::<Option<Vec<f64>>>() else {
        return (false, "the cost of the machine or of the threads is unknown".to_owned());
    };
    let more = rounds::mean(&more);
    // The clocks define idle differently, so report both.
    let by_idle =
        |phase: &PhaseFinding| Some(phase.by_meter.get("idle").copied().flatten()? - phase.thread_cycles_per_io?);
    let by_idle = found.iter().map(by_idle).collect::<Option<Vec<f64>>>();
    let by_idle = by_idle.map_or("unknown".to_owned(), |more| evidence::interval(&rounds::mean(&more), 0));
    let text = format!(
        "the machine's cost exceeds that of its own threads by {} cycles per I/O; by cpuidle {by_idle}",
        evidence::interval(&more, 0)
    );
    (more.low.is_some_and(|low| low > 0.0), text)
}
