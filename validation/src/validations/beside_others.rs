//! Beside other programs, the cost is that of the load: of one whose cost does not depend on caches, and of cached reads by iotoll and by fio,
//! beside processes that start and end as those of a build do.
//!
//! A cached read costs more beside others, because they use the same caches. By how much, the clocks of its own threads say, which iotoll's
//! cost of the machine does not use: the cost has to follow them.

use crate::bench::evidence::{self, Evidence};
use crate::bench::iotoll::{self, Measuring};
use crate::bench::{Bench, Beside, fio, read_through, rounds};
use anyhow::Context;
use std::path::Path;

/// As a user runs it: accounts run by default.
const MEASURING: Measuring = Measuring { meters: "default", background_millis: 1000, out: None };
/// What runs beside it: threads, and the milliseconds that each computes and pauses.
const OTHERS: [(&str, Option<[&str; 3]>); 4] = [
    ("nothing", None),
    ("a third of the machine, processes of 60 ms", Some(["1", "60", "30"])),
    ("one CPU, processes of 20 ms", Some(["1", "20", "0"])),
    ("all CPUs, bursts of 300 ms", Some(["2", "300", "300"])),
];
const MEBIBYTES: usize = 64;
/// Furthest that the cost may be from that of the same round without others.
const MOST: f64 = 0.05;
/// Widest half of an interval.
const WIDEST: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// Engine work, 10,000 steps per I/O.
    Work,
    /// Cached reads of 4 KiB by engine psync.
    CachedRead,
    /// The same by fio, under `iotoll cost`.
    Fio,
}

const LOADS: [Load; 3] = [Load::Work, Load::CachedRead, Load::Fio];

impl Load {
    fn name(self) -> &'static str {
        match self {
            Self::Work => "engine work",
            Self::CachedRead => "cached read",
            Self::Fio => "fio, cached read",
        }
    }
}

/// One run.
struct Found {
    /// Net cycles per I/O of the machine, and the half of its interval as a part of it.
    cost: f64,
    half: Option<f64>,
    by_level: Option<f64>,
    /// The load's own threads, by their clocks.
    threads: f64,
    /// What others used of the machine.
    others: Option<f64>,
    by_name: bool,
}

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let file = bench.file("cached", MEBIBYTES)?;
    let cells: Vec<(Load, usize)> =
        LOADS.iter().flat_map(|load| (0..OTHERS.len()).map(move |beside| (*load, beside))).collect();
    let found = bench.in_rounds(
        &cells,
        // The runs of one load stay together, so that the machine has little time to change in between.
        |(load, _)| LOADS.iter().position(|other| other == load).unwrap_or(0),
        |(load, beside)| format!("{}, {}", load.name(), OTHERS.get(*beside).map_or("", |(name, _)| name)),
        |bench, (load, beside)| {
            read_through(&file)?;
            let others = OTHERS.get(*beside).and_then(|(_, others)| *others);
            let start = |words: [&str; 3]| bench.beside(&[["short-processes"].as_slice(), &words].concat());
            let _others: Option<Beside> = others.map(start).transpose()?;
            measure(bench, *load, &file)
        },
    )?;
    let mut evidence = Evidence::default();
    evidence.note(
        "Means over rounds. 'From quiet': the worst difference from the cost of the same round without others; 'from threads': the worst \
         difference between that change and the change of the load's own threads by their clocks. All in percent.",
    );
    let mut rows = Vec::new();
    for load in LOADS {
        let of = |wanted: usize| {
            let place = cells.iter().position(|cell| *cell == (load, wanted));
            place.and_then(|place| found.get(place)).context("a cell was not measured")
        };
        let quiet = of(0)?;
        let (mut near, mut following, mut narrow, mut all) = (0, 0, 0, 0);
        for (beside, (name, others)) in OTHERS.iter().enumerate() {
            let runs = of(beside)?;
            let changes = |of: fn(&Found) -> f64| -> Vec<f64> {
                runs.iter().zip(quiet).map(|(run, quiet)| of(run) / of(quiet) - 1.0).collect()
            };
            let (cost, threads) = (changes(|run| run.cost), changes(|run| run.threads));
            let apart: Vec<f64> =
                cost.iter().zip(&threads).map(|(cost, threads)| (1.0 + cost) / (1.0 + threads) - 1.0).collect();
            let halves: Vec<f64> = runs.iter().filter_map(|run| run.half).collect();
            if others.is_some() {
                let within = |values: &[f64], most: f64| values.iter().filter(|value| value.abs() <= most).count();
                all += runs.len();
                near += within(&cost, MOST);
                following += within(&apart, MOST);
                narrow += within(&halves, WIDEST);
            }
            let mean = |of: fn(&Found) -> Option<f64>| {
                let values: Option<Vec<f64>> = runs.iter().map(of).collect();
                values.map(|values| rounds::mean(&values).value)
            };
            let percent = |value: Option<f64>, digits| evidence::number(value.map(|value| value * 100.0), digits);
            let worst = |values: &[f64]| {
                values.iter().copied().reduce(|one, two| if two.abs() > one.abs() { two } else { one })
            };
            rows.push(vec![
                load.name().to_owned(),
                (*name).to_owned(),
                percent(mean(|run| run.others), 0),
                evidence::number(mean(|run| Some(run.cost)), 0),
                evidence::number(mean(|run| Some(run.threads)), 0),
                percent(worst(&cost), 1),
                percent(worst(&apart), 1),
                percent(worst(&halves), 1),
                evidence::number(mean(|run| run.by_level), 0),
                format!("{} of {}", runs.iter().filter(|run| run.by_name).count(), runs.len()),
            ]);
        }
        let name = load.name();
        evidence.criterion(near == all, format!("{name}: within 5 % of the same round's quiet cost: {near} of {all}"));
        evidence.criterion(
            following == all,
            format!("{name}: the cost changes as its own threads' does, within 5 %: {following} of {all}"),
        );
        evidence.criterion(narrow == all, format!("{name}: half of the interval at most 10 %: {narrow} of {all}"));
    }
    evidence.table(
        &[
            "load",
            "beside it",
            "others, % of the machine",
            "cycles/IO",
            "its threads",
            "from quiet",
            "from threads",
            "widest half",
            "by level",
            "by name",
        ],
        &rows,
    );
    Ok(evidence)
}

fn measure(bench: &Bench, load: Load, file: &Path) -> anyhow::Result<Found> {
    let seconds = bench.options.seconds;
    let (filename, size) = (format!("--filename={}", file.display()), format!("--size={MEBIBYTES}m"));
    let cached = || fio::job("psync", seconds, &["--bs=4k", &size, &filename, "--invalidate=0"]);
    let finding = match load {
        Load::Work => {
            let job = fio::job("work", seconds, &["--work_steps=10000", "--size=1m"]);
            iotoll::run(bench, &MEASURING, &job)?
        }
        Load::CachedRead => iotoll::run(bench, &MEASURING, &cached())?,
        Load::Fio => iotoll::cost(bench, &MEASURING, &[], &[vec!["fio".to_owned()], cached()].concat())?,
    };
    let phase = iotoll::phase(&finding)?;
    let cost = iotoll::net(&finding)?;
    Ok(Found {
        cost,
        half: phase.cycles_per_io_low.zip(phase.cycles_per_io_high).map(|(low, high)| (high - low) / 2.0 / cost),
        by_level: phase.cycles_per_io_by_level.map(|level| level.value),
        threads: phase.thread_cycles_per_io.context("the threads' own time is unknown")?,
        others: phase.others_busy_fraction,
        by_name: phase.known_by_name,
    })
}
