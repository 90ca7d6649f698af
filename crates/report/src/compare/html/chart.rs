//! Charts: two axes, what is drawn between them, and what a pointer finds there.
//!
//! plotters lays out and draws; here it is told in our terms. Nothing is computed of the numbers but their place.

use super::axis::Axis;
use super::markup::escape;
use super::svg::{Drawing, Paint};
use plotters::prelude::*;
use plotters_backend::BackendCoord;
use std::fmt::Write;

/// Units of a drawing: two to a point of the screen where two charts stand side by side.
const SIZE: (u32, u32) = (960, 470);
/// Height of letters, in units, from which plotters works out where they go.
const LETTERS: u32 = 24;
/// Room for the numbers of the vertical axis.
const LEFT: u32 = 104;
/// Room for those of the horizontal one.
const BELOW: u32 = 48;
/// Half the width of an interval's ends, as a part of the axis.
const CAP: f64 = 0.009;

/// Something drawn between the axes.
#[derive(Clone, Debug)]
pub enum Shape {
    /// The stretch between two heights.
    Band(f64, f64, Paint),
    /// The stretch between two places of the horizontal axis.
    Column(f64, f64, Paint),
    /// A line at a height.
    Level(f64, Paint),
    /// A line at a place of the horizontal axis.
    Upright(f64, Paint),
    /// Points joined by lines.
    Curve(Vec<(f64, f64)>, Paint),
    /// Points, with their radius.
    Dots(Vec<(f64, f64)>, u32, Paint),
    /// An interval: place, lower and upper end.
    Interval(f64, f64, f64, Paint),
}

/// What a pointer finds at a point.
pub struct Hint {
    /// The point.
    pub at: (f64, f64),
    /// The text.
    pub text: String,
}

/// A chart as an SVG element; nothing when it cannot be drawn.
pub fn chart(about: &str, x: &Axis, y: &Axis, shapes: &[Shape], hints: &[Hint]) -> String {
    let mut inside = String::new();
    let Some(points) = draw(&mut inside, x, y, shapes, hints) else { return String::new() };
    for ((across, down), hint) in points.iter().zip(hints) {
        let text = escape(&hint.text);
        let _ = writeln!(
            inside,
            "<circle class=\"hint\" cx=\"{across}\" cy=\"{down}\" r=\"16\"><title>{text}</title></circle>"
        );
    }
    let ((width, height), about) = (SIZE, escape(about));
    format!(
        "<svg class=\"chart\" role=\"img\" aria-label=\"{about}\" viewBox=\"0 0 {width} {height}\">\n{inside}</svg>"
    )
}

fn draw(into: &mut String, x: &Axis, y: &Axis, shapes: &[Shape], hints: &[Hint]) -> Option<Vec<BackendCoord>> {
    let root = Drawing::new(into, SIZE).into_drawing_area();
    let mut builder = ChartBuilder::on(&root);
    builder.margin_top(14).margin_right(24).x_label_area_size(BELOW).y_label_area_size(LEFT);
    let mut chart = builder.build_cartesian_2d(x.clone(), y.clone()).ok()?;
    let letters = ("sans-serif", LETTERS).into_font().color(&Paint::Axis.colour());
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(Paint::Grid.colour())
        .axis_style(Paint::Grid.colour())
        .set_all_tick_mark_size(8)
        .x_labels(x.numbers())
        .y_labels(y.numbers())
        .label_style(letters)
        .draw()
        .ok()?;
    let area = chart.plotting_area();
    let ((left, right), (low, high)) = (x.ends(), y.ends());
    let rectangle = |from, to, paint: &Paint| area.draw(&Rectangle::new([from, to], paint.colour().filled()));
    let line = |points: Vec<(f64, f64)>, width, paint: &Paint| {
        area.draw(&PathElement::new(points, paint.colour().stroke_width(width)))
    };
    for shape in shapes {
        match shape {
            Shape::Band(from, to, paint) => rectangle((left, *from), (right, *to), paint),
            Shape::Column(from, to, paint) => rectangle((*from, low), (*to, high), paint),
            Shape::Level(level, paint) => line(vec![(left, *level), (right, *level)], 2, paint),
            Shape::Upright(place, paint) => line(vec![(*place, low), (*place, high)], 2, paint),
            Shape::Curve(points, paint) => line(points.clone(), 4, paint),
            Shape::Dots(points, radius, paint) => {
                let mut dots = points.iter().map(|point| Circle::new(*point, *radius, paint.colour().filled()));
                dots.try_for_each(|dot| area.draw(&dot))
            }
            Shape::Interval(place, from, to, paint) => {
                let (before, after) = (x.beside(*place, -CAP), x.beside(*place, CAP));
                line(vec![(*place, *from), (*place, *to)], 4, paint)
                    .and_then(|()| line(vec![(before, *from), (after, *from)], 4, paint))
                    .and_then(|()| line(vec![(before, *to), (after, *to)], 4, paint))
            }
        }
        .ok()?;
    }
    let points = hints.iter().map(|hint| area.map_coordinate(&hint.at)).collect();
    root.present().ok()?;
    Some(points)
}
