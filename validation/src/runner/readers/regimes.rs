//! Whether a measurement had two regimes, by its series of I/Os per second, or for commands by the part of the reads that came from the
//! disk, whatever iotoll says itself; and whether a mean or verdict covers both.

use crate::bench::Bench;
use crate::bench::rounds::median;
use crate::runner::document;
use serde_json::Value;

/// A measurement has two regimes if the I/Os per second of its first and last part differ by this factor.
const APART: f64 = 2.0;

pub(super) fn read(bench: &Bench, _: &[String]) -> anyhow::Result<Vec<f64>> {
    let found = document::parse(&std::fs::read_to_string(bench.path("out"))?)?;
    let (two, rests) = if found["cells"].is_array() { compared(&found) } else { phase(&found) };
    Ok([two, rests].map(|yes| f64::from(u8::from(yes))).to_vec())
}

fn rates<'a>(points: &'a Value, fits: impl Fn(&Value) -> bool + 'a) -> Vec<f64> {
    let points = points.as_array().into_iter().flatten().filter(|point| fits(point));
    points.filter_map(|point| point["iops"].as_f64()).collect()
}

fn phase(found: &Value) -> (bool, bool) {
    let phase = &found["phases"][0];
    let (rates, cache) = (rates(&phase["series"], |_| true), &phase["page_cache"]);
    if rates.is_empty() {
        // A command: fio reports what it read, and the kernel what came from the disk. Its mean is that of the whole command and is shown
        // as such.
        let part = cache["reads_from_storage_fraction"].as_f64();
        return (part.is_some_and(|part| (0.02..0.98).contains(&part)), false);
    }
    // Two speeds alone do not matter, because the cost stays the same; the page cache must have changed too.
    let changed = cache["resident_before_fraction"].as_f64() < cache["resident_after_fraction"].as_f64();
    (apart(&rates) && changed, !phase["cycles_per_io"].is_null())
}

/// By the rounds that count, per arm.
fn compared(found: &Value) -> (bool, bool) {
    let cell = &found["cells"][0];
    let of = |baseline: bool| rates(&cell["slices"], move |slice| slice["baseline"].as_bool() == Some(baseline));
    let regimes = found["regimes"].as_array().is_some_and(|regimes| !regimes.is_empty());
    // The finding contains the slices that count: if these have two regimes, a verdict covers both.
    let counted = apart(&of(true)) || apart(&of(false));
    (regimes || counted, counted && cell["metrics"]["cycles_per_io"]["change"].is_number())
}

/// Whether the medians of the first and the last third of a series are two regimes.
fn apart(rates: &[f64]) -> bool {
    let third = rates.len() / 3;
    let ends = rates.get(..third).zip(rates.get(rates.len() - third..));
    let Some((first, last)) = ends.map(|(first, last)| (median(first), median(last))) else { return false };
    third > 0 && first > 0.0 && last > 0.0 && (first / last).max(last / first) >= APART
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_that_differ_by_the_factor_are_two_regimes() {
        assert!(apart(&[1.0, 1.0, 5.0, 9.0, 9.0, 9.0]));
        assert!(!apart(&[1.0, 1.2, 1.0, 1.1, 1.3, 1.0]));
        assert!(!apart(&[1.0, 9.0]), "too few");
        assert!(!apart(&[]));
    }
}
