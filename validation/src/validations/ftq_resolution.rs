//! The resolution of a recording, and what it takes from the worker: late readings, the recorder's CPU time, and the worker's
//! throughput, by quantum and number of probes.
//!
//! Throughput is compared with the same worker beside a recorder that wakes once a second, in the same round.

use crate::bench::evidence::{self, Evidence};
use crate::bench::{Bench, recording, rounds};
use anyhow::Context;
use model::stats::Estimate;

/// Microseconds; the last is the baseline.
const QUANTA: [u64; 8] = [10, 20, 50, 100, 200, 440, 1000, 1_000_000];
/// Each needs a reading of its own but the first two, which are in one file.
const PROBES: &str = "dirty,writeback,worker.sleeps,worker.off_cpu_time,worker.run_delay,net.lo.tx_bytes";
/// The quantum that the criteria are about.
const QUANTUM: u64 = 440;
/// Most late readings and most lost throughput, as fractions.
const MOST_LATE: f64 = 0.01;
const MOST_LOST: f64 = 0.03;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worker {
    Writer,
    Cpu,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    worker: Worker,
    quantum: u64,
    probes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Recorded {
    late: f64,
    /// Part of the deadlines that have no reading of their own.
    missed: f64,
    recorder_cpus: f64,
    reading_nanos: f64,
    per_second: f64,
}

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    bench.file("written", 64)?;
    let mut cells = Vec::new();
    for (worker, probes) in [(Worker::Writer, 0), (Worker::Writer, 6), (Worker::Cpu, 0)] {
        cells.extend(QUANTA.map(|quantum| Cell { worker, quantum, probes }));
    }
    let named = |cell: &Cell| format!("{:?}, {} µs, {} probes", cell.worker, cell.quantum, cell.probes);
    let block = |cell: &Cell| cell.worker as usize * 10 + cell.probes;
    let found = bench.in_rounds(&cells, block, named, record)?;
    let mut evidence = Evidence::default();
    let mut rows = Vec::new();
    let mut shortest: Option<(u64, usize)> = None;
    for (cells, runs) in cells.chunks(QUANTA.len()).zip(found.chunks(QUANTA.len())) {
        let baseline = runs.last().context("no baseline was measured")?;
        for (cell, runs) in cells.iter().zip(runs).take(QUANTA.len() - 1) {
            let row = Row::of(runs, baseline);
            if cell.worker == Worker::Writer
                && row.late.max(row.missed) <= MOST_LATE
                && shortest.is_none_or(|(quantum, _)| cell.quantum < quantum)
            {
                shortest = Some((cell.quantum, cell.probes));
            }
            rows.push(row.cells(*cell));
        }
    }
    evidence.note("A buffered writer of 4 KiB, and FTQ itself (steps of computing). Throughput is compared with a recorder that wakes once a second.");
    evidence.table(
        &["worker", "probes", "quantum, µs", "late", "missed", "a reading, µs", "recorder, % of a CPU", "throughput"],
        &rows,
    );
    judge(bench, &mut evidence)?;
    if let Some((quantum, probes)) = shortest {
        evidence.note(format!(
            "Shortest quantum with at most {:.0} % late readings and missed deadlines: {quantum} µs, with {probes} probes.",
            MOST_LATE * 100.0
        ));
    }
    Ok(evidence)
}

/// The two criteria, from many pairs of neighbouring recordings: the writer's own rate drifts by more than they allow.
fn judge(bench: &mut Bench, evidence: &mut Evidence) -> anyhow::Result<()> {
    /// Pairs for each round of the table.
    const PAIRS: usize = 8;
    let cell = |quantum, probes| Cell { worker: Worker::Writer, quantum, probes };
    let [.., idle] = QUANTA;
    let cells = [cell(QUANTUM, 6), cell(idle, 0)];
    let pairs = PAIRS * bench.options.rounds;
    let named = |cell: &Cell| format!("pair of {} µs", cell.quantum);
    let found = bench.in_this_many_rounds(pairs, &cells, |_| 0, named, record)?;
    let [runs, baseline] = found.as_slice() else { anyhow::bail!("no pair was measured") };
    let row = Row::of(runs, baseline);
    evidence.criterion(row.late <= MOST_LATE, format!("{QUANTUM} µs with six probes: {:.2} % late", row.late * 100.0));
    evidence.criterion(
        1.0 - row.throughput.value <= MOST_LOST,
        format!(
            "{QUANTUM} µs with six probes, {pairs} pairs: the writer's throughput changes by {}",
            evidence::change(&row.throughput)
        ),
    );
    Ok(())
}

struct Row {
    late: f64,
    missed: f64,
    reading_nanos: f64,
    recorder_cpus: f64,
    throughput: Estimate,
}

impl Row {
    fn of(runs: &[Recorded], baseline: &[Recorded]) -> Self {
        let of = |value: fn(&Recorded) -> f64| runs.iter().map(value).collect::<Vec<f64>>();
        let rates = |runs: &[Recorded]| runs.iter().map(|run| run.per_second).collect::<Vec<f64>>();
        Self {
            late: rounds::mean(&of(|run| run.late)).value,
            missed: rounds::mean(&of(|run| run.missed)).value,
            reading_nanos: rounds::mean(&of(|run| run.reading_nanos)).value,
            recorder_cpus: rounds::mean(&of(|run| run.recorder_cpus)).value,
            throughput: rounds::ratio(&rates(runs), &rates(baseline)),
        }
    }

    fn cells(&self, cell: Cell) -> Vec<String> {
        vec![
            if cell.worker == Worker::Writer { "writer".to_owned() } else { "FTQ".to_owned() },
            cell.probes.to_string(),
            cell.quantum.to_string(),
            format!("{:.2} %", self.late * 100.0),
            format!("{:.2} %", self.missed * 100.0),
            format!("{:.1}", self.reading_nanos / 1e3),
            format!("{:.1}", self.recorder_cpus * 100.0),
            evidence::change(&self.throughput),
        ]
    }
}

fn record(bench: &Bench, cell: &Cell) -> anyhow::Result<Recorded> {
    let mut options = vec![
        format!("--quantum={}us", cell.quantum),
        format!("--duration={}ms", (bench.options.seconds * 1e3).round().max(2000.0)),
        "--probe=none".to_owned(),
    ];
    if cell.probes > 0 {
        options.push(format!("--probe={PROBES}"));
    }
    match cell.worker {
        Worker::Cpu => options.push("--cpu".to_owned()),
        Worker::Writer => options.extend(["--target=written", "--rw=write", "--size=64m"].map(str::to_owned)),
    }
    let finding = recording::record(bench, &options)?;
    anyhow::ensure!(finding.readings > 1 && finding.seconds > 0.0, "nothing was recorded");
    Ok(Recorded {
        late: finding.late as f64 / finding.readings as f64,
        missed: 1.0 - (finding.readings - 1) as f64 / finding.quanta.max(1) as f64,
        recorder_cpus: finding.recorder.cpu_nanos.seconds() / finding.seconds,
        reading_nanos: finding.recorder.reading_nanos.as_f64() / finding.readings as f64,
        per_second: finding.amount_per_second,
    })
}
