//! An axis of a chart: the positions of values, and the numbers along it.

use crate::document::{Chart, Point, Span, chart};
use crate::number::{self, Units, bare_percent};
use plotters::coord::ranged1d::{BoldPoints, KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::Ranged;
use std::ops::Range;

/// Maximum number of numbers on an axis.
const NUMBERS: usize = 6;
/// Minimum ratio of the values for a logarithmic axis.
const SPREAD: f64 = 12.0;
/// The same for named values, because sizes usually double, and a crossover is interpolated in the logarithm.
const NAMED_SPREAD: f64 = 4.0;
/// Values outside the range of any measurement are not drawn.
const DRAWABLE: Range<f64> = 1e-12..1e18;

/// An axis: its ends, in positions, and its numbers.
#[derive(Clone, Debug)]
pub struct Axis {
    span: Span,
    numbers: Vec<(f64, String)>,
    is_logarithmic: bool,
}

/// Whether a number has a position.
fn drawable(value: f64) -> bool {
    value == 0.0 || DRAWABLE.contains(&value.abs())
}

impl Axis {
    /// Both axes of a chart; `None` if a value has no position.
    pub fn both(chart: &Chart) -> Option<(Self, Self)> {
        let points = || chart.series.iter().flat_map(|series| &series.points);
        let ends = |covered: Option<(f64, f64)>| covered.map(<[f64; 2]>::from).into_iter().flatten();
        let marked = chart.marks.iter().flat_map(|mark| ends(mark.upright()));
        let crossed = chart.marks.iter().flat_map(|mark| ends(mark.across()));
        let range = |point: &Point| {
            let ends = point.ends.unwrap_or((point.y, point.y));
            (ends.0.min(point.y), ends.1.max(point.y))
        };
        let ranges: Vec<(f64, f64)> = points().map(range).collect();
        let ranges = match chart.y {
            // What is outside has an arrow.
            chart::Axis::Change => Span::of_most(&ranges, 0.0).map(|span| vec![(span.low, span.high)])?,
            _ => ranges,
        };
        let up: Vec<f64> = ranges.into_iter().flat_map(<[f64; 2]>::from).chain(marked).collect();
        Self::of(&chart.x, points().map(|point| point.x).chain(crossed).collect()).zip(Self::of(&chart.y, up))
    }

    fn of(axis: &chart::Axis, values: Vec<f64>) -> Option<Self> {
        values.first()?;
        match axis {
            chart::Axis::Amount { units, from_zero } => Self::of_amounts(units, values.into_iter(), *from_zero),
            chart::Axis::Change => {
                let low = values.iter().copied().fold(0.0, f64::min);
                let high = values.iter().copied().fold(0.0, f64::max);
                Self::linear(low, high, signed_percent)
            }
            chart::Axis::Time => {
                let last = values.iter().copied().fold(0.0, f64::max);
                let text = |time| if time == 0.0 { "0 s".to_owned() } else { shortest(&number::seconds(time)) };
                Self::linear(0.0, last, text)
            }
            chart::Axis::Named(names) => Self::of_named(names),
            chart::Axis::Steps(names) => Self::of_steps(names),
        }
    }

    /// Logarithmic if the values cover a large range. `from_zero` says whether lengths are compared.
    fn of_amounts(units: Units, values: impl Iterator<Item = f64>, from_zero: bool) -> Option<Self> {
        let values: Vec<f64> = values.collect();
        if !values.iter().all(|value| drawable(*value)) {
            return None;
        }
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        if low > 0.0 && high > low * SPREAD {
            return Some(Self::logarithmic(low, high, units));
        }
        let low = if from_zero { low.min(0.0) } else { low };
        // Bytes have round numbers in their unit: 64 KiB, not 62.5.
        let size = number::Scale::of(units, high.abs().max(low.abs())).size();
        let size = if size.log10().fract() == 0.0 { 1.0 } else { size };
        let mut axis = Self::linear(low / size, high / size, |value| label(units, value * size))?;
        axis.numbers.iter_mut().for_each(|(number, _)| *number *= size);
        Some(Self { span: Span::new(axis.span.low * size, axis.span.high * size), ..axis })
    }

    /// From `low` to `high` with some padding, with numbers chosen by plotters. Guards against an endless loop in
    /// plotters if a step overflows.
    fn linear(low: f64, high: f64, text: impl Fn(f64) -> String) -> Option<Self> {
        if ![low, high].iter().all(|end| end.abs() < DRAWABLE.end) {
            return None;
        }
        let room = if high > low { (high - low) * 0.06 } else { high.abs().max(1e-9) * 0.1 };
        let low = if low == 0.0 { 0.0 } else { low - room };
        let high = high + room;
        let numbers = RangedCoordf64::from(low..high).key_points(BoldPoints(NUMBERS));
        // Rounding leaves a trace of a step where 0 is meant, and a trace has a sign.
        let zero = |number: f64| if number.abs() < (high - low) * 1e-9 { 0.0 } else { number };
        let numbers = numbers.into_iter().map(zero).map(|number| (number, text(number))).collect();
        Some(Self { span: Span::new(low, high), numbers, is_logarithmic: false })
    }

    /// Both ends are above 0. Numbers are at 1, 2 and 5 of each power of ten, as many as fit.
    fn logarithmic(low: f64, high: f64, units: Units) -> Self {
        let (low, high) = (low.log10() - 0.08, high.log10() + 0.08);
        let powers = || (low.floor() as i32)..=(high.ceil() as i32);
        let within = |steps: &[f64]| {
            let all = powers().flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
            all.filter(|number| (low..=high).contains(&number.log10())).collect::<Vec<_>>()
        };
        let choices: [&[f64]; 2] = [&[1.0, 2.0, 5.0], &[1.0, 3.0]];
        let numbers = choices.iter().map(|steps| within(steps)).find(|numbers| numbers.len() <= NUMBERS);
        let numbers = numbers.unwrap_or_else(|| within(&[1.0]));
        // If there are too many powers of ten, uses every second, third… of them.
        let step = numbers.len().div_ceil(NUMBERS).max(1);
        let numbers = numbers.into_iter().step_by(step);
        let numbers = numbers.map(|number| (number, label(units, number))).collect();
        Self { span: Span::new(low, high), numbers, is_logarithmic: true }
    }

    /// An axis with a number for each named value (sizes, depths). Logarithmic if they cover a large range.
    fn of_named(values: &[(f64, String)]) -> Option<Self> {
        if !values.iter().all(|(value, _)| drawable(*value)) {
            return None;
        }
        let low = values.iter().map(|(value, _)| *value).reduce(f64::min)?;
        let high = values.iter().map(|(value, _)| *value).reduce(f64::max)?;
        let is_logarithmic = low > 0.0 && high >= low * NAMED_SPREAD;
        let (low, high) = if is_logarithmic { (low.log10(), high.log10()) } else { (low, high) };
        let room = if high > low { (high - low) * 0.05 } else { 1.0 };
        Some(Self { span: Span::new(low - room, high + room), numbers: values.to_vec(), is_logarithmic })
    }

    /// An axis with steps of equal width, each with a name: percentiles.
    fn of_steps(names: &[String]) -> Option<Self> {
        let span = Span::new(-0.5, names.len() as f64 - 0.5);
        let numbers = names.iter().enumerate().map(|(place, name)| (place as f64, name.clone())).collect();
        (!names.is_empty()).then_some(Self { span, numbers, is_logarithmic: false })
    }

    /// The ends, as values.
    pub fn ends(&self) -> (f64, f64) {
        let Span { low, high } = self.span;
        if self.is_logarithmic { (10f64.powf(low), 10f64.powf(high)) } else { (low, high) }
    }

    /// How many numbers it has.
    pub fn numbers(&self) -> usize {
        self.numbers.len()
    }

    /// The position of a value, between 0 and 1.
    fn place(&self, value: f64) -> f64 {
        let value = if self.is_logarithmic { value.max(f64::MIN_POSITIVE).log10() } else { value };
        self.span.fraction(value)
    }

    /// The value that is `part` of the axis further than `value`.
    pub fn beside(&self, value: f64, part: f64) -> f64 {
        let Span { low, high } = self.span;
        let place = low + (self.place(value) + part) * (high - low);
        if self.is_logarithmic { 10f64.powf(place) } else { place }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + (f64::from(to - from) * self.place(*value)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.numbers.iter().map(|(value, _)| *value).collect()
    }

    fn range(&self) -> Range<f64> {
        let (low, high) = self.ends();
        low..high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        let found = self.numbers.iter().find(|(other, _)| other == value);
        found.map_or_else(String::new, |(_, text)| text.clone())
    }
}

/// A change on an axis: "+5 %".
fn signed_percent(change: f64) -> String {
    let sign = if change > 0.0 {
        "+"
    } else if change < 0.0 {
        "-"
    } else {
        ""
    };
    format!("{sign}{}", bare_percent(change.abs()))
}

/// A number with its unit. Below the digits of a cell it has an exponent: the bound that a cell shows would be the same at each
/// place of an axis.
fn label(units: Units, value: f64) -> String {
    let text = number::with_unit(units, value);
    if !text.contains('<') && !text.contains(">-") {
        return shortest(&text);
    }
    let scale = number::Scale::of(units, value);
    format!("{:.0e} {}", value / scale.size(), scale.unit).trim_end().to_owned()
}

/// "20.0 k" as "20 k": trailing zeros mean nothing on an axis.
fn shortest(text: &str) -> String {
    let (number, unit) = text.split_once(' ').map_or((text, ""), |(number, unit)| (number, unit));
    let number = if number.contains('.') && !number.contains('e') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    };
    if unit.is_empty() { number.to_owned() } else { format!("{number} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::COUNT;
    use proptest::prelude::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.numbers.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn numbers_are_round_and_have_their_unit() {
        let axis = |values: [f64; 2], from_zero| Axis::of_amounts(COUNT, values.into_iter(), from_zero).unwrap();
        assert_eq!(texts(&axis([6500.0, 7200.0], false)), ["6.6 k", "6.8 k", "7 k", "7.2 k"]);
        assert_eq!(texts(&axis([6500.0, 7200.0], true)), ["0", "2 k", "4 k", "6 k"]);
        assert_eq!(texts(&axis([900.0, 110_000.0], true)), ["1 k", "3 k", "10 k", "30 k", "100 k"]);
    }

    #[test]
    fn tiny_numbers_are_told_apart() {
        let axis = |values: [f64; 2], from_zero| Axis::of_amounts(COUNT, values.into_iter(), from_zero).unwrap();
        assert_eq!(texts(&axis([1e-9, 8e-7], false)), ["1e-9", "3e-9", "1e-8", "3e-8", "1e-7", "3e-7"]);
        assert_eq!(texts(&axis([0.0, 5e-8], true)), ["0", "1e-8", "2e-8", "3e-8", "4e-8", "5e-8"]);
        assert!(texts(&axis([0.0, -5e-8], true)).iter().all(|text| !text.contains(['<', '>'])));
    }

    #[test]
    fn sizes_that_double_are_equally_far_apart() {
        let sizes = [(4096.0, "4k"), (65_536.0, "64k"), (1_048_576.0, "1m")];
        let axis = Axis::of_named(&sizes.map(|(size, name)| (size, name.to_owned()))).unwrap();
        let places = sizes.map(|(size, _)| axis.map(&size, (0, 1100)));
        assert_eq!(places, [50, 550, 1050]);
        assert_eq!(axis.format_ext(&65_536.0), "64k");
    }

    #[test]
    fn impossible_values_have_no_axis() {
        for high in [f64::MAX, f64::INFINITY, 1e18] {
            assert!(Axis::linear(0.0, high, |value| value.to_string()).is_none());
            assert!(Axis::linear(-high, 0.0, |value| value.to_string()).is_none());
        }
    }

    proptest! {
        #[test]
        fn every_value_has_its_place(one in any::<f64>(), other in any::<f64>(), value in any::<f64>()) {
            for from_zero in [true, false] {
                let axis = Axis::of_amounts(COUNT, [one, other].into_iter(), from_zero);
                if let Some(axis) = axis {
                    prop_assert!(axis.numbers() <= 2 * NUMBERS);
                    prop_assert!((10..=960).contains(&axis.map(&value, (10, 960))));
                }
            }
            let axis = Axis::linear(one.min(other), one.max(other), |value| value.to_string());
            prop_assert!(axis.is_none_or(|axis| (10..=960).contains(&axis.map(&value, (10, 960)))));
        }
    }
}
