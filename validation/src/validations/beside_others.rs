//! Beside other programs, the cost is that of the load: a load whose cost does not depend on caches, beside processes that start and end as
//! those of a build do.

use crate::bench::evidence::{self, Evidence};
use crate::bench::iotoll::{self, Measuring};
use crate::bench::rounds;
use crate::bench::{Bench, Beside};
use model::finding::PhaseFinding;

/// As a user runs it: accounts run by default.
const MEASURING: Measuring = Measuring { meters: "default", background_millis: 1000, out: None };
/// What runs beside it: threads, and the milliseconds that each computes and pauses.
const OTHERS: [(&str, Option<[&str; 3]>); 4] = [
    ("nothing", None),
    ("a third of the machine, processes of 60 ms", Some(["1", "60", "30"])),
    ("one CPU, processes of 20 ms", Some(["1", "20", "0"])),
    ("all CPUs, bursts of 300 ms", Some(["2", "300", "300"])),
];
/// Furthest that the cost may be from that of the same round without others.
const MOST: f64 = 0.05;
/// Widest half of an interval.
const WIDEST: f64 = 0.1;

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let runtime = format!("--runtime={}", bench.options.seconds);
    let job =
        ["--name=work", "--ioengine=work", "--work_steps=10000", "--rw=read", "--size=1m", "--time_based", &runtime];
    let job = job.map(str::to_owned);
    let found = bench.in_rounds(
        &OTHERS,
        |_| 0,
        |(name, _)| (*name).to_owned(),
        |bench, (_, others)| {
            let start = |words: &[&str; 3]| bench.beside(&[["short-processes"].as_slice(), words].concat());
            let _others: Option<Beside> = others.as_ref().map(start).transpose()?;
            Ok(iotoll::phase(&iotoll::run(bench, &MEASURING, &job)?)?.clone())
        },
    )?;
    let mut evidence = Evidence::default();
    let quiet: Vec<Option<f64>> = found.first().into_iter().flatten().map(|phase| phase.cycles_per_io).collect();
    let (mut near, mut narrow, mut all) = (0, 0, 0);
    let mut rows = Vec::new();
    for ((name, others), phases) in OTHERS.iter().zip(&found) {
        let off = |phase: &PhaseFinding, quiet: &Option<f64>| Some(phase.cycles_per_io? / (*quiet)? - 1.0);
        let off: Vec<Option<f64>> = phases.iter().zip(&quiet).map(|(phase, quiet)| off(phase, quiet)).collect();
        let half = |phase: &PhaseFinding| {
            Some((phase.cycles_per_io_high? - phase.cycles_per_io_low?) / 2.0 / phase.cycles_per_io?)
        };
        let halves: Vec<Option<f64>> = phases.iter().map(half).collect();
        if others.is_some() {
            all += phases.len();
            near += off.iter().flatten().filter(|off| off.abs() <= MOST).count();
            narrow += halves.iter().flatten().filter(|half| **half <= WIDEST).count();
        }
        let mean = |of: &dyn Fn(&PhaseFinding) -> Option<f64>| {
            let values: Option<Vec<f64>> = phases.iter().map(of).collect();
            values.map(|values| rounds::mean(&values).value)
        };
        let percent = |value: Option<f64>| evidence::number(value.map(|value| value * 100.0), 1);
        let worst = |values: &[Option<f64>]| values.iter().flatten().map(|value| value.abs()).reduce(f64::max);
        rows.push(vec![
            (*name).to_owned(),
            evidence::number(mean(&|phase| phase.others_busy_fraction).map(|part| part * 100.0), 0),
            evidence::number(mean(&|phase| phase.cycles_per_io), 0),
            percent(worst(&off)),
            percent(worst(&halves)),
            evidence::number(mean(&|phase| phase.cycles_per_io_by_level.map(|level| level.value)), 0),
            format!("{} of {}", phases.iter().filter(|phase| phase.known_by_name).count(), phases.len()),
        ]);
    }
    evidence
        .note("Engine work, 10,000 steps per I/O. Means over rounds; the two columns of worst values are in percent.");
    evidence.table(
        &[
            "beside it",
            "others, % of the machine",
            "cycles/IO",
            "worst from quiet",
            "widest half",
            "by level",
            "by name",
        ],
        &rows,
    );
    evidence.criterion(near == all, format!("within 5 % of the same round's quiet cost: {near} of {all}"));
    evidence.criterion(narrow == all, format!("half of the interval at most 10 %: {narrow} of {all}"));
    Ok(evidence)
}
