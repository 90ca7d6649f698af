//! Today's methods at equal machine time: the same fio twice, alternating fio runs with a t-test, hyperfine; and
//! iotoll. The arms are identical, so each difference found is false.

use super::{compare, metric};
use crate::bench::Bench;
use crate::bench::evidence::{self, Evidence};
use crate::bench::{fio, rounds};
use anyhow::Context;
use model::experiment::Metric;
use model::stats::Estimate;
use serde_json::Value;
use std::path::Path;

/// Approximate time that fio takes to start and exit, in seconds; part of the machine time.
const START: f64 = 0.3;
/// Runs per arm, for methods with several.
const RUNS: usize = 5;
/// Without an interval, people believe a difference beyond this: iotoll's default margin.
const MARGIN: f64 = 0.03;

/// A method of comparing two arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Twice,
    TwiceSamples,
    Alternated,
    Hyperfine,
    IotollOverFio,
    Iotoll,
}

impl Method {
    /// The two analyses of two fio runs share their runs.
    const MEASURED: [Self; 5] = [Self::Twice, Self::Alternated, Self::Hyperfine, Self::IotollOverFio, Self::Iotoll];
    const ALL: [Self; 6] =
        [Self::Twice, Self::TwiceSamples, Self::Alternated, Self::Hyperfine, Self::IotollOverFio, Self::Iotoll];

    fn name(self) -> &'static str {
        match self {
            Self::Twice => "fio twice, different beyond 3 %",
            Self::TwiceSamples => "fio twice, t-test on fio's own samples",
            Self::Alternated => "fio alternating 5 times per arm, t-test on the runs",
            Self::Hyperfine => "hyperfine, 5 runs per arm, beyond the ± that it prints",
            Self::IotollOverFio => "iotoll compare, unmodified fio",
            Self::Iotoll => "iotoll compare, its own engine",
        }
    }
}

/// A method's verdict on two identical arms.
#[derive(Clone, Copy, Debug)]
struct Answer {
    different: bool,
    /// Candidate ÷ baseline − 1.
    change: f64,
    half_width: Option<f64>,
}

pub fn others(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let file = bench.file("others", 16)?;
    let found = bench.in_rounds(
        &Method::MEASURED,
        |_| 0,
        |method| method.name().to_owned(),
        |bench, method| match method {
            Method::Twice | Method::TwiceSamples => twice(bench, &file),
            Method::Alternated => Ok(vec![alternated(bench, &file)?]),
            Method::Hyperfine => Ok(vec![hyperfine(bench, &file)?]),
            Method::IotollOverFio => Ok(vec![iotoll(bench, &over_fio(&file), &["--aa"])?]),
            Method::Iotoll => Ok(vec![iotoll(bench, &super::cached_reads(&file, "4k"), &["--aa"])?]),
        },
    )?;
    let answers = |method| -> Vec<Answer> {
        let (measured, place) = if method == Method::TwiceSamples { (Method::Twice, 1) } else { (method, 0) };
        let runs = Method::MEASURED.iter().position(|other| *other == measured).and_then(|place| found.get(place));
        runs.into_iter().flatten().filter_map(|run| run.get(place).copied()).collect()
    };
    let mut evidence = Evidence::default();
    let rows: Vec<Vec<String>> = Method::ALL.into_iter().map(|method| row(method, &answers(method))).collect();
    for method in [Method::IotollOverFio, Method::Iotoll] {
        let answers = answers(method);
        let different = answers.iter().filter(|answer| answer.different).count();
        let text = format!("{}: {different} of {} identical pairs are called different", method.name(), answers.len());
        evidence.criterion(different as f64 <= super::FALSE_SHARE * answers.len() as f64, text);
    }
    evidence.note(format!(
        "I/Os per second (hyperfine: time) of cached 4 KiB reads by psync on identical arms; {} s of machine time for each \
         method in each of {} rounds, methods in random order.",
        bench.options.seconds, bench.options.rounds
    ));
    let header = ["method", "called different", "half-width: median", "largest difference found", "sees CPU cost"];
    evidence.table(&header, &rows);
    Ok(evidence)
}

fn row(method: Method, answers: &[Answer]) -> Vec<String> {
    let different = answers.iter().filter(|answer| answer.different).count();
    let widths: Vec<f64> = answers.iter().filter_map(|answer| answer.half_width).collect();
    let width = match widths.is_empty() {
        true => "none".to_owned(),
        false => format!("±{} %", evidence::number(Some(rounds::median(&widths) * 100.0), 1)),
    };
    let largest = answers.iter().map(|answer| answer.change).max_by(|one, other| one.abs().total_cmp(&other.abs()));
    let sees = matches!(method, Method::IotollOverFio | Method::Iotoll);
    vec![
        method.name().to_owned(),
        format!("{different} of {}", answers.len()),
        width,
        format!("{:+.1} %", largest.unwrap_or(f64::NAN) * 100.0),
        if sees { "yes" } else { "no" }.to_owned(),
    ]
}

fn over_fio(file: &Path) -> Vec<String> {
    let mut words = vec!["--".to_owned(), "fio".to_owned()];
    words.extend(fio_job(file, 0.25));
    words
}

fn fio_job(file: &Path, seconds: f64) -> Vec<String> {
    let filename = format!("--filename={}", file.display());
    fio::job("psync", seconds, &["--bs=4k", "--size=16m", "--invalidate=0", &filename])
}

