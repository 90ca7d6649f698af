//! `iotoll compare` on arms whose difference is known: none, or a cost that was added to each I/O.

mod foreign;
mod others;

pub use foreign::toggled;
pub use others::others;

use crate::bench::Bench;
use crate::bench::evidence::{self, Evidence};
use crate::bench::rounds;
use anyhow::Context;
use model::comparison::CompareFinding;
use model::comparison::finding::MetricFinding;
use model::experiment::Metric;
use std::path::Path;

/// Both are asked the same question.
const METRICS: [Metric; 2] = [Metric::CyclesPerIo, Metric::Iops];
/// Of identical arms, so many experiments in forty may be called different: two are to be expected, and more than five come
/// by chance once in seventy times.
const FALSE_SHARE: f64 = 5.0 / 40.0;
/// Of unmodified fio no more than are to be expected: more come by chance once in three times.
const FALSE_SHARE_FOREIGN: f64 = 2.0 / 40.0;
/// Of known changes, so many must lie in their interval.
const COVERAGE: f64 = 0.85;
/// Of changes of some 5 %, so many must be detected.
const POWER: f64 = 0.8;
/// What is done to each I/O of the candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Injected {
    /// Engine `spin` burns this part more. An I/O is nothing but burning, so the truth is known.
    Spin(f64),
    /// A cached read with so many nanoseconds burnt besides. What that costs is not what it burns (RESULTS.md), so it
    /// has no truth to be held: only whether it is detected counts.
    Read(u64),
}

/// The costs that are known, and one that is some 5 % of an I/O of 3 to 6 µs.
const INJECTED: [Injected; 4] = [Injected::Spin(0.02), Injected::Spin(0.05), Injected::Spin(0.10), Injected::Read(200)];
/// Cycles of the baseline's spin.
const SPIN_CYCLES: f64 = 10_000.0;
/// Burnt in each read of both arms: beginning to burn at all is the largest part of what is not burnt.
const BOTH_NANOS: u64 = 300;

/// Cached 4 KiB reads against themselves.
pub fn same(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let job = cached_reads(&bench.file("aa", 16)?, "4k");
    false_differences(bench, "cached 4 KiB reads by psync", &job, Beside::Nothing, FALSE_SHARE)
}

/// The same while the other CPU is busy now and then.
pub fn same_beside_a_hog(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let job = cached_reads(&bench.file("aa", 16)?, "4k");
    let what = "cached 4 KiB reads by psync, beside a hog that comes and goes";
    false_differences(bench, what, &job, Beside::Hog, FALSE_SHARE)
}

/// Unmodified fio against itself.
pub fn same_fio(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let file = bench.file("aa", 16)?;
    let fio =
        ["--", "fio", "--name=aa", "--ioengine=psync", "--rw=randread", "--bs=4k", "--size=16m", "--invalidate=0"];
    let mut words: Vec<String> = fio.map(str::to_owned).to_vec();
    words.extend(["--time_based".to_owned(), "--runtime=250ms".to_owned(), format!("--filename={}", file.display())]);
    let what = "unmodified fio, cached 4 KiB reads by psync, 250 ms an execution";
    false_differences(bench, what, &words, Beside::Nothing, FALSE_SHARE_FOREIGN)
}

/// A cost that is added to each I/O.
pub fn injected(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let reads = cached_reads(&bench.file("injected", 16)?, "64k");
    let spins = ["--ioengine=spin", "--size=64m"].map(str::to_owned);
    let found = bench.in_rounds(
        &INJECTED,
        |_| 0,
        |injected| injected.name(),
        |bench, injected| match injected {
            Injected::Spin(part) => {
                let candidate = SPIN_CYCLES * (1.0 + part);
                let arms = [("baseline", SPIN_CYCLES), ("candidate", candidate)];
                compare(bench, &spins, &arms.map(|(arm, cycles)| format!("--{arm}=spin_cycles={cycles:.0}")))
            }
            Injected::Read(nanos) => {
                let arms = [("baseline", BOTH_NANOS), ("candidate", BOTH_NANOS + nanos)];
                compare(bench, &reads, &arms.map(|(arm, nanos)| format!("--{arm}=inject_ns={nanos}")))
            }
        },
    )?;
    let mut evidence = Evidence::default();
    let mut rows = Vec::new();
    let (mut held, mut of) = ([0, 0], 0);
    for (injected, runs) in INJECTED.iter().zip(&found) {
        if matches!(injected, Injected::Spin(_)) {
            of += runs.len();
        }
        for (&which, held) in METRICS.iter().zip(&mut held) {
            let metrics: Vec<&MetricFinding> = runs.iter().map(|run| metric(run, which)).collect::<Result<_, _>>()?;
            let detected = metrics.iter().filter(|found| found.detected).count();
            let (truth, holds) = match injected {
                Injected::Spin(part) => {
                    let truths = runs.iter().map(|run| truth(run, which, SPIN_CYCLES * part));
                    let truths: Vec<f64> = truths.collect::<anyhow::Result<_>>()?;
                    let holding = metrics.iter().zip(&truths).filter(|(found, truth)| holds(found, **truth)).count();
                    *held += holding;
                    (format!("{:+.2} %", rounds::mean(&truths).value * 100.0), format!("{holding} of {}", runs.len()))
                }
                Injected::Read(_) => {
                    let text =
                        format!("{}: {} is detected in {detected} of {}", which.name(), injected.name(), runs.len());
                    evidence.criterion(detected as f64 >= POWER * runs.len() as f64, text);
                    ("–".to_owned(), "–".to_owned())
                }
            };
            rows.push(vec![
                injected.name(),
                which.name().to_owned(),
                truth,
                evidence::percent(&rounds::mean(&metrics.iter().filter_map(|found| found.change).collect::<Vec<_>>())),
                holds,
                format!("{detected} of {}", runs.len()),
                half_widths(&metrics),
                lengths(runs),
            ]);
        }
    }
    for (which, held) in METRICS.iter().zip(held) {
        let text = format!("{}: the interval holds the truth in {held} of {of} experiments", which.name());
        evidence.criterion(f64::from(held as u32) >= COVERAGE * of as f64, text);
    }
    evidence.note(format!(
        "Engine spin with {SPIN_CYCLES} cycles an I/O against so much more; the truth is what is burnt more, over the baseline's \
         cost (for IOPS: its time) an I/O in the same experiment. And 64 KiB cached reads with {BOTH_NANOS} ns burnt in each \
         of both arms and 200 ns more in the candidate's, whose truth is not known as well. Means."
    ));
    evidence.table(&["injected", "metric", "truth", "found", "held", "detected", "half-width", "seconds"], &rows);
    Ok(evidence)
}

