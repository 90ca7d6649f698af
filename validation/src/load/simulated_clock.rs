//! The kernel's idle clock on a simulated machine: one CPU is always busy, a background wakes the others. A reading visits one CPU after the
//! other. How far the busy CPUs of a slice are from the truth.

use super::argument;
use crate::bench::rounds::deviation;
use crate::bench::seeded::Seeded;
use serde_json::json;

const SLICES: u64 = 200;
/// A wake-up of the background.
const BURST: u64 = 20_000;

/// `CPUS WAKE_UPS NANOS KNOWN SLICE SEED`: wake-ups of each CPU per second, what reading one takes, how long a sleep is before its beginning is
/// known, and the length of a slice in nanoseconds.
pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let number = |place| argument::<u64>(arguments, place);
    let way = (number(2)?, number(3)?);
    println!("{}", json!({ "error": simulated(number(0)?, number(1)?, way, number(4)?, number(5)?) }));
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_of_all_cpus_at_once_has_no_error_and_one_without_what_lasts_has() {
        assert!(simulated(16, 100, (0, 0), 10_000_000, 1) < 1e-9);
        let as_read = simulated(16, 100, (0, u64::MAX), 10_000_000, 1);
        assert!(as_read > 1.0, "{as_read}");
        assert!(simulated(16, 100, (30, 0), 10_000_000, 1) < 0.01 * as_read);
    }
}