/// Both analyses of two fio runs, each half the time long.
fn twice(bench: &Bench, file: &Path) -> anyhow::Result<Vec<Answer>> {
    let job = fio_job(file, bench.options.seconds / 2.0 - START);
    let (one, other) = (samples(bench, &job)?, samples(bench, &job)?);
    let change = other.mean / one.mean - 1.0;
    let plain = Answer { different: change.abs() > MARGIN, change, half_width: None };
    Ok(vec![plain, welch(one, other)])
}

fn alternated(bench: &Bench, file: &Path) -> anyhow::Result<Answer> {
    let job = fio_job(file, bench.options.seconds / (2 * RUNS) as f64 - START);
    let mut arms = [Vec::new(), Vec::new()];
    for _ in 0..RUNS {
        for arm in &mut arms {
            arm.push(fio::run(bench, &job)?.iops);
        }
    }
    let [one, other] = arms.map(|runs| Samples::of(&runs));
    Ok(welch(one, other))
}

/// As many I/Os per run as fit in the time.
fn hyperfine(bench: &Bench, file: &Path) -> anyhow::Result<Answer> {
    let seconds = bench.options.seconds / (2 * RUNS) as f64 - START;
    let iops = fio::run(bench, &fio_job(file, 0.1))?.iops;
    let mut words = vec!["fio".to_owned(), "--output-format=json".to_owned()];
    let timed = |word: &String| !word.starts_with("--time_based") && !word.starts_with("--runtime");
    words.extend(fio_job(file, seconds).into_iter().filter(timed));
    // A loop reads the file once; the remainder of a loop does not matter.
    let loops = (iops * seconds / (16.0 * 256.0)).round().max(1.0);
    words.push(format!("--loops={loops}"));
    let (command, export) = (words.join(" "), bench.path("hyperfine.json"));
    let mut hyperfine = bench.command("hyperfine");
    hyperfine.args(["--style=none", "--shell=none", "--runs", &RUNS.to_string(), "--export-json"]).arg(&export);
    bench.output(hyperfine.args([&command, &command]))?;
    let value: Value = serde_json::from_str(&std::fs::read_to_string(&export)?)?;
    let number = |place: usize, key: &str| {
        let found = value.pointer(&format!("/results/{place}/{key}")).and_then(Value::as_f64);
        found.with_context(|| format!("hyperfine's JSON has no {key}"))
    };
    let ratio = number(1, "mean")? / number(0, "mean")?;
    // As hyperfine prints it: "1.02 ± 0.03 times faster", with the errors of both propagated.
    let relative = |place| anyhow::Ok(number(place, "stddev")? / number(place, "mean")?);
    let half_width = ratio * relative(0)?.hypot(relative(1)?);
    Ok(Answer { different: (ratio - 1.0).abs() > half_width, change: 1.0 / ratio - 1.0, half_width: Some(half_width) })
}

fn iotoll(bench: &Bench, job: &[String], arms: &[&str]) -> anyhow::Result<Answer> {
    let finding = compare(bench, job, &arms.iter().map(|&arm| arm.to_owned()).collect::<Vec<_>>())?;
    let found = metric(&finding, Metric::Iops)?;
    let (change, low, high) = (found.change.context("no change")?, found.low, found.high);
    let half_width = low.zip(high).map(|(low, high)| (high - low) / 2.0);
    Ok(Answer { different: found.detected, change, half_width })
}

/// Summary of one arm's values.
#[derive(Clone, Copy, Debug)]
struct Samples {
    mean: f64,
    deviation: f64,
    count: f64,
}

impl Samples {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self { mean, deviation: (squares / (count - 1.0)).sqrt(), count }
    }

    /// Variance of the mean.
    fn error(self) -> f64 {
        self.deviation.powi(2) / self.count
    }
}

/// fio's own samples of a run, two per second.
fn samples(bench: &Bench, job: &[String]) -> anyhow::Result<Samples> {
    let value = fio::json(&bench.output(bench.command("fio").arg("--output-format=json").args(job))?)?;
    let read = |key: &str| {
        let found = value.pointer(&format!("/jobs/0/read/{key}")).and_then(Value::as_f64);
        found.with_context(|| format!("fio's JSON has no {key}"))
    };
    Ok(Samples { mean: read("iops_mean")?, deviation: read("iops_stddev")?, count: read("iops_samples")? })
}

/// Welch's t-test on two means: different when the 95 % interval of their difference excludes 0.
fn welch(one: Samples, other: Samples) -> Answer {
    let error = one.error() + other.error();
    let within = |samples: Samples| samples.error().powi(2) / (samples.count - 1.0);
    let degrees = error.powi(2) / (within(one) + within(other));
    let difference = Estimate::with_error(other.mean - one.mean, error.sqrt(), degrees);
    Answer {
        different: difference.contains(0.0) == Some(false),
        change: other.mean / one.mean - 1.0,
        half_width: difference.half_width().map(|half| half / one.mean),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy.stats.ttest_ind([10, 11, 12, 13], [13, 14, 15, 17], equal_var=False).confidence_interval().
    #[test]
    fn welch_agrees_with_scipy() {
        let (one, other) = (Samples::of(&[10.0, 11.0, 12.0, 13.0]), Samples::of(&[13.0, 14.0, 15.0, 17.0]));
        let found = welch(one, other);
        assert!(found.different && (found.change - 3.25 / 11.5).abs() < 1e-12);
        assert!((found.half_width.unwrap() * 11.5 - 2.6672206224740034).abs() < 1e-9, "{found:?}");
        assert!(!welch(one, one).different);
    }
}
