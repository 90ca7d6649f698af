//! Words and numbers of recordings.

use crate::ftq::FtqFinding;
use crate::pages::probes::units;
use report::number::{self, MISSING, separated};

/// A value whose unit is in its [label](crate::pages::probes::label).
pub(super) fn bare(unit: &str, value: f64) -> String {
    number::with_unit(units(unit), value)
}

/// "41.0 k pages", "256 KiB", "1.20 ms".
pub(super) fn value(unit: &str, value: f64) -> String {
    let text = bare(unit, value);
    match unit {
        "bytes" | "ns" | "" => text,
        _ if text == MISSING => text,
        _ => format!("{text} {unit}"),
    }
}

/// The amount per second.
pub(super) fn rate(finding: &FtqFinding, per_second: f64) -> String {
    match finding.unit.as_str() {
        "bytes" => number::bytes_per_second(per_second),
        unit => format!("{}/s", value(unit, per_second)),
    }
}

/// A probability: "0.02", "1e-12"; below any that floating point numbers hold, the least of them.
pub(super) fn probability(probability: f64) -> String {
    match probability {
        value if !value.is_finite() => MISSING.to_owned(),
        value if value >= 0.095 => format!("{value:.1}"),
        value if value >= 0.001 => number::significant(value).trim_end_matches('0').to_owned(),
        value if value > 1e-300 => format!("{value:.0e}"),
        _ => "<1e-300".to_owned(),
    }
}

/// A part of the whole that is close to it: "97.94 %", "100 %".
pub(super) fn available(part: f64) -> String {
    let percent = part * 100.0;
    match percent {
        value if !value.is_finite() || value.abs() > 1e6 => MISSING.to_owned(),
        value if value >= 100.0 => format!("{value:.0} %"),
        // Rounded down: a part is not the whole.
        value => format!("{:.2} %", (value * 100.0).floor() / 100.0),
    }
}

/// A factor: "12", "3.4".
pub(super) fn times(factor: f64) -> String {
    match factor {
        value if !value.is_finite() => MISSING.to_owned(),
        value if value < 9.95 => format!("{value:.1}"),
        value if value < 1e6 => format!("{value:.0}"),
        value => format!("{value:.0e}"),
    }
}

/// A time since the beginning: "12.345 s".
pub(super) fn moment(seconds: f64) -> String {
    if seconds.is_finite() && seconds.abs() < 1e9 { format!("{seconds:.3} s") } else { MISSING.to_owned() }
}

/// A whole number with separators: "61,000".
pub(super) fn whole(value: u64) -> String {
    separated(&value.to_string())
}

/// A sentence with a capital letter.
pub(super) fn begun(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::probes::label;

    #[test]
    fn values_have_their_unit() {
        assert_eq!(value("pages", 41_000.0), "41.0 k pages");
        assert_eq!(value("bytes", 262_144.0), "256 KiB");
        assert_eq!(value("ns", 1.2e6), "1.20 ms");
        assert_eq!(value("pages", f64::NAN), MISSING);
        assert_eq!((label("dirty", "pages").as_str(), bare("pages", 41_000.0).as_str()), ("dirty (pages)", "41.0 k"));
        assert_eq!(label("net.ib0.tx_bytes", "bytes"), "net.ib0.tx_bytes");
    }

    #[test]
    fn probabilities_are_short() {
        let all = [1.0, 0.25, 0.012, 0.001, 1e-12, 0.0, f64::NAN].map(probability);
        assert_eq!(all, ["1.0", "0.2", "0.012", "0.001", "1e-12", "<1e-300", MISSING]);
    }

    #[test]
    fn almost_all_is_not_all() {
        let all = [1.0, 0.999_999, 0.979_42, 0.0, f64::INFINITY].map(available);
        assert_eq!(all, ["100 %", "99.99 %", "97.94 %", "0.00 %", MISSING]);
        assert_eq!([2.34, 23.4, 1e9].map(times), ["2.3", "23", "1e9"]);
        assert_eq!((whole(61_000).as_str(), begun("every day").as_str()), ("61,000", "Every day"));
    }
}
