//! Events per I/O equal what is known of a load, what a count costs, and what perf's counters of tracepoints miss.

use crate::bench::evidence::{self, Evidence};
use crate::bench::iotoll::{self, Measuring};
use crate::bench::{Bench, fio, rounds};
use anyhow::{Context, ensure};
use model::finding::{PhaseFinding, ProbeFinding};
use model::record::{Mode, Record};
use std::collections::BTreeMap;
use std::path::Path;

/// As a user runs it.
const MEASURING: Measuring = Measuring { meters: "default", background_millis: 1000, out: None };
/// Furthest that a count may be from its truth.
const MOST: f64 = 0.002;
/// Idle entries of all CPUs are read some microseconds before or after their passes.
const MOST_OF_IDLE: f64 = 0.01;

/// A load whose count per I/O is known.
#[derive(Clone, Copy)]
struct Truth {
    load: &'static str,
    event: &'static str,
    per_io: f64,
    measure: fn(&Bench, &Path, &str) -> anyhow::Result<PhaseFinding>,
}

const TRUTHS: [Truth; 4] = [
    Truth {
        load: "psync, cached 4k",
        event: "syscalls:pread64",
        per_io: 1.0,
        measure: |bench, file, event| run(bench, file, "psync", &[], event),
    },
    Truth {
        load: "io_uring, cached 4k, depth 16, batches of 16",
        event: "syscalls:io_uring_enter",
        per_io: 1.0 / 16.0,
        measure: |bench, file, event| {
            let batches = ["--iodepth=16", "--iodepth_batch=16", "--iodepth_batch_complete_min=16"];
            run(bench, file, "io_uring", &batches, event)
        },
    },
    Truth {
        load: "UDP over loopback, of all packets of lo",
        // Each packet is sent and received: two of the interface's.
        event: "net:net_dev_xmit",
        per_io: 0.5,
        measure: |bench, _, event| packets(bench, event),
    },
    Truth {
        load: "UDP over loopback, of all packets of lo",
        event: "net:netif_receive_skb",
        per_io: 0.5,
        measure: |bench, _, event| packets(bench, event),
    },
];

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let file = bench.file("cached", 64)?;
    let mut evidence = Evidence::default();
    truths(bench, &file, &mut evidence)?;
    own_cost(bench, &file, &mut evidence)?;
    idle_tasks(bench, &mut evidence)?;
    Ok(evidence)
}

fn truths(bench: &mut Bench, file: &Path, evidence: &mut Evidence) -> anyhow::Result<()> {
    let named = |truth: &Truth| format!("{}: {}", truth.load, truth.event);
    let found = bench.in_rounds(
        &TRUTHS,
        |_| 0,
        named,
        |bench, truth| {
            let phase = (truth.measure)(bench, file, truth.event)?;
            let reason = phase.events_reason.clone().unwrap_or_default();
            phase.events_per_io.get(truth.event).copied().with_context(|| format!("no {}: {reason}", truth.event))
        },
    )?;
    let mut rows = Vec::new();
    let (mut near, mut contained, mut all) = (0, 0, 0);
    for (truth, estimates) in TRUTHS.iter().zip(&found) {
        let off = |value: f64| value / truth.per_io - 1.0;
        all += estimates.len();
        near += estimates.iter().filter(|it| off(it.value).abs() <= MOST).count();
        contained += estimates.iter().filter(|it| it.contains(truth.per_io) == Some(true)).count();
        let values: Vec<f64> = estimates.iter().map(|it| it.value).collect();
        let worst = values.iter().map(|value| off(*value).abs()).reduce(f64::max);
        rows.push(vec![
            truth.load.to_owned(),
            truth.event.to_owned(),
            format!("{}", truth.per_io),
            format!("{:.5}", rounds::mean(&values).value),
            evidence::number(worst.map(|worst| worst * 100.0), 3),
        ]);
    }
    evidence.table(&["load", "event", "truth per I/O", "counted", "worst of a run, %"], &rows);
    evidence.criterion(near == all, format!("within {} % of the truth: {near} of {all} runs", MOST * 100.0));
    evidence.note(format!("The intervals of {contained} of {all} runs contain the truth."));
    Ok(())
}

