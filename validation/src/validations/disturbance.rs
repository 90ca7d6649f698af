//! The overhead of each meter: throughput and latency of a load with it, compared with the same load without.
//!
//! A run with one meter is compared with a run without meters in the same round. The soaker and the sampler, selected
//! alone, run all the time.

use crate::bench::evidence::{self, Evidence, rate};
use crate::bench::iotoll::{self, Measuring};
use crate::bench::{Bench, read_through};
use crate::bench::{fio, rounds};
use crate::load::read_trips;
use anyhow::Context;
use std::path::Path;

/// The first is the baseline: the thread clock is always read.
const METERS: [&str; 7] = ["thread", "idle", "timer_list", "proc_stat", "soaker", "sampler", "accounts"];

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
    per_second: f64,
    p50_nanos: Option<f64>,
    p99_nanos: Option<f64>,
}

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let (cached, direct) = (bench.file("cached", 64)?, bench.file("direct", 256)?);
    let mut cells = Vec::new();
    for load in Load::ALL {
        cells.extend(METERS.map(|meter| (load, meter)));
    }
    let named = |(load, meter): &(Load, &str)| format!("{}, {meter}", load.name());
    let found = bench.in_rounds(
        &cells,
        |(load, ..)| *load as usize,
        named,
        |bench, &(load, meter)| {
            let measuring = Measuring { meters: meter, background_millis: 200, out: None };
            match load {
                Load::Psync => run(bench, &measuring, &cached, load),
                Load::IoUring => run(bench, &measuring, &direct, load),
                Load::PingPong => ping_pong(bench, &measuring),
            }
        },
    )?;
    let mut evidence = Evidence::default();
    let mut rows = Vec::new();
    for (load, runs) in Load::ALL.iter().zip(found.chunks(METERS.len())) {
        let baseline = runs.first().context("no baseline was measured")?;
        for (meter, runs) in METERS.iter().zip(runs) {
            rows.push(row(*load, meter, baseline, runs));
        }
    }
    evidence.note(
        "Operations per second and latency with each meter running all the time, compared with no machine meter in \
         the same round.",
    );
    evidence.table(&["load", "meter", "operations per second", "change", "p50, µs", "p99, µs"], &rows);
    Ok(evidence)
}

fn row(load: Load, meter: &str, baseline: &[Ran], runs: &[Ran]) -> Vec<String> {
    let rates = |runs: &[Ran]| runs.iter().map(|run| run.per_second).collect::<Vec<f64>>();
    let (on, against) = (rates(runs), rates(baseline));
    let is_baseline = meter == METERS[0];
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

fn run(bench: &Bench, measuring: &Measuring, file: &Path, load: Load) -> anyhow::Result<Ran> {
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
    let job = iotoll::job(&finding)?;
    Ok(Ran { per_second: job.iops, p50_nanos: job.latency_ns.p50, p99_nanos: job.latency_ns.p99 })
}

fn ping_pong(bench: &Bench, measuring: &Measuring) -> anyhow::Result<Ran> {
    let path = bench.path("trips");
    let seconds = bench.options.seconds.to_string();
    let command = bench.load(&["ping-pong", &seconds, &path.display().to_string()]);
    iotoll::cost(bench, measuring, &[], &command)?;
    let trips = read_trips(&path)?;
    let mut nanos: Vec<f64> = trips.iter().map(|trip| trip.nanos as f64).collect();
    let total: f64 = nanos.iter().sum();
    anyhow::ensure!(total > 0.0, "no round trip was made");
    Ok(Ran {
        per_second: nanos.len() as f64 * 1e9 / total,
        p50_nanos: rounds::percentile(&mut nanos, 50.0),
        p99_nanos: rounds::percentile(&mut nanos, 99.0),
    })
}
