//! `iotoll compare` on arms with a known difference: none, or a known cost added to each I/O.

mod foreign;
mod others;
pub mod sliced;

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

/// The metrics that are validated.
const METRICS: [Metric; 2] = [Metric::CyclesPerIo, Metric::Iops];
/// Of forty experiments on identical arms, up to five may be called different: two are expected, and more than five
/// occur by chance once in seventy times.
const FALSE_SHARE: f64 = 5.0 / 40.0;
/// For unmodified fio, no more than expected; more occur by chance once in three times.
const FALSE_SHARE_FOREIGN: f64 = 2.0 / 40.0;
/// Fraction of known changes that must lie within their interval.
const COVERAGE: f64 = 0.85;
/// Fraction of changes of some 5 % that must be detected.
const POWER: f64 = 0.8;
/// What is added to each I/O of the candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Injected {
    /// Engine `spin` burns this fraction more. Its I/O is nothing but burning, so the true change is known.
    Spin(f64),
    /// A cached read with this many nanoseconds burnt in addition. Its cost differs from the time burnt (docs/validation),
    /// so the true change is unknown and only detection counts.
    Read(u64),
}

/// Known costs, and one that is some 5 % of an I/O of 3 to 6 µs.
const INJECTED: [Injected; 4] = [Injected::Spin(0.02), Injected::Spin(0.05), Injected::Spin(0.10), Injected::Read(200)];
/// Cycles of the baseline's spin.
const SPIN_CYCLES: f64 = 10_000.0;
/// Burnt in each read of both arms, because starting to burn accounts for most of the difference between cost and time
/// burnt.
const BOTH_NANOS: u64 = 300;

/// Cached 4 KiB reads against themselves.
pub fn same(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let job = cached_reads(&bench.file("aa", 16)?, "4k");
    false_differences(bench, "cached 4 KiB reads by psync", &job, Beside::Nothing, FALSE_SHARE)
}

/// The same while the other CPU is busy at times.
pub fn same_beside_a_hog(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let job = cached_reads(&bench.file("aa", 16)?, "4k");
    let what = "cached 4 KiB reads by psync, beside a CPU hog that starts and stops";
    false_differences(bench, what, &job, Beside::Hog, FALSE_SHARE)
}

/// Unmodified fio against itself.
pub fn same_fio(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let file = bench.file("aa", 16)?;
    let fio =
        ["--", "fio", "--name=aa", "--ioengine=psync", "--rw=randread", "--bs=4k", "--size=16m", "--invalidate=0"];
    let mut words: Vec<String> = fio.map(str::to_owned).to_vec();
    words.extend(["--time_based".to_owned(), "--runtime=250ms".to_owned(), format!("--filename={}", file.display())]);
    let what = "unmodified fio, cached 4 KiB reads by psync, 250 ms per execution";
    false_differences(bench, what, &words, Beside::Nothing, FALSE_SHARE_FOREIGN)
}

/// A known cost added to each I/O.
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
        let text = format!("{}: the interval contains the true change in {held} of {of} experiments", which.name());
        evidence.criterion(f64::from(held as u32) >= COVERAGE * of as f64, text);
    }
    evidence.note(format!(
        "Engine spin with {SPIN_CYCLES} cycles per I/O against more; the true change is the additional burning divided by the baseline's \
         cost (for IOPS: time) per I/O in the same experiment. And 64 KiB cached reads with {BOTH_NANOS} ns burnt in each \
         I/O of both arms and 200 ns more in the candidate, whose true change is not known as well. Means."
    ));
    evidence.table(
        &["injected", "metric", "true change", "found", "in interval", "detected", "half-width", "seconds"],
        &rows,
    );
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

/// The true change from this many additional cycles per I/O in this experiment: relative to the cost, which includes
/// work of others for the I/O, or relative to the time, because this load never waits.
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

/// What runs beside the comparison of identical arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    Hog,
}

/// Compares identical arms. At most the fraction `share` of the experiments may find a difference.
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
    serde_json::from_str(&text).context("iotoll's JSON does not have the expected format")
}

fn metric(finding: &CompareFinding, which: Metric) -> anyhow::Result<&MetricFinding> {
    let cell = finding.cells.first().context("the comparison has no cell")?;
    let found = cell.metrics.get(which.name()).context("the metric is missing")?;
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

fn lengths<'a>(runs: impl IntoIterator<Item = &'a CompareFinding>) -> String {
    let seconds: Vec<f64> = runs.into_iter().map(|run| run.seconds).collect();
    format!("{:.1}", rounds::median(&seconds))
}