/// What a count adds to an I/O: its time in the windows in which events are counted, beside that in the undisturbed ones.
fn own_cost(bench: &mut Bench, file: &Path, evidence: &mut Evidence) -> anyhow::Result<()> {
    let loads = [
        ("a system call (psync, cached 4k)", "psync", "syscalls"),
        ("a tracepoint (libaio, cached 4k: slab caches)", "libaio", "kmem:kmem_cache_alloc,kmem:kmem_cache_free"),
        ("the default set (psync, cached 4k)", "psync", "default"),
    ];
    let found = bench.in_rounds(
        &loads,
        |_| 0,
        |(name, ..)| format!("own cost of {name}"),
        |bench, (_, engine, events)| {
            let out = bench.path("kept");
            let measuring = Measuring { out: Some(out.clone()), ..MEASURING };
            let options = [&of_file(file)[..], &["--events".to_owned(), (*events).to_owned()]].concat();
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            iotoll::run(bench, &measuring, &fio::job(engine, bench.options.seconds, &options))?;
            let text = std::fs::read_to_string(out.join("record.jsonl"));
            std::fs::remove_dir_all(&out)?;
            cost_of_a_count(&text?)
        },
    )?;
    let mut rows = Vec::new();
    for ((name, ..), costs) in loads.iter().zip(&found) {
        let mean = |of: fn(&OwnCost) -> f64| rounds::mean(&costs.iter().map(of).collect::<Vec<f64>>());
        rows.push(vec![
            (*name).to_owned(),
            evidence::interval(&mean(|cost| cost.counts_per_io), 2),
            evidence::interval(&mean(|cost| cost.nanos_per_count), 1),
            evidence::interval(&mean(|cost| cost.slower * 100.0), 1),
            evidence::interval(&mean(|cost| cost.of_the_run * 100.0), 2),
        ]);
    }
    evidence.table(
        &[
            "what is counted",
            "counts per I/O",
            "ns per count",
            "an I/O is slower in its windows, %",
            "in the whole run, %",
        ],
        &rows,
    );
    Ok(())
}

/// What counting adds.
struct OwnCost {
    counts_per_io: f64,
    nanos_per_count: f64,
    slower: f64,
    of_the_run: f64,
}

fn cost_of_a_count(record: &str) -> anyhow::Result<OwnCost> {
    let mut last: serde_json::Value = serde_json::from_str(record.lines().last().context("an empty record")?)?;
    let record: Record = serde_json::from_value(last.get_mut("measured").context("an unfinished record")?.take())?;
    let execution = record.phases.first().and_then(|phase| phase.executions.first()).context("no execution")?;
    let snapshots = &execution.stretch.snapshots;
    let (mut quiet, mut counted, mut counts) = ((0.0, 0.0), (0.0, 0.0), 0.0);
    let mut all = 0.0;
    for (before, after) in snapshots.iter().zip(snapshots.iter().skip(1)) {
        let nanos = after.at_nanos.since(before.at_nanos).as_f64();
        all += nanos;
        if let (Mode::Quiet, Some(first), Some(last)) = (before.mode, before.done, after.done) {
            quiet = (quiet.0 + nanos, quiet.1 + last.ios.saturating_sub(first.ios) as f64);
        }
        for events in &after.events {
            let done = events.done.map_or(0.0, |done| done.ios as f64);
            counted = (counted.0 + events.end_nanos.since(events.begin_nanos).as_f64(), counted.1 + done);
            counts += events.counts.values().map(|count| *count as f64).sum::<f64>();
        }
    }
    ensure!(quiet.1 > 0.0 && counted.1 > 0.0 && counts > 0.0, "nothing was counted");
    let (without, with, counts_per_io) = (quiet.0 / quiet.1, counted.0 / counted.1, counts / counted.1);
    let slower = with / without - 1.0;
    Ok(OwnCost {
        counts_per_io,
        nanos_per_count: (with - without) / counts_per_io,
        slower,
        of_the_run: slower * counted.0 / all,
    })
}

/// Beside a load that sleeps: idle states by the kernel's own counters, passes of their tracepoint by a probe, and by perf on each CPU.
fn idle_tasks(bench: &mut Bench, evidence: &mut Evidence) -> anyhow::Result<()> {
    let usages = usages()?;
    if usages.is_empty() {
        evidence.note("The kernel has no cpuidle: what idle tasks do has no truth here.");
        return Ok(());
    }
    bench.progress("idle tasks");
    let probe = |(place, (_, path)): (usize, &(u32, String))| format!("--probe=u{place}=counter:file:{path}:([0-9]+)");
    let mut options: Vec<String> = usages.iter().enumerate().map(probe).collect();
    options.extend(["--probe=passes=tracepoint.power.cpu_idle".to_owned(), "--rate_iops=2000".to_owned()]);
    let file = bench.file("seldom", 1)?;
    options.extend(of_file(&file));
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let job = fio::job("psync", bench.options.seconds, &options);
    let before = read(&usages)?;
    let seen = perf_beside(bench, &job)?;
    let truth = idle_by_cpu(&before, &read(&usages)?);
    let phase = iotoll::phase(&seen.finding)?;
    let per_second = |name: &str| -> anyhow::Result<f64> {
        let found = phase.probes.iter().find(|probe: &&ProbeFinding| probe.name == name);
        found.and_then(|probe| probe.per_second).with_context(|| format!("probe {name} has no rate"))
    };
    let passes = per_second("passes")?;
    let idle: f64 = (0..usages.len()).map(|place| per_second(&format!("u{place}"))).sum::<anyhow::Result<f64>>()?;
    let mut rows = Vec::new();
    for (cpu, entries) in &truth {
        let by_perf = seen.perf.as_ref().map(|perf| perf.get(cpu).copied().unwrap_or(0.0));
        let lost = by_perf.map(|by_perf| (1.0 - by_perf / (2.0 * *entries as f64)) * 100.0);
        rows.push(vec![
            format!("CPU {cpu}"),
            (2 * entries).to_string(),
            evidence::number(by_perf, 0),
            evidence::number(lost, 1),
        ]);
    }
    evidence.note("Passes of power:cpu_idle beside a load that sleeps: one at each end of an idle state.");
    evidence.table(&["", "by the kernel's own counters", "by perf stat", "perf misses, %"], &rows);
    let off = passes / (2.0 * idle) - 1.0;
    evidence.criterion(
        off.abs() <= MOST_OF_IDLE,
        format!(
            "the probe tracepoint.power.cpu_idle is within 1 % of the kernel's own counters: {:+.2} %",
            off * 100.0
        ),
    );
    Ok(())
}