impl Injected {
    fn name(self) -> String {
        match self {
            Self::Spin(part) => format!("{:.0} % of a spin", part * 100.0),
            Self::Read(nanos) => format!("{nanos} ns of a read"),
        }
    }
}

/// What so many cycles more an I/O change in this experiment. Of its cost, which holds what others do for the I/O
/// as well; or of its time, because this load never waits.
fn truth(run: &CompareFinding, which: Metric, burnt: f64) -> anyhow::Result<f64> {
    let baseline = metric(run, which)?.baseline.context("the baseline has no value")?;
    Ok(match which {
        Metric::Iops => 1.0 / (1.0 + burnt * baseline / run.environment.host.tsc_hertz) - 1.0,
        _ => burnt / baseline,
    })
}

fn cached_reads(file: &Path, block: &str) -> Vec<String> {
    let fixed = ["--ioengine=psync", "--rw=randread", "--size=16m", "--invalidate=0"];
    let fixed = fixed.into_iter().map(str::to_owned);
    fixed.chain([format!("--bs={block}"), format!("--filename={}", file.display())]).collect()
}

/// What runs while identical arms are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    Hog,
}

/// At most so many of the experiments, as a part, may call identical arms different.
fn false_differences(
    bench: &mut Bench,
    what: &str,
    job: &[String],
    beside: Beside,
    share: f64,
) -> anyhow::Result<Evidence> {
    let other = sys::schedule::online_cpus()?.last().copied().unwrap_or(0).to_string();
    let found = bench.in_rounds(
        &[()],
        |()| 0,
        |()| what.to_owned(),
        |bench, ()| {
            let _hog = (beside == Beside::Hog).then(|| bench.beside(&["restless-hog", &other])).transpose()?;
            compare(bench, job, &["--aa".to_owned()])
        },
    )?;
    let runs = found.first().context("nothing was measured")?;
    let mut evidence = Evidence::default();
    let mut rows = Vec::new();
    for which in METRICS {
        let metrics: Vec<&MetricFinding> = runs.iter().map(|run| metric(run, which)).collect::<Result<_, _>>()?;
        let different = metrics.iter().filter(|found| found.detected).count();
        let most = share * runs.len() as f64;
        let text = format!(
            "{}: {different} of {} identical pairs are called different, at most {most:.0}",
            which.name(),
            runs.len()
        );
        evidence.criterion(different as f64 <= most, text);
        let changes: Vec<f64> = metrics.iter().filter_map(|found| found.change).collect();
        rows.push(vec![
            which.name().to_owned(),
            format!("{different} of {}", runs.len()),
            half_widths(&metrics),
            evidence::percent(&rounds::mean(&changes)),
            lengths(runs),
        ]);
    }
    evidence.note(format!(
        "{what}, against itself, {} experiments of at most {} s.",
        runs.len(),
        bench.options.seconds
    ));
    evidence.table(&["metric", "called different", "half-width: median [5th, 95th]", "mean change", "seconds"], &rows);
    Ok(evidence)
}

fn compare(bench: &Bench, job: &[String], arms: &[String]) -> anyhow::Result<CompareFinding> {
    let mut iotoll = bench.iotoll();
    iotoll.args(["compare", "--no-save", "--quiet", "--format=json"]);
    iotoll.arg(format!("--budget={}ms", (bench.options.seconds * 1e3).round())).args(arms).args(job);
    let text = bench.output(&mut iotoll)?;
    serde_json::from_str(&text).context("iotoll's JSON is not what it was when this was written")
}

fn metric(finding: &CompareFinding, which: Metric) -> anyhow::Result<&MetricFinding> {
    let cell = finding.cells.first().context("the comparison has no cell")?;
    let found = cell.metrics.get(which.name()).context("the metric is not there")?;
    anyhow::ensure!(found.change.is_some(), "{}: {}", which.name(), found.reason.as_deref().unwrap_or("no value"));
    Ok(found)
}

fn holds(found: &MetricFinding, truth: f64) -> bool {
    found.low.is_some_and(|low| low <= truth) && found.high.is_some_and(|high| truth <= high)
}

fn half_widths(metrics: &[&MetricFinding]) -> String {
    let widths = metrics.iter().filter_map(|found| Some((found.high? - found.low?) / 2.0 * 100.0));
    let mut widths: Vec<f64> = widths.collect();
    let at = |widths: &mut Vec<f64>, percent| evidence::number(rounds::percentile(widths, percent), 1);
    format!("±{} % [{}, {}]", at(&mut widths, 50.0), at(&mut widths, 5.0), at(&mut widths, 95.0))
}

fn lengths(runs: &[CompareFinding]) -> String {
    let seconds: Vec<f64> = runs.iter().map(|run| run.seconds).collect();
    format!("{:.1}", rounds::median(&seconds))
}
