//! What each meter does to the load that it measures: throughput and latency with it, against the same load
//! without.
//!
//! The idle clocks are read at window boundaries only, so a run with one is set against a run with none. The
//! soaker and the sampler have windows of their own, three quiet ones between, so that each run holds both
//! and is its own baseline.

mod windows;

use super::bench::{Bench, read_through};
use super::evidence::{self, Evidence, rate};
use super::iotoll::{self, Measuring};
use super::{fio, rounds};
use crate::load::{Trip, read_trips};
use anyhow::Context;
use model::record::Mode;
use std::path::Path;
use windows::Windows;

/// The first is the baseline: the thread clock is read in any case.
const METERS: [(&str, Mode); 6] = [
    ("thread", Mode::Quiet),
    ("idle", Mode::Quiet),
    ("timer_list", Mode::Quiet),
    ("proc_stat", Mode::Quiet),
    ("soaker", Mode::Soaker),
    ("sampler", Mode::Sampler),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Psync,
    IoUring,
    PingPong,
}

impl Load {
    const ALL: [Self; 3] = [Self::Psync, Self::IoUring, Self::PingPong];

    fn name(self) -> &'static str {
        match self {
            Self::Psync => "psync, cached 4k",
            Self::IoUring => "io_uring, direct 4k, depth 4",
            Self::PingPong => "TCP ping-pong on two CPUs",
        }
    }
}

/// One run with one meter.
#[derive(Clone, Copy, Debug, Default)]
struct Ran {
    /// Operations per second while the meter was on.
    on: f64,
    /// In the quiet windows of the same run.
    quiet: f64,
    p50_nanos: Option<f64>,
    p99_nanos: Option<f64>,
}

pub fn prove(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let (cached, direct) = (bench.file("cached", 64)?, bench.file("direct", 256)?);
    let mut cells = Vec::new();
    for load in Load::ALL {
        cells.extend(METERS.map(|(meter, mode)| (load, meter, mode)));
    }
    let named = |(load, meter, _): &(Load, &str, Mode)| format!("{}, {meter}", load.name());
    let found = bench.in_rounds(
        &cells,
        |(load, ..)| *load as usize,
        named,
        |bench, &(load, meter, mode)| {
            let out = bench.path("record");
            let measuring = Measuring { meters: meter, background_millis: 200, out: Some(out.clone()) };
            let ran = match load {
                Load::Psync => run(bench, &measuring, mode, &cached, load),
                Load::IoUring => run(bench, &measuring, mode, &direct, load),
                Load::PingPong => ping_pong(bench, &measuring, mode),
            };
            std::fs::remove_dir_all(&out).with_context(|| out.display().to_string())?;
            ran
        },
    )?;
    let mut evidence = Evidence::default();
    let mut rows = Vec::new();
    for (load, runs) in Load::ALL.iter().zip(found.chunks(METERS.len())) {
        let baseline = runs.first().context("no baseline was measured")?;
        for ((meter, mode), runs) in METERS.iter().zip(runs) {
            rows.push(row(*load, meter, *mode, baseline, runs));
        }
    }
    evidence.note(
        "Operations per second and latency with each meter, against none of the machine's meters. Soaker and sampler: \
         throughput in their own windows against the quiet windows of the same runs; latency in their own windows for \
         ping-pong, elsewhere of whole runs, of which about a quarter is theirs.",
    );
    evidence.table(&["load", "meter", "operations per second", "change", "p50, µs", "p99, µs"], &rows);
    Ok(evidence)
}

fn row(load: Load, meter: &str, mode: Mode, baseline: &[Ran], runs: &[Ran]) -> Vec<String> {
    let on: Vec<f64> = runs.iter().map(|run| run.on).collect();
    let against = match mode {
        Mode::Quiet => baseline.iter().map(|run| run.on).collect::<Vec<_>>(),
        _ => runs.iter().map(|run| run.quiet).collect(),
    };
    let is_baseline = meter == METERS[0].0;
    let change = if is_baseline { "–".to_owned() } else { evidence::change(&rounds::ratio(&on, &against)) };
    let latency = |of: fn(&Ran) -> Option<f64>| {
        let values: Option<Vec<f64>> = runs.iter().map(of).collect();
        evidence::number(values.map(|values| rounds::mean(&values).value / 1e3), 2)
    };
    vec![
        load.name().to_owned(),
        if is_baseline { "none".to_owned() } else { meter.to_owned() },
        rate(rounds::mean(&on).value),
        change,
        latency(|run| run.p50_nanos),
        latency(|run| run.p99_nanos),
    ]
}

fn run(bench: &Bench, measuring: &Measuring, mode: Mode, file: &Path, load: Load) -> anyhow::Result<Ran> {
    let path = format!("--filename={}", file.display());
    let mut options = vec!["--bs=4k", &path];
    let engine = match load {
        Load::IoUring => {
            options.extend(["--size=256m", "--direct=1", "--iodepth=4"]);
            "io_uring"
        }
        Load::Psync | Load::PingPong => {
            read_through(file)?;
            options.extend(["--size=64m", "--invalidate=0"]);
            "psync"
        }
    };
    let finding = iotoll::run(bench, measuring, &fio::job(engine, bench.options.seconds, &options))?;
    let latency = &iotoll::job(&finding)?.latency_ns;
    let windows = record_windows(measuring)?;
    let per_second = |mode| windows.ios_per_second(mode).with_context(|| format!("no {mode:?} window; more --seconds"));
    Ok(Ran { on: per_second(mode)?, quiet: per_second(Mode::Quiet)?, p50_nanos: latency.p50, p99_nanos: latency.p99 })
}

fn ping_pong(bench: &Bench, measuring: &Measuring, mode: Mode) -> anyhow::Result<Ran> {
    let path = bench.path("trips");
    let seconds = bench.options.seconds.to_string();
    let command = bench.load(&["ping-pong", &seconds, &path.display().to_string()]);
    iotoll::cost(bench, measuring, &[], &command)?;
    let trips = read_trips(&path)?;
    let windows = record_windows(measuring)?;
    let quiet = windows.trips(Mode::Quiet, &trips);
    let on = windows.trips(mode, &trips);
    let per_second = |trips: &(Vec<Trip>, f64)| {
        (trips.1 > 0.0).then(|| trips.0.len() as f64 / trips.1).context("no window of this meter; more --seconds")
    };
    let mut nanos: Vec<f64> = on.0.iter().map(|trip| trip.nanos as f64).collect();
    Ok(Ran {
        on: per_second(&on)?,
        quiet: per_second(&quiet)?,
        p50_nanos: rounds::percentile(&mut nanos, 50.0),
        p99_nanos: rounds::percentile(&mut nanos, 99.0),
    })
}

fn record_windows(measuring: &Measuring) -> anyhow::Result<Windows> {
    let record = iotoll::record(measuring.out.as_deref().context("the record was not kept")?)?;
    let execution = record.phases.first().and_then(|phase| phase.executions.first());
    let execution = execution.context("the record has no execution")?;
    Ok(Windows::new(&execution.stretch.snapshots))
}
