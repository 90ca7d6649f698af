//! The noise of the kernel's idle clock, which iotoll reads without waking a CPU: measured here in slices of 10 ms, and simulated for
//! machines with more CPUs.
//!
//! The simulation has a CPU that is always busy, and others that a background wakes. A reading visits one CPU after the other, as a program
//! in the kernel does in some 30 ns each (`memory`), or /proc/timer_list in 22 µs (`list`), which tells only of a CPU whose tick is
//! stopped that it sleeps.

use crate::bench::Bench;
use crate::bench::evidence::{Evidence, number};
use crate::bench::rounds::median;
use crate::bench::seeded::Seeded;
use anyhow::Context;
use serde_json::Value;
use std::path::Path;

/// How a clock is read: its name, nanoseconds a CPU, and how long a sleep is before its beginning is known.
const WAYS: [(&str, u64, u64); 2] = [("memory", 30, 0), ("list", 22_000, 4_000_000)];
/// A reading takes at most one part in this many of a slice (`SHARE`, lab/src/meter/idle_clock.rs).
const SHARE: u64 = 50;
/// The length of a slice if reading the clock takes no time (`SLICE`, lab/src/compare/slices.rs).
const SLICE: u64 = 10_000_000;
const SLICES: u64 = 200;
/// A wake-up of the background.
const BURST: u64 = 20_000;

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let mut evidence = Evidence::default();
    let folder = bench.path("aa");
    let budget = format!("--budget={}s", bench.options.seconds * bench.options.rounds as f64);
    let out = format!("--out={}", folder.display());
    let options = ["compare", "--aa", "--ioengine=null", "--size=1m", "--slice=10ms", "--quiet", "--format=json"];
    bench.output(bench.iotoll().args(options).args([&budget, &out]))?;
    let found = slices(&folder.join("record.jsonl"))?;
    evidence.note(
        "Busy CPUs in slices of 10 ms of this machine: with one spinning thread, less its CPU time; and without it.",
    );
    let mut usual = Vec::new();
    let mut row = |name: &str, with: bool| {
        let busy: Vec<f64> = found.iter().filter(|slice| slice.0 == with).map(|slice| slice.1).collect();
        let middle = median(&busy);
        usual.push(median(&busy.iter().map(|busy| (busy - middle).abs()).collect::<Vec<_>>()));
        let figures = [middle, usual.last().copied().unwrap_or(0.0), deviation(&busy)];
        [name.to_owned(), busy.len().to_string()].into_iter().chain(figures.map(|one| number(Some(one), 4))).collect()
    };
    evidence.table(
        &["slices", "number", "median", "median deviation", "standard deviation"],
        &[row("one thread spins", true), row("none", false)],
    );
    evidence
        .criterion(usual.iter().all(|usual| *usual < 0.01), "half of the slices are within 0.01 CPUs of the median");
    evidence.note("Simulated: the error of busy CPUs in a slice, by its standard deviation; the slice is as long as iotoll makes it.");
    let (mut rows, mut worst) = (Vec::new(), 0.0_f64);
    for cpus in [2, 16, 64, 256] {
        for per_second in [10, 200] {
            for (way, each, known) in WAYS {
                let slice = SLICE.max(each * cpus * SHARE);
                let error = simulated(cpus, per_second, (each, known), slice, bench.options.seed);
                worst = if known == 0 { worst.max(error) } else { worst };
                let of_answer = 2.0 * 1.96 * error / (12e9 / 2.0 / slice as f64).sqrt() * 100.0;
                rows.push(vec![
                    cpus.to_string(),
                    per_second.to_string(),
                    way.to_owned(),
                    number(Some(each as f64 * cpus as f64 / 1e3), 1),
                    number(Some(slice as f64 / 1e6), 0),
                    number(Some(error), 4),
                    number(Some(of_answer), 2),
                ]);
            }
        }
    }
    let header = [
        "CPUs",
        "wake-ups/s of each",
        "way",
        "reading, µs",
        "slice, ms",
        "error, busy CPUs",
        "± % of one CPU in A/A of 12 s",
    ];
    evidence.table(&header, &rows);
    evidence.criterion(worst < 0.01, format!("read from memory, the error is below 0.01 CPUs: at most {worst:.4}"));
    Ok(evidence)
}

