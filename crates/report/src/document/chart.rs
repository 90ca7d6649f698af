//! Charts as data: which points there are, on which axes, and what is marked. Where they stand is the renderer's matter.

use crate::number::Units;

/// What the values of an axis are.
#[derive(Clone, Debug)]
pub enum Axis {
    /// Amounts; logarithmic where they are far apart.
    Amount {
        /// What they are counted in.
        units: Units,
        /// Whether lengths are compared, and not only places.
        from_zero: bool,
    },
    /// Changes, as fractions.
    Change,
    /// Seconds from a beginning.
    Time,
    /// Values that have names: sizes, depths. Logarithmic where they are far apart.
    Named(Vec<(f64, String)>),
    /// Steps of equal width, each with a name: 0, 1, 2…
    Steps(Vec<String>),
}

/// One point.
#[derive(Clone, Debug, Default)]
pub struct Point {
    /// Where it stands.
    pub x: f64,
    /// Its value.
    pub y: f64,
    /// The ends of its interval.
    pub ends: Option<(f64, f64)>,
    /// What a pointer finds there; may be empty.
    pub hint: String,
}

impl Point {
    /// Without an interval.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, ..Self::default() }
    }
}

/// Points of one colour.
#[derive(Clone, Debug)]
pub struct Series {
    /// The subject whose colour it has.
    pub subject: usize,
    /// Whether a line joins them.
    pub joined: bool,
    /// Radius of a point's dot, in units of a drawing of 960 by 470; 0 for a line alone.
    pub dot: u32,
    /// The points.
    pub points: Vec<Point>,
}

/// What is marked behind the points.
#[derive(Clone, Copy, Debug)]
pub enum Mark {
    /// The stretch between two heights.
    Band(f64, f64),
    /// The stretch between two places of the horizontal axis.
    Column(f64, f64),
    /// A line at a height.
    Level(f64),
    /// A line at a place of the horizontal axis.
    Upright(f64),
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What is drawn.
    pub title: String,
    /// Of which part; may be empty.
    pub of: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical one.
    pub y: Axis,
    /// Behind the points.
    pub marks: Vec<Mark>,
    /// The points.
    pub series: Vec<Series>,
}
