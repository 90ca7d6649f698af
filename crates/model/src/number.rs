//! Formats numbers: three significant digits and a fitting unit.
//!
//! A value that is missing, infinite or not a number is an em dash, never 0. Every text is short: beyond the largest
//! unit and below the smallest, numbers use scientific notation.

/// The text of a missing number.
pub const MISSING: &str = "—";

/// The units of one quantity, each with its size in the smallest one, in ascending order.
pub type Units = &'static [(f64, &'static str)];

/// Processor cycles.
pub const CYCLES: Units =
    &[(1.0, "cycles"), (1e3, "kcycles"), (1e6, "Mcycles"), (1e9, "Gcycles"), (1e12, "Tcycles"), (1e15, "Pcycles")];
/// Durations, from nanoseconds.
pub const NANOS: Units = &[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")];
/// Durations, from seconds.
pub const SECONDS: Units = &[(1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")];
/// Changes and parts, from fractions.
pub const PERCENT: Units = &[(0.01, "%")];
/// Counts; the unit is only the prefix.
pub const COUNT: Units = &[(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P")];
/// Amounts of data. Powers of two, as fio prints them.
pub const BYTES: Units = &[
    (1.0, "B"),
    (1024.0, "KiB"),
    (1_048_576.0, "MiB"),
    (1_073_741_824.0, "GiB"),
    (1_099_511_627_776.0, "TiB"),
    (1_125_899_906_842_624.0, "PiB"),
];

/// Larger numbers use scientific notation, so that a cell stays narrower than ten columns.
pub const TOO_LARGE: f64 = 999_999.5;
/// Below this, three significant digits would need more than six decimals.
const TOO_SMALL: f64 = 1e-4;

/// `value` to three significant digits, without a unit.
pub fn significant(value: f64) -> String {
    fixed(value, decimals(value))
}

/// Number of decimals that shows three significant digits of `value`.
fn decimals(value: f64) -> usize {
    // Zero has no significant digits; two decimals match most neighbouring numbers.
    let size = if value == 0.0 { 1.0 } else { value.abs() };
    // The thresholds are where rounding carries into the next digit: 9.995 is "10.0", not "10.00".
    [99.95, 9.995, 0.9995, 0.09995, 0.009_995, 0.000_999_5].iter().take_while(|least| size < **least).count()
}

/// `value` with `decimals` decimals, or in scientific notation if it is too large or too small.
fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    if value.abs() >= TOO_LARGE || value.abs() < TOO_SMALL {
        return format!("{value:.2e}");
    }
    format!("{value:.decimals$}")
}

/// A unit, chosen for a reference value, for a whole column or an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    size: f64,
    decimals: usize,
    /// The name of the unit.
    pub unit: &'static str,
}

impl Scale {
    /// The unit in which `reference` has one to three digits before the decimal point, and as many decimals as give it
    /// three significant digits.
    pub fn of(units: Units, reference: f64) -> Self {
        let fits = |&&(size, _): &&(f64, &str)| (reference / size).abs() >= 0.9995;
        // 1000 KiB and more read better as 0.98 MiB, so the largest unit that keeps the value at 1 or more is only used
        // if the value has at most three digits.
        let fitting = units.iter().rev().find(fits).or(units.first());
        let next = fitting
            .and_then(|(size, _)| units.iter().find(|(larger, _)| larger > size && (reference / size).abs() >= 999.5));
        let (size, unit) = next.or(fitting).copied().unwrap_or((1.0, ""));
        Self { size, decimals: decimals(reference / size), unit }
    }

    /// The size of the unit in the smallest one.
    pub fn size(&self) -> f64 {
        self.size
    }

    /// `value` in this unit, without the unit's name. A value that is not 0 but would round to 0 is shown as an upper
    /// bound.
    pub fn cell(&self, value: f64) -> String {
        let scaled = value / self.size;
        let smallest = 0.1f64.powi(self.decimals as i32);
        if scaled != 0.0 && scaled.abs() < smallest / 2.0 {
            let sign = if scaled < 0.0 { ">-" } else { "<" };
            return format!("{sign}{smallest:.*}", self.decimals);
        }
        fixed(scaled, self.decimals)
    }

    /// `[low, high]` in this unit.
    pub fn interval(&self, low: f64, high: f64) -> String {
        format!("[{}, {}]", self.cell(low), self.cell(high))
    }
}

/// The units of values whose unit has this name in JSON, and what follows the unit.
pub fn of_metric(unit: &str) -> (Units, &str) {
    match unit {
        crate::limit::CHANGE | "fraction" => (PERCENT, ""),
        "ns" => (NANOS, ""),
        "s" => (SECONDS, ""),
        _ => match (unit.strip_prefix("cycles"), unit.strip_prefix("B/")) {
            (Some(rest), _) => (CYCLES, rest),
            (None, Some("s")) => (BYTES, "/s"),
            (None, _) => (COUNT, unit),
        },
    }
}

/// How the values of a metric are written: in one unit, that of a reference value.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    pub scale: Scale,
    pub unit: String,
}

impl Written {
    pub fn of(unit: &str, reference: f64) -> Self {
        let (units, rest) = of_metric(unit);
        let scale = Scale::of(units, reference);
        let gap = if units == COUNT && !scale.unit.is_empty() && !rest.is_empty() { " " } else { "" };
        Self { scale, unit: format!("{}{gap}{rest}", scale.unit) }
    }
}

/// `value` with a fitting unit: "3.12 µs".
pub fn with_unit(units: Units, value: f64) -> String {
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    let scale = Scale::of(units, value);
    join(&scale.cell(value), scale.unit)
}

/// [`with_unit`] for a value that may be missing.
pub fn known(units: Units, value: Option<f64>) -> String {
    value.map_or_else(|| MISSING.to_owned(), |value| with_unit(units, value))
}

/// A figure net of the background, formatted by `shown`. Noise may make it negative, and rounding may leave a trace;
/// neither can be distinguished from 0.
pub fn net(value: Option<f64>, shown: impl FnOnce(f64) -> String) -> String {
    match value {
        Some(value) if is_about_0(value) => "≈ 0".to_owned(),
        Some(value) => shown(value),
        None => MISSING.to_owned(),
    }
}

/// Whether [`net`] shows a figure as about 0.
pub fn is_about_0(value: f64) -> bool {
    /// Smaller than any sum of clock ticks, so it is a rounding error.
    const TRACE: f64 = 1e-9;
    value < TRACE && value != 0.0
}

/// A count: all digits up to three, otherwise [`with_unit`].
pub fn count(value: u64) -> String {
    if value < 1000 { value.to_string() } else { with_unit(COUNT, value as f64) }
}

/// Bytes per second: "1.08 GiB/s".
pub fn bytes_per_second(value: f64) -> String {
    if value.is_finite() { with_unit(BYTES, value) + "/s" } else { MISSING.to_owned() }
}

/// A duration in seconds: "9.60 s".
pub fn seconds(value: f64) -> String {
    with_unit(NANOS, value * 1e9)
}

/// A waiting time in seconds: "58.2 s", "12 min", "3.4 h", "5 days", "over a year".
pub fn lasting(value: f64) -> String {
    const DAY: f64 = 86_400.0;
    match value {
        long if long >= 365.0 * DAY => "over a year".to_owned(),
        long if long >= 2.0 * DAY => format!("{:.0} days", long / DAY),
        long if (7200.0..TOO_LARGE).contains(&long) => format!("{:.1} h", long / 3600.0),
        long if (120.0..7200.0).contains(&long) => format!("{:.0} min", long / 60.0),
        _ => seconds(value),
    }
}

/// The rate of a clock, with one more digit than other numbers, to match the rate printed on the processor.
pub fn gigahertz(hertz: f64) -> String {
    if hertz.is_finite() && hertz.abs() < 1e15 { format!("{:.3} GHz", hertz / 1e9) } else { MISSING.to_owned() }
}

/// A fraction as a percentage: "59 %", "2.1 %".
pub fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    match percent.abs() {
        size if !size.is_finite() => MISSING.to_owned(),
        0.0 => "0 %".to_owned(),
        size if size < 0.05 => if percent > 0.0 { "<0.1 %" } else { ">-0.1 %" }.to_owned(),
        size if size < 9.95 => format!("{percent:.1} %"),
        _ => fixed(percent, 0) + " %",
    }
}

/// A confidence near 1, with two significant digits of what is missing to 1: "97.5 %", "99.72 %".
pub fn confidence(fraction: f64) -> String {
    let missing = (1.0 - fraction) * 100.0;
    let decimals = if missing > 0.0 { (1.0 - missing.log10().floor()).clamp(0.0, 9.0) as usize } else { 0 };
    let text = format!("{:.decimals$}", fraction * 100.0);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

/// A fraction without a sign, with as few digits as possible: "3 %", "0.5 %".
pub fn bare_percent(fraction: f64) -> String {
    if !fraction.is_finite() || fraction.abs() * 100.0 >= TOO_LARGE {
        return MISSING.to_owned();
    }
    let text = format!("{:.1}", fraction * 100.0);
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

/// Half the interval's width relative to the value: "±1.0 %".
pub fn plus_minus(value: f64, low: Option<f64>, high: Option<f64>) -> String {
    let (Some(low), Some(high)) = (low, high) else { return MISSING.to_owned() };
    let half = (high - low) / 2.0 / value.abs();
    if half.is_finite() { format!("±{}", percent(half)) } else { MISSING.to_owned() }
}

/// Half the interval's width: relative to the value as [`plus_minus`] shows it, or in units where it exceeds the value, "±0.21 kcycles": of a
/// figure near 0 a percentage says nothing.
pub fn plus_minus_in(units: Units, value: f64, low: Option<f64>, high: Option<f64>) -> String {
    let half = low.zip(high).map(|(low, high)| (high - low) / 2.0);
    match half.filter(|half| half.is_finite() && *half > value.abs()) {
        Some(half) => format!("±{}", with_unit(units, half)),
        None => plus_minus(value, low, high),
    }
}

fn join(number: &str, unit: &str) -> String {
    if unit.is_empty() { number.to_owned() } else { format!("{number} {unit}") }
}

/// Groups the digits of a whole number by three: "61,000".
pub fn separated(digits: &str) -> String {
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// "75.2 % faster" for +0.752, "75.2 % slower" for −0.752, with `decimals`: "−75 % faster" would say two things.
pub fn directed(change: f64, decimals: usize, more: &str, less: &str) -> String {
    let word = if change < 0.0 { less } else { more };
    format!("{:.decimals$} % {word}", change.abs() * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn confidences_show_what_is_missing_to_one() {
        for (fraction, text) in [(0.95, "95 %"), (0.975, "97.5 %"), (1.0 - 0.05 / 18.0, "99.72 %"), (0.9999, "99.99 %")]
        {
            assert_eq!(confidence(fraction), text);
        }
    }

    #[test]
    fn a_wait_is_told_in_units_that_a_person_plans_by() {
        let waits =
            [(58.2, "58.2 s"), (720.0, "12 min"), (12_240.0, "3.4 h"), (4.32e5, "5 days"), (2.6e9, "over a year")];
        waits.iter().for_each(|(seconds, text)| assert_eq!(lasting(*seconds), *text));
    }

    #[test]
    fn three_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1.00"),
            (6.914, "6.91"),
            (9.994, "9.99"),
            (9.996, "10.0"),
            (99.94, "99.9"),
            (99.96, "100"),
            (-42.42, "-42.4"),
            (1234.0, "1234"),
            (0.5, "0.500"),
            (0.0123, "0.0123"),
            (0.00123, "0.00123"),
            (0.00012345, "0.000123"),
            (0.0000123, "1.23e-5"),
            (1e7, "1.00e7"),
            (f64::MAX, "1.80e308"),
            (f64::NAN, MISSING),
            (f64::INFINITY, MISSING),
            (f64::NEG_INFINITY, MISSING),
        ] {
            assert_eq!(significant(value), text, "{value:?}");
        }
    }

    #[test]
    fn the_unit_fits_the_value() {
        for (units, value, text) in [
            (CYCLES, 0.0, "0 cycles"),
            (CYCLES, 0.25, "0.250 cycles"),
            (CYCLES, 999.4, "999 cycles"),
            (CYCLES, 999.95, "1.00 kcycles"),
            (CYCLES, 6914.0, "6.91 kcycles"),
            (CYCLES, -6914.0, "-6.91 kcycles"),
            (CYCLES, 3.3e10, "33.0 Gcycles"),
            (CYCLES, 1e300, "1.00e285 Pcycles"),
            (CYCLES, f64::NAN, MISSING),
            (NANOS, 3120.0, "3.12 µs"),
            (NANOS, 999_600.0, "1.00 ms"),
            (NANOS, 9.6e9, "9.60 s"),
            (NANOS, 3.6e12, "3600 s"),
            (COUNT, 284_000.0, "284 k"),
            (COUNT, 7.0, "7.00"),
            (BYTES, 1023.0, "0.999 KiB"),
            (BYTES, 1024.0, "1.00 KiB"),
            (BYTES, 1010.0 * 1024.0, "0.986 MiB"),
        ] {
            assert_eq!(with_unit(units, value), text, "{value:?}");
        }
        assert_eq!(known(CYCLES, None), MISSING);
        assert_eq!(bytes_per_second(f64::INFINITY), MISSING);
        assert_eq!([0, 12, 999, 1000, 2_843_112].map(count), ["0", "12", "999", "1.00 k", "2.84 M"]);
        assert_eq!(seconds(0.0044), "4.40 ms");
        assert_eq!([58.2, 733.0, 12_300.0, f64::NAN].map(lasting), ["58.2 s", "12 min", "3.4 h", MISSING]);
        assert_eq!(gigahertz(2.5961e9), "2.596 GHz");
        assert_eq!(gigahertz(f64::NAN), MISSING);
    }

    #[test]
    fn values_below_the_background_are_about_0() {
        let shown = |value| net(value, |value| with_unit(CYCLES, value));
        assert_eq!([Some(-1.47e-5), Some(1e-12)].map(shown), ["≈ 0"; 2]);
        assert_eq!(shown(Some(0.0)), "0 cycles", "nothing was counted");
        assert_eq!([Some(6914.0), Some(f64::NAN), None].map(shown), ["6.91 kcycles", MISSING, MISSING]);
    }

    #[test]
    fn a_column_shares_its_unit() {
        let scale = Scale::of(CYCLES, 6914.0);
        assert_eq!((scale.unit, scale.cell(412.0).as_str()), ("kcycles", "0.41"));
        assert_eq!(scale.cell(3.0), "<0.01");
        assert_eq!(scale.cell(-3.0), ">-0.01");
        assert_eq!(scale.cell(0.0), "0");
        assert_eq!(scale.interval(6840.0, 6982.0), "[6.84, 6.98]");
    }

    #[test]
    fn percentages() {
        for (fraction, text) in [
            (0.0, "0 %"),
            (0.00001, "<0.1 %"),
            (-0.00001, ">-0.1 %"),
            (0.0213, "2.1 %"),
            (0.0996, "10 %"),
            (0.593, "59 %"),
            (1.0, "100 %"),
            (f64::NAN, MISSING),
        ] {
            assert_eq!(percent(fraction), text, "{fraction:?}");
        }
        assert_eq!([0.03, 0.005, 0.1, f64::NAN].map(bare_percent), ["3 %", "0.5 %", "10 %", MISSING]);
        assert_eq!(plus_minus(6.91, Some(6.84), Some(6.98)), "±1.0 %");
        assert_eq!(plus_minus(0.0, Some(-1.0), Some(1.0)), MISSING);
        assert_eq!(plus_minus(6.91, None, None), MISSING);
    }

    #[test]
    fn half_intervals_of_figures_near_zero_are_in_units() {
        assert_eq!(plus_minus_in(CYCLES, 6910.0, Some(6840.0), Some(6980.0)), "±1.0 %");
        assert_eq!(plus_minus_in(CYCLES, 3.0, Some(-207.0), Some(213.0)), "±210 cycles");
        assert_eq!(plus_minus_in(CYCLES, -3.0, Some(-2103.0), Some(2097.0)), "±2.10 kcycles");
        assert_eq!(plus_minus_in(COUNT, 0.0, Some(0.0), Some(0.0)), MISSING);
        assert_eq!(plus_minus_in(CYCLES, 3.0, None, None), MISSING);
        assert_eq!(plus_minus_in(CYCLES, 3.0, Some(f64::NEG_INFINITY), Some(1.0)), MISSING);
    }

    proptest! {
        #[test]
        fn every_number_is_short_and_only_zero_is_zero(value in any::<f64>(), reference in any::<f64>()) {
            for units in [CYCLES, NANOS, COUNT, BYTES] {
                let text = with_unit(units, value);
                prop_assert!(text.chars().count() <= 18, "{text}");
                prop_assert_eq!(text.starts_with("0 ") || text == "0", value == 0.0, "{} is {}", value, text);
                prop_assert!(Scale::of(units, reference).cell(value).chars().count() <= 14);
            }
        }

        #[test]
        fn what_is_shown_is_within_half_a_digit(value in 1e-3f64..1e15) {
            let scale = Scale::of(CYCLES, value);
            let read: f64 = scale.cell(value).parse().unwrap();
            prop_assert!((read * scale.size / value - 1.0).abs() < 0.0051);
        }
    }

    #[test]
    fn digits_are_grouped_by_three() {
        assert_eq!(["", "7", "999", "1000", "1234567"].map(separated), ["", "7", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_word_replaces_the_sign() {
        assert_eq!(directed(0.752, 1, "faster", "slower"), "75.2 % faster");
        assert_eq!(directed(-0.752, 1, "faster", "slower"), "75.2 % slower");
        assert_eq!(directed(-0.2, 0, "longer", "shorter"), "20 % shorter");
    }
}
