//! Charts as data: points, axes and marks. Renderers compute the positions.

use crate::number::Units;

/// The kind of values on an axis.
#[derive(Clone, Debug)]
pub enum Axis {
    /// Amounts; logarithmic if they cover a large range.
    Amount {
        /// Their units.
        units: Units,
        /// Whether the axis starts at 0, so that lengths can be compared.
        from_zero: bool,
    },
    /// Seconds since the beginning, each as long as the others.
    Time,
    /// Named values such as sizes and depths. Logarithmic if they cover a large range.
    Named(Vec<(f64, String)>),
}

#[derive(Clone, Debug, Default)]
pub struct Point {
    /// Its position on the horizontal axis.
    pub x: f64,
    /// Its value.
    pub y: f64,
    /// The ends of its interval.
    pub ends: Option<(f64, f64)>,
    /// Its tooltip; may be empty.
    pub hint: String,
}

impl Point {
    /// A point without an interval.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, ..Self::default() }
    }
}

/// Points with one colour.
#[derive(Clone, Debug)]
pub struct Series {
    /// The subject that determines the colour.
    pub subject: usize,
    /// Whether a line connects them.
    pub joined: bool,
    /// Radius of a dot, in units of a drawing of 960 by 470; 0 for only a line.
    pub dot: u32,
    pub points: Vec<Point>,
}

/// A mark behind the points: a rectangle, or a dashed line if it has no width or no height.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    /// What it covers of the horizontal axis; all of it if `None`.
    pub across: Option<(f64, f64)>,
    /// What it covers of the vertical axis; all of it if `None`.
    pub upright: Option<(f64, f64)>,
}

#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    /// Marks behind the points.
    pub marks: Vec<Mark>,
    pub series: Vec<Series>,
}

impl Chart {
    /// Amounts over seconds.
    pub fn over_time(title: impl Into<String>, units: Units, from_zero: bool, series: Vec<Series>) -> Self {
        Self { title: title.into(), x: Axis::Time, y: Axis::Amount { units, from_zero }, marks: Vec::new(), series }
    }
}

/// Larger changes (by a factor of a thousand) do not determine a scale.
pub const LARGEST: f64 = 1e3;

/// A range of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    pub low: f64,
    pub high: f64,
}

impl Span {
    /// From `low` to `high`.
    pub fn new(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    /// From the lowest to the highest of the values that are known; `None` if none is.
    pub fn range(values: [Option<f64>; 3]) -> Option<(f64, f64)> {
        let known = values.into_iter().flatten().filter(|value| value.is_finite());
        known.map(|value| (value, value)).reduce(|(low, high), (value, _)| (low.min(value), high.max(value)))
    }

    /// The range of most of `ranges` and of ±`least`. A range that reaches this many times as far as a typical one is
    /// left out, because it would squeeze all others; renderers draw arrows to what is outside. `None` if it is empty.
    pub fn of_most(ranges: &[(f64, f64)], least: f64) -> Option<Self> {
        /// The others then have about a tenth of the width.
        const TIMES: f64 = 8.0;
        let reach = |&(low, high): &(f64, f64)| low.abs().max(high.abs());
        let mut reaches: Vec<f64> = ranges.iter().map(reach).filter(|reach| reach.is_finite()).collect();
        reaches.sort_by(f64::total_cmp);
        let typical = reaches.get(reaches.len().saturating_sub(1) / 2)?;
        let limit = (typical.max(least) * TIMES).min(LARGEST);
        let most = || ranges.iter().filter(|range| reach(range) <= limit);
        let low = most().map(|(low, _)| *low).fold(-least, f64::min);
        let high = most().map(|(_, high)| *high).fold(least, f64::max);
        (most().next().is_some() && high > low).then(|| Self::new(low, high))
    }

    /// Fewer steps than this are between the ends of an axis.
    pub const STEPS: usize = 6;

    /// The ends in round steps, and the step: the smallest of 1, 2 and 5 times a power of ten that gives few steps.
    pub fn round_ends(self) -> Option<(f64, f64, f64)> {
        /// A trace of rounding does not add a step.
        const TRACE: f64 = 1e-9;
        let Self { low, high } = self;
        let power = ((high - low) / Self::STEPS as f64).log10().floor() as i32;
        let steps =
            (power..power.saturating_add(3)).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
        let ends = steps.map(|step| ((low / step + TRACE).floor(), (high / step - TRACE).ceil(), step));
        let few = |(first, last, _): &(f64, f64, f64)| last > first && last - first < Self::STEPS as f64;
        ends.into_iter().find(few)
    }

    /// The shortest range with round ends that includes this one. The same if there is none.
    pub fn rounded(self) -> Self {
        self.round_ends().map_or(self, |(first, last, step)| Self::new(first * step, last * step))
    }

    /// The relative position of a number between the beginning and the end, 0 to 1. Returns 0 if it is not a number, or
    /// if the range is empty.
    pub fn fraction(self, value: f64) -> f64 {
        let fraction = (value - self.low) / (self.high - self.low);
        if fraction.is_finite() { fraction.clamp(0.0, 1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_beyond_an_end_are_at_the_end() {
        let span = Span::new(-1.0, 3.0);
        assert_eq!([-2.0, -1.0, 0.0, 3.0, 1e300].map(|value| span.fraction(value)), [0.0, 0.0, 0.25, 1.0, 1.0]);
        assert_eq!(Span::new(1.0, 1.0).fraction(1.0), 0.0);
    }

    #[test]
    fn a_rounded_range_ends_at_round_numbers() {
        let rounded = |low, high| {
            let Span { low, high } = Span::new(low, high).rounded();
            format!("{low:.3} to {high:.3}")
        };
        assert_eq!(rounded(-0.637, 0.352), "-1.000 to 0.500");
        assert_eq!(rounded(-0.03, 58.968), "-20.000 to 60.000");
        assert_eq!(rounded(-0.05, 0.05), "-0.050 to 0.050");
        assert_eq!(rounded(1.0, 1.0), "1.000 to 1.000", "empty");
        assert_eq!(rounded(f64::NEG_INFINITY, 1.0), "-inf to 1.000");
    }

    #[test]
    fn one_outlier_does_not_squeeze_the_others() {
        let most = |ranges: &[(f64, f64)]| Span::of_most(ranges, 0.03);
        let usual = [(-0.08, 0.11), (-0.04, 0.03), (-0.11, 0.09)];
        assert_eq!(most(&usual), Some(Span::new(-0.11, 0.11)));
        assert_eq!(most(&[usual.as_slice(), &[(-0.76, 11.8)]].concat()), Some(Span::new(-0.11, 0.11)));
        assert_eq!(most(&[(-0.01, 0.02), (0.1, 0.2)]), Some(Span::new(-0.03, 0.2)), "within eight margins");
        assert_eq!(most(&[(1.0, 11.8)]), Some(Span::new(-0.03, 11.8)), "alone");
        assert_eq!(most(&[(1e300, f64::INFINITY)]), None);
        assert_eq!(most(&[]), None);
    }

    proptest! {
        #[test]
        fn every_number_has_its_place(low in any::<f64>(), high in any::<f64>(), value in any::<f64>()) {
            prop_assert!((0.0..=1.0).contains(&Span::new(low, high).fraction(value)));
        }
    }
}
