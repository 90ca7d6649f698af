//! Charts as drawings: two axes, what is drawn between them, and what a pointer finds there.
//!
//! plotters lays out and draws; here it is told what. Nothing is computed of the numbers but their place.

use super::axis::Axis;
use super::markup::escape;
use super::svg::{Drawing, Paint};
use crate::document::{Chart, Mark, Point, Series};
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

/// A chart as a figure; nothing when it cannot be drawn.
pub fn figure(chart: &Chart) -> String {
    let mut inside = String::new();
    let Some(hints) = draw(&mut inside, chart) else { return String::new() };
    for ((across, down), text) in hints {
        let text = escape(text);
        let _ = writeln!(
            inside,
            "<circle class=\"hint\" cx=\"{across}\" cy=\"{down}\" r=\"16\"><title>{text}</title></circle>"
        );
    }
    let ((width, height), title, of) = (SIZE, escape(&chart.title), escape(&chart.of));
    let small = if of.is_empty() { String::new() } else { format!(" <small>{of}</small>") };
    format!(
        "<figure><figcaption>{title}{small}</figcaption><svg class=\"chart\" role=\"img\" aria-label=\"{title} {of}\" \
         viewBox=\"0 0 {width} {height}\">\n{inside}</svg></figure>\n"
    )
}

/// Draws, and says where a pointer finds what.
fn draw<'a>(into: &mut String, described: &'a Chart) -> Option<Vec<(BackendCoord, &'a str)>> {
    let (x, y) = Axis::both(described)?;
    let ((left, right), (low, high)) = (x.ends(), y.ends());
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
    let rectangle = |from, to| area.draw(&Rectangle::new([from, to], Paint::Margin.colour().filled()));
    let line = |points: Vec<(f64, f64)>, width, paint: Paint| {
        area.draw(&PathElement::new(points, paint.colour().stroke_width(width)))
    };
    for mark in &described.marks {
        match *mark {
            Mark::Band(from, to) => rectangle((left, from), (right, to)),
            Mark::Column(from, to) => rectangle((from, low), (to, high)),
            Mark::Level(level) => line(vec![(left, level), (right, level)], 2, Paint::Zero),
            Mark::Upright(place) => line(vec![(place, low), (place, high)], 2, Paint::Zero),
        }
        .ok()?;
    }
    for Series { subject, joined, dot, points } in &described.series {
        let paint = Paint::Subject(*subject);
        for Point { x: place, ends, .. } in points {
            let Some((from, to)) = *ends else { continue };
            let (before, after) = (x.beside(*place, -CAP), x.beside(*place, CAP));
            line(vec![(*place, from), (*place, to)], 4, paint).ok()?;
            line(vec![(before, from), (after, from)], 4, paint).ok()?;
            line(vec![(before, to), (after, to)], 4, paint).ok()?;
        }
        let places: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.y)).collect();
        if *joined {
            line(places.clone(), 4, paint).ok()?;
        }
        for place in places.into_iter().filter(|_| *dot > 0) {
            area.draw(&Circle::new(place, *dot, paint.colour().filled())).ok()?;
        }
    }
    let hinted = described.series.iter().flat_map(|series| &series.points).filter(|point| !point.hint.is_empty());
    let hints = hinted.map(|point| (area.map_coordinate(&(point.x, point.y)), point.hint.as_str())).collect();
    root.present().ok()?;
    Some(hints)
}
