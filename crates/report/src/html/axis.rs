//! An axis of a chart: the positions of values, and the numbers along it.

use crate::document::{Span, chart};
use crate::number::{self, SECONDS, Units};
use std::ops::Range;

/// Maximum number of numbers on an axis.
const NUMBERS: usize = Span::STEPS;
/// Minimum ratio of the values for a logarithmic axis.
const SPREAD: f64 = 12.0;
/// The same for named values, because sizes usually double.
const NAMED_SPREAD: f64 = 4.0;
/// A smaller difference of two values, as a part of the larger one, has no round numbers in it.
const NARROWEST: f64 = 1e-9;
/// Values outside the range of any measurement are not drawn.
const DRAWABLE: Range<f64> = 1e-12..1e18;

/// An axis: its ends, in positions, and its numbers.
#[derive(Clone, Debug)]
pub struct Axis {
    span: Span,
    pub numbers: Vec<(f64, String)>,
    is_logarithmic: bool,
}

/// The least and the greatest of the values; `None` if one has no position, or there is none.
fn range(values: &[f64]) -> Option<(f64, f64)> {
    let drawable = |value: &f64| *value == 0.0 || DRAWABLE.contains(&value.abs());
    let range = values.iter().map(|value| (*value, *value));
    range.reduce(|(low, high), (value, _)| (low.min(value), high.max(value))).filter(|_| values.iter().all(drawable))
}

impl Axis {
    /// The axis that shows `values`; `None` if one of them has no position.
    pub fn of(axis: &chart::Axis, values: &[f64]) -> Option<Self> {
        match axis {
            chart::Axis::Amount { units, from_zero } => Self::of_amounts(units, values, *from_zero),
            chart::Axis::Time => Self::in_units(SECONDS, 0.0, range(values)?.1),
            chart::Axis::Named(names) => Self::of_named(names),
        }
    }

    /// Logarithmic if the values cover a large range. `from_zero` says whether lengths are compared.
    fn of_amounts(units: Units, values: &[f64], from_zero: bool) -> Option<Self> {
        let (low, high) = range(values)?;
        if low > 0.0 && high > low * SPREAD {
            return Some(Self::logarithmic(low, high, units));
        }
        Self::in_units(units, if from_zero { low.min(0.0) } else { low }, high)
    }

    fn in_units(units: Units, low: f64, high: f64) -> Option<Self> {
        // Numbers are round in their unit: 64 KiB, not 62.5.
        let size = number::Scale::of(units, high.abs().max(low.abs())).size();
        let text = |value: f64| if value == 0.0 { "0".to_owned() } else { label(units, value * size) };
        let mut axis = Self::linear(low / size, high / size, text)?;
        axis.numbers.iter_mut().for_each(|(number, _)| *number *= size);
        Some(Self { span: Span::new(axis.span.low * size, axis.span.high * size), ..axis })
    }

    /// From a round number at or below `low` to one at or above `high`, with the round numbers between them.
    fn linear(low: f64, high: f64, text: impl Fn(f64) -> String) -> Option<Self> {
        let size = high.abs().max(low.abs());
        // Values that are as good as equal have some room around them. One at 0 stays there.
        let room = if high - low > size * NARROWEST { 0.0 } else { size.max(NARROWEST) * 0.1 };
        let (low, high) = (if low == 0.0 { 0.0 } else { low - room }, high + room);
        let (first, last, step) = Span::new(low, high).round_ends()?;
        let count = (last - first).round() as usize;
        let numbers = (0..=count).map(|place| (first + place as f64) * step).map(|number| (number, text(number)));
        Some(Self { span: Span::new(first * step, last * step), numbers: numbers.collect(), is_logarithmic: false })
    }

    /// Both ends are above 0. Numbers and ends are powers of ten, or every second, third… of them; of few, also 2 and 5 times them.
    fn logarithmic(low: f64, high: f64, units: Units) -> Self {
        /// A trace of rounding does not make the axis longer.
        const TRACE: f64 = 1e-9;
        let (first, last) = ((low.log10() + TRACE).floor() as i32, (high.log10() - TRACE).ceil() as i32);
        let step = (last.abs_diff(first) as usize).div_ceil(NUMBERS).max(1);
        let digits: &[f64] = if last - first <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let all = (first..=last).step_by(step).flat_map(|power| digits.iter().map(move |it| it * 10f64.powi(power)));
        let numbers = all.filter(|number| number.log10() <= f64::from(last) + TRACE);
        let numbers = numbers.map(|number| (number, label(units, number))).collect();
        Self { span: Span::new(f64::from(first), f64::from(last)), numbers, is_logarithmic: true }
    }