/// Of each slice, whether a load ran, and the busy CPUs less those of its thread.
fn slices(record: &Path) -> anyhow::Result<Vec<(bool, f64)>> {
    let text = std::fs::read_to_string(record).context("no record was saved")?;
    let mut found = Vec::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line)?;
        for slice in line.pointer("/round/slices").and_then(Value::as_array).into_iter().flatten() {
            let reading = slice.pointer("/reading/slice").context("a slice has no reading")?;
            let at = |end: &str, key: &str| reading.pointer(&format!("/{end}/{key}")).and_then(Value::as_f64);
            let grown = |key: &str| Some(at("after", key)? - at("before", key)?);
            let count = |name: &str| grown(&format!("counts/timer_list/{name}"));
            let (length, idle) =
                count("at_nanos").zip(count("total")).context("the idle clock cannot be read: run as root")?;
            let cpus = at("after", "counts/timer_list/cpus").unwrap_or(0.0);
            let own = grown("own_nanos").unwrap_or(0.0) + at("work", "thread_nanos").unwrap_or(0.0);
            found.push((!slice["case"].is_null(), cpus - (idle + own) / length));
        }
    }
    Ok(found)
}

/// The standard deviation of the error of busy CPUs in a slice.
fn simulated(cpus: u64, per_second: u64, (each, known): (u64, u64), slice: u64, seed: u64) -> f64 {
    let mut seeded = Seeded::new(seed);
    let mut errors = vec![0.0; usize::try_from(SLICES).unwrap_or(0)];
    for cpu in 1..cpus {
        let late = cpu * each;
        let (mut now, mut slept) = (seeded.below(1_000_000_000 / per_second), 0);
        let (mut seen, mut truth) = (Vec::new(), Vec::new());
        while seen.len() <= errors.len() || truth.len() <= errors.len() {
            // A sleep of exponential length, then a burst.
            let uniform = (seeded.below(1 << 52) + 1) as f64 / (1u64 << 52) as f64;
            let sleep = (-uniform.ln() * 1e9 / per_second as f64) as u64;
            let (begin, end, again) = (now, now + sleep, now + sleep + BURST);
            let reading = |number: usize, late: u64| number as u64 * slice + late;
            while reading(truth.len(), 0) < again {
                truth.push(slept + reading(truth.len(), 0).clamp(begin, end) - begin);
            }
            while reading(seen.len(), late) < again {
                let (at, asked) = (reading(seen.len(), late), reading(seen.len(), 0));
                // What lasts is added up to the instant at which the reading began.
                let lasts = if at < end && sleep >= known { asked.saturating_sub(begin) } else { 0 };
                seen.push(if at < end { slept + lasts } else { slept + sleep });
            }
            (now, slept) = (again, slept + sleep);
        }
        let grown = |counts: &[u64], number: usize| counts[number + 1] as f64 - counts[number] as f64;
        for (number, error) in errors.iter_mut().enumerate() {
            *error += (grown(&truth, number) - grown(&seen, number)) / slice as f64;
        }
    }
    deviation(&errors)
}

fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len().saturating_sub(1).max(1) as f64)
        .sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_of_all_cpus_at_once_has_no_error_and_one_without_what_lasts_has() {
        assert!(simulated(16, 100, (0, 0), SLICE, 1) < 1e-9);
        let as_read = simulated(16, 100, (0, u64::MAX), SLICE, 1);
        assert!(as_read > 1.0, "{as_read}");
        assert!(simulated(16, 100, (30, 0), SLICE, 1) < 0.01 * as_read);
    }
}
