//! An axis of a chart: the positions of values, and the numbers along it.

use crate::document::{Chart, Point, Span, chart};
use crate::number::{self, Units, bare_percent};
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::prelude::Ranged;
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
        Self::of(&chart.x, points().map(|point| point.x).collect()).zip(Self::of(&chart.y, up))
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

    /// From a round number at or below `low` to one at or above `high`, with the round numbers between them.
    fn linear(low: f64, high: f64, text: impl Fn(f64) -> String) -> Option<Self> {
        if ![low, high].iter().all(|end| end.abs() < DRAWABLE.end) {
            return None;
        }
        let size = high.abs().max(low.abs());
        // Values that are as good as equal have some room around them. One at 0 stays there.
        let room = if high - low > size * NARROWEST { 0.0 } else { size.max(NARROWEST) * 0.1 };
        let (low, high) = (if low == 0.0 { 0.0 } else { low - room }, high + room);
        let (first, last, step) = Span::new(low, high).round_ends()?;
        let count = (last - first).round() as usize;
        let numbers = (0..=count).map(|place| (first + place as f64) * step).map(|number| (number, text(number)));
        Some(Self { span: Span::new(first * step, last * step), numbers: numbers.collect(), is_logarithmic: false })
    }

    /// Both ends are above 0. Numbers are at 1, 2 and 5 of each power of ten, or at fewer of them, and so are the ends.
    fn logarithmic(low: f64, high: f64, units: Units) -> Self {
        /// A trace of rounding does not make the axis longer.
        const TRACE: f64 = 1e-9;
        let (least, most) = (low.log10() + TRACE, high.log10() - TRACE);
        let powers = || (least.floor() as i32)..=(most.ceil() as i32);
        let enclosing = |steps: &[f64]| {
            let all = powers().flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
            let all: Vec<f64> = all.collect();
            let from = all.iter().rposition(|number| number.log10() <= least).unwrap_or(0);
            let to = all.iter().position(|number| number.log10() >= most).unwrap_or(all.len());
            all.into_iter().take(to + 1).skip(from).collect::<Vec<_>>()
        };
        let choices: [&[f64]; 2] = [&[1.0, 2.0, 5.0], &[1.0, 3.0]];
        let numbers = choices.iter().map(|steps| enclosing(steps)).find(|numbers| numbers.len() <= NUMBERS + 1);
        let mut numbers = numbers.unwrap_or_else(|| enclosing(&[1.0]));
        // If there are too many powers of ten, uses every second, third… of them, up to one at or above the greatest value.
        let step = (numbers.len() - 1).div_ceil(NUMBERS).max(1);
        while let Some(last) = numbers.last().copied().filter(|_| (numbers.len() - 1) % step > 0) {
            numbers.push(last * 10.0);
        }
        let numbers: Vec<f64> = numbers.into_iter().step_by(step).collect();
        let (first, last) = (numbers.first().copied().unwrap_or(low), numbers.last().copied().unwrap_or(high));
        let numbers = numbers.into_iter().map(|number| (number, label(units, number))).collect();
        Self { span: Span::new(first.log10(), last.log10()), numbers, is_logarithmic: true }
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

    /// Letters of its longest number.
    pub fn widest(&self) -> usize {
        self.numbers.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0)
    }

    /// How many numbers it has.
    pub fn numbers(&self) -> usize {
        self.numbers.len()
    }

    /// The same with only those numbers that do not touch each other on a horizontal axis of this length, whose letters have this
    /// mean width. The last number stays, then the first ones do.
    pub fn with_room(mut self, length: f64, letter: f64) -> Self {
        // A point is half as wide as a letter.
        let letters = |text: &str| text.chars().map(|letter| if letter == '.' { 0.5 } else { 1.0 }).sum::<f64>();
        let reach = |(value, text): &(f64, String)| {
            let (middle, half) = (self.place(*value) * length, letters(text) * letter / 2.0);
            // At least a letter between two.
            (middle - half, middle + half + letter)
        };
        let reaches: Vec<(f64, f64)> = self.numbers.iter().map(reach).collect();
        let last = reaches.last().copied().unwrap_or_default();
        let (mut free, count) = (f64::NEG_INFINITY, reaches.len());
        let mut keep = reaches.into_iter().enumerate().map(|(place, (from, to))| {
            let is_kept = place + 1 == count || from >= free && to <= last.0;
            free = if is_kept { to } else { free };
            is_kept
        });
        self.numbers.retain(|_| keep.next().unwrap_or(false));
        self
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

/// "20.0 k" as "20 k", and "1.00e-6" as "1e-6": trailing zeros mean nothing on an axis.
fn shortest(text: &str) -> String {
    let end = text.find(['e', ' ']).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number}{rest}")
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
        assert_eq!(texts(&axis([6500.0, 7200.0], false)), ["6.4 k", "6.6 k", "6.8 k", "7 k", "7.2 k"]);
        assert_eq!(texts(&axis([6500.0, 7200.0], true)), ["0", "2 k", "4 k", "6 k", "8 k"]);
        assert_eq!(texts(&axis([900.0, 110_000.0], true)), ["300", "1 k", "3 k", "10 k", "30 k", "100 k", "300 k"]);
    }

    #[test]
    fn both_ends_are_round_numbers_with_a_label() {
        let ends = |axis: &Axis| {
            let (first, last) = (&axis.numbers[0], &axis.numbers[axis.numbers() - 1]);
            let (low, high) = axis.ends();
            assert!((first.0 - low).abs() <= high * 1e-12 && (last.0 - high).abs() <= high * 1e-12, "{axis:?}");
            format!("{} to {}", first.1, last.1)
        };
        let amounts = |values: [f64; 2]| ends(&Axis::of_amounts(COUNT, values.into_iter(), true).unwrap());
        assert_eq!(amounts([281_300.0, 287_654.0]), "0 to 300 k");
        assert_eq!(amounts([0.31, 0.757]), "0 to 0.8");
        assert_eq!(amounts([2.0, 20_000.0]), "1 to 100 k");
        assert_eq!(amounts([1.0, 1000.0]), "1 to 1 k", "round values are the ends");
        let change = Axis::of(&chart::Axis::Change, vec![-0.113, 0.057]).unwrap();
        assert_eq!(ends(&change), "-15 % to +10 %");
        let time = |last| ends(&Axis::of(&chart::Axis::Time, vec![0.1, last]).unwrap());
        assert_eq!(
            (time(9.6).as_str(), time(27.0).as_str(), time(10.0).as_str()),
            ("0 s to 10 s", "0 s to 30 s", "0 s to 10 s")
        );
        let one = Axis::of_amounts(COUNT, [7.0].into_iter(), false).unwrap();
        assert!(one.ends().0 < 7.0 && one.ends().1 > 7.0, "{one:?}");
    }

    #[test]
    fn tiny_numbers_are_told_apart() {
        let axis = |values: [f64; 2], from_zero| Axis::of_amounts(COUNT, values.into_iter(), from_zero).unwrap();
        assert_eq!(texts(&axis([1e-9, 8e-7], false)), ["1e-9", "3e-9", "1e-8", "3e-8", "1e-7", "3e-7", "1e-6"]);
        assert_eq!(texts(&axis([0.0, 5e-8], true)), ["0", "1e-8", "2e-8", "3e-8", "4e-8", "5e-8"]);
        assert!(texts(&axis([0.0, -5e-8], true)).iter().all(|text| !text.contains(['<', '>'])));
    }

    #[test]
    fn numbers_that_would_touch_are_left_out() {
        let names: Vec<String> = ["p50", "p90", "p99", "p99.9", "p99.99"].map(str::to_owned).to_vec();
        let axis = |length| Axis::of_steps(&names).unwrap().with_room(length, 12.0);
        assert_eq!(texts(&axis(832.0)), ["p50", "p90", "p99", "p99.9", "p99.99"]);
        assert_eq!(texts(&axis(350.0)), ["p50", "p90", "p99", "p99.99"], "the last one stays");
        assert_eq!(texts(&axis(10.0)), ["p99.99"]);
        assert_eq!(axis(350.0).ends(), (-0.5, 4.5), "no point moves");
    }

    #[test]
    fn all_percentiles_of_a_comparison_have_their_number() {
        let names = ["5", "10", "25", "50", "75", "90", "95", "99", "99.5", "99.9", "99.99"].map(str::to_owned);
        let axis = Axis::of_steps(&names).unwrap().with_room(816.0, 13.5);
        assert_eq!(texts(&axis), names);
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
