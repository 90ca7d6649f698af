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
    /// Changes, as fractions.
    Change,
    /// Seconds from the start.
    Time,
    /// Named values such as sizes and depths. Logarithmic if they cover a large range.
    Named(Vec<(f64, String)>),
    /// Steps of equal width, each with a name: 0, 1, 2…
    Steps(Vec<String>),
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

/// A mark behind the points.
#[derive(Clone, Copy, Debug)]
pub enum Mark {
    /// A band between two values.
    Band(f64, f64),
    /// A band between two positions on the horizontal axis.
    Column(f64, f64),
    /// A horizontal line.
    Level(f64),
    /// A vertical line.
    Upright(f64),
    /// A bar of a histogram from the foot of the chart: its sides, and its height.
    Bar(f64, f64, f64),
    /// A cell of a heat map: from a corner to the opposite one, and how dark it is, from 0 to 1.
    Cell((f64, f64), (f64, f64), f64),
}

impl Mark {
    /// What it covers of the horizontal axis, if the axis must contain it.
    pub fn across(self) -> Option<(f64, f64)> {
        match self {
            Self::Bar(from, to, _) | Self::Cell((from, _), (to, _), _) => Some((from, to)),
            Self::Band(..) | Self::Column(..) | Self::Level(_) | Self::Upright(_) => None,
        }
    }

    /// What it covers of the vertical axis.
    pub fn upright(self) -> Option<(f64, f64)> {
        match self {
            Self::Band(low, high) | Self::Cell((_, low), (_, high), _) => Some((low, high)),
            Self::Level(level) | Self::Bar(_, _, level) => Some((level, level)),
            Self::Column(..) | Self::Upright(_) => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// The part that it covers; may be empty.
    pub of: String,
    pub x: Axis,
    pub y: Axis,
    /// Marks behind the points.
    pub marks: Vec<Mark>,
    pub series: Vec<Series>,
}
