//! Findings as plain sentences: "every 5.00 s the writer stops for 180 ms while dirty pages fall by 41,000".

use super::labels::Motion;
use crate::ftq::finding::Label;
use crate::ftq::record::Worker;
use model::number::{self, BYTES, NANOS, separated};
use model::probe::Descriptor;

/// Depth from which on a worker stops; below it, it loses time.
const STOPS: f64 = 0.8;

/// The worker as the subject of a sentence.
pub(super) fn subject(worker: &Worker) -> &'static str {
    let plan = match worker {
        Worker::Job(plan) => plan,
        Worker::Cpu => return "the computing thread",
        Worker::Command(_) | Worker::Process(_) => return "the process",
    };
    let job = plan.phases.iter().flat_map(|phase| &phase.jobs).next();
    match job.map_or("", |job| job.rw()) {
        "write" | "randwrite" => "the writer",
        "read" | "randread" => "the reader",
        _ => "the worker",
    }
}

/// A stall that repeats.
pub(super) fn every(period: f64, subject: &str, lost: (f64, f64), labels: &[Label]) -> String {
    format!("every {} {}", number::seconds(period), stops(subject, lost, labels))
}

fn stops(subject: &str, (depth, seconds): (f64, f64), labels: &[Label]) -> String {
    let verb = if depth >= STOPS { "stops for" } else { "loses" };
    let moved = labels.first().map_or_else(String::new, |label| format!(" while {}", label.words));
    format!("{subject} {verb} {}{moved}", number::seconds(seconds))
}

/// What a probe did: "dirty pages fall by 41,000".
pub(super) fn moved(probe: &Descriptor, change: f64, motion: Motion) -> String {
    let name = &probe.name;
    let (name, amount, plural) = match probe.unit.as_str() {
        "pages" => (format!("{name} pages"), count(change.abs()), true),
        "ns" => (name.clone(), number::with_unit(NANOS, change.abs()), false),
        "bytes" => (name.clone(), number::with_unit(BYTES, change.abs()), name.ends_with("bytes")),
        _ => (name.clone(), count(change.abs()), name.ends_with('s')),
    };
    let up = change > 0.0;
    match motion {
        Motion::Rise => {
            let (verb, s) = (if up { "rise" } else { "fall" }, if plural { "" } else { "s" });
            format!("{name} {verb}{s} by {amount}")
        }
        Motion::Bump => {
            let (verb, to) = (if plural { "are" } else { "is" }, if up { "higher" } else { "lower" });
            format!("{name} {verb} {amount} {to}")
        }
    }
}

/// Three significant digits, with commas: 41,000.
fn count(value: f64) -> String {
    if value < 999.5 {
        let text = number::significant(value);
        return if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
    }
    let step = 10_f64.powf(value.log10().floor() - 2.0);
    let text = format!("{:.0}", (value / step).round() * step);
    separated(&text)
}

/// An amount in its unit: "3.00 MiB", "41,000 steps".
pub(super) fn amount(unit: &str, amount: f64) -> String {
    match unit {
        "bytes" => number::with_unit(BYTES, amount),
        unit => format!("{} {unit}", count(amount)).trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::probe::{Kind, Scope};

    fn probe(name: &str, unit: &str) -> Descriptor {
        let (name, unit, meaning) = (name.to_owned(), unit.to_owned(), String::new());
        Descriptor { name, meaning, unit, kind: Kind::Gauge, scope: Scope::Machine }
    }

    #[test]
    fn sentences_are_plain() {
        let of = |name, unit, change, motion| moved(&probe(name, unit), change, motion);
        let dirty = Label { words: of("dirty", "pages", -41_037.0, Motion::Rise), ..Label::default() };
        let sentence = every(5.0, "the writer", (0.99, 0.18), &[dirty]);
        assert_eq!(sentence, "every 5.00 s the writer stops for 180 ms while dirty pages fall by 41,000");
        assert_eq!(every(0.1, "the reader", (0.2, 50e-6), &[]), "every 100 ms the reader loses 50.0 µs");
        assert_eq!(of("interrupts", "interrupts", 12.0, Motion::Rise), "interrupts rise by 12");
        assert_eq!(of("pgpgout", "bytes", 3.0 * 1_048_576.0, Motion::Rise), "pgpgout rises by 3.00 MiB");
        assert_eq!(of("pressure.io.some", "ns", 2e6, Motion::Rise), "pressure.io.some rises by 2.00 ms");
        assert_eq!(of("writeback", "pages", 1_234_567.0, Motion::Bump), "writeback pages are 1,230,000 higher");
    }
}