    /// An axis with a number for each named value (sizes, depths). Logarithmic if they cover a large range.
    fn of_named(values: &[(f64, String)]) -> Option<Self> {
        let (low, high) = range(&values.iter().map(|(value, _)| *value).collect::<Vec<_>>())?;
        let is_logarithmic = low > 0.0 && high >= low * NAMED_SPREAD;
        let (low, high) = if is_logarithmic { (low.log10(), high.log10()) } else { (low, high) };
        let room = if high > low { (high - low) * 0.05 } else { 1.0 };
        Some(Self { span: Span::new(low - room, high + room), numbers: values.to_vec(), is_logarithmic })
    }

    /// Letters of its longest number.
    pub fn widest(&self) -> usize {
        self.numbers.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0)
    }

    /// The position of a value, between 0 and 1.
    pub fn place(&self, value: f64) -> f64 {
        let value = if self.is_logarithmic { value.max(f64::MIN_POSITIVE).log10() } else { value };
        self.span.fraction(value.clamp(-f64::MAX, f64::MAX))
    }
}

/// A number with its unit: "20 k" for "20.0 k", because trailing zeros mean nothing on an axis. Below the digits of a cell it has an
/// exponent.
fn label(units: Units, value: f64) -> String {
    let scale = number::Scale::of(units, value);
    let number = scale.cell(value);
    let number = match number.contains(['<', '>', 'e']) {
        true => format!("{:.0e}", value / scale.size()),
        false if number.contains('.') => number.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => number,
    };
    format!("{number} {}", scale.unit).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::{BYTES, COUNT, PERCENT};
    use proptest::prelude::*;

    fn texts(units: Units, values: [f64; 2], from_zero: bool) -> Vec<String> {
        let axis = Axis::of_amounts(units, &values, from_zero).unwrap();
        for end in [values[0].min(values[1]), values[0].max(values[1])] {
            assert!((0.0..=1.0).contains(&axis.place(end)), "{axis:?}");
        }
        axis.numbers.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn numbers_are_round_and_few() {
        assert_eq!(texts(COUNT, [6500.0, 7200.0], false), ["6.4 k", "6.6 k", "6.8 k", "7 k", "7.2 k"]);
        assert_eq!(texts(COUNT, [6500.0, 7200.0], true), ["0", "2 k", "4 k", "6 k", "8 k"]);
        assert_eq!(texts(COUNT, [900.0, 110_000.0], true), ["100", "1 k", "10 k", "100 k", "1 M"]);
        assert_eq!(
            texts(COUNT, [1.0, 100.0], true),
            ["1", "2", "5", "10", "20", "50", "100"],
            "round values are the ends"
        );
        assert_eq!(texts(BYTES, [0.0, 262_144.0], true), ["0", "100 KiB", "200 KiB", "300 KiB"]);
        assert_eq!(texts(PERCENT, [-0.113, 0.057], true), ["-15 %", "-10 %", "-5 %", "0", "5 %", "10 %"]);
        assert_eq!(texts(SECONDS, [0.1, 9.6], true), ["100 ms", "200 ms", "500 ms", "1 s", "2 s", "5 s", "10 s"]);
        assert_eq!(texts(SECONDS, [1.0, 9.6], true), ["0", "2 s", "4 s", "6 s", "8 s", "10 s"]);
        assert_eq!(texts(COUNT, [0.0, 5e-8], true), ["0", "1e-8", "2e-8", "3e-8", "4e-8", "5e-8"], "told apart");
        assert!(texts(COUNT, [7.0, 7.0], false).len() > 1, "one value has room around it");
    }

    #[test]
    fn a_second_is_as_long_as_any_other() {
        let axis = Axis::of(&chart::Axis::Time, &[0.05, 9.6]).unwrap();
        assert_eq!([0.0, 2.5, 5.0, 10.0].map(|time| axis.place(time)), [0.0, 0.25, 0.5, 1.0]);
    }

    #[test]
    fn sizes_that_double_are_equally_far_apart() {
        let sizes = [(4096.0, "4k"), (65_536.0, "64k"), (1_048_576.0, "1m")];
        let axis = Axis::of_named(&sizes.map(|(size, name)| (size, name.to_owned()))).unwrap();
        let places = sizes.map(|(size, _)| (axis.place(size) * 1100.0).round());
        assert_eq!(places, [50.0, 550.0, 1050.0]);
    }

    proptest! {
        #[test]
        fn every_value_has_its_place(one in any::<f64>(), other in any::<f64>(), value in any::<f64>()) {
            for from_zero in [true, false] {
                let axis = Axis::of_amounts(COUNT, &[one, other], from_zero);
                prop_assert!(axis.is_some() || !DRAWABLE.contains(&one.abs()) || !DRAWABLE.contains(&other.abs()));
                if let Some(axis) = axis {
                    prop_assert!(axis.numbers.len() <= 2 * NUMBERS && (0.0..=1.0).contains(&axis.place(value)));
                }
            }
        }
    }
}