/// A run, and what perf counted beside it, if it is installed.
struct Seen {
    finding: model::finding::RunFinding,
    perf: Option<BTreeMap<u32, f64>>,
}

fn perf_beside(bench: &Bench, job: &[String]) -> anyhow::Result<Seen> {
    let counts = bench.path("perf-counts");
    let mut iotoll = bench.iotoll();
    iotoll.arg("run").args(MEASURING.flags()).args(job);
    let mut perf = bench.command("perf");
    perf.args(["stat", "-a", "-A", "-x,", "-e", "power:cpu_idle", "-o"]).arg(&counts).arg("--");
    perf.arg(iotoll.get_program()).args(iotoll.get_args());
    let Ok(text) = bench.output(&mut perf) else {
        bench.check()?;
        return Ok(Seen { finding: serde_json::from_str(&bench.output(&mut iotoll)?)?, perf: None });
    };
    let counted = std::fs::read_to_string(&counts)?;
    let line = |line: &str| {
        let mut fields = line.split(',');
        Some((fields.next()?.strip_prefix("CPU")?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    Ok(Seen { finding: serde_json::from_str(&text)?, perf: Some(counted.lines().filter_map(line).collect()) })
}

/// The counters of idle states, each with its CPU.
fn usages() -> anyhow::Result<Vec<(u32, String)>> {
    let mut usages = Vec::new();
    for cpu in sys::schedule::online_cpus()? {
        let states = std::fs::read_dir(format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle"));
        let paths = states.into_iter().flatten().flatten().map(|state| state.path().join("usage"));
        usages.extend(paths.map(|path| (cpu, path.display().to_string())));
    }
    usages.sort_unstable();
    Ok(usages)
}

fn read(usages: &[(u32, String)]) -> anyhow::Result<Vec<(u32, u64)>> {
    let of = |(cpu, path): &(u32, String)| Ok((*cpu, std::fs::read_to_string(path)?.trim().parse()?));
    usages.iter().map(of).collect()
}

fn idle_by_cpu(before: &[(u32, u64)], after: &[(u32, u64)]) -> BTreeMap<u32, u64> {
    let mut sums = BTreeMap::new();
    for ((cpu, before), (_, after)) in before.iter().zip(after) {
        *sums.entry(*cpu).or_default() += after.saturating_sub(*before);
    }
    sums
}

fn of_file(file: &Path) -> Vec<String> {
    vec!["--bs=4k".to_owned(), "--invalidate=0".to_owned(), format!("--filename={}", file.display())]
}

fn run(bench: &Bench, file: &Path, engine: &str, more: &[&str], event: &str) -> anyhow::Result<PhaseFinding> {
    let options = [&of_file(file)[..], &["--events".to_owned(), event.to_owned()]].concat();
    let options: Vec<&str> = options.iter().map(String::as_str).chain(more.iter().copied()).collect();
    let finding = iotoll::run(bench, &MEASURING, &fio::job(engine, bench.options.seconds, &options))?;
    Ok(iotoll::phase(&finding)?.clone())
}

fn packets(bench: &Bench, event: &str) -> anyhow::Result<PhaseFinding> {
    // Some 300,000 in a second.
    let datagrams = format!("{:.0}", bench.options.seconds * 3e5);
    let command = bench.load(&["udp-loopback", &datagrams]);
    let flags = ["--events", event, "--count", "net:lo"].map(str::to_owned);
    Ok(iotoll::phase(&iotoll::cost(bench, &MEASURING, &flags, &command)?)?.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_states_are_summed_by_cpu() {
        let found = idle_by_cpu(&[(0, 5), (0, 7), (1, 1)], &[(0, 6), (0, 17), (1, 1)]);
        assert_eq!(found, [(0, 11), (1, 0)].into());
    }
}
