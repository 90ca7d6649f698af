//! Charts as drawings: two axes, the contents, and tooltips.
//!
//! plotters computes the layout and draws. This file computes only positions from the numbers.

use super::axis::Axis;
use super::markup::{element, escape};
use super::svg::{Drawing, Paint};
use crate::document::{Chart, FlameGraph, Mark, Point, Series};
use crate::flame_graph::svg;
use plotters::prelude::*;
use plotters_backend::BackendCoord;
use std::fmt::Write;

/// Size of a drawing in units: two units per screen pixel if two charts are next to each other.
const SIZE: (u32, u32) = (960, 470);
/// Font height, in units, from which plotters computes positions.
const LETTERS: u32 = 24;
/// Width of a letter in a number, at most: "%" and "m" are wider, but no number has only these.
const LETTER: f64 = 13.5;
/// Room on the right for half of the last number.
const RIGHT: u32 = 40;
/// Width of the vertical axis with short numbers: the same for charts that are below each other.
const LEFT: u32 = 104;
/// Room between a number of the vertical axis and the axis.
const TICK: u32 = 20;
/// Height of the numbers of the horizontal axis.
const BELOW: u32 = 48;
/// Half the width of an interval's end marks, as a fraction of the axis.
const CAP: f64 = 0.009;
/// Height of the arrow to an end that is outside the axis, as a fraction of the axis.
const ARROW: f64 = 0.04;

/// A chart as a figure; empty if it cannot be drawn.
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

/// Draws a chart, and returns the positions of tooltips.
fn draw<'a>(into: &mut String, described: &'a Chart) -> Option<Vec<(BackendCoord, &'a str)>> {
    let (x, y) = Axis::both(described)?;
    let beside = LEFT.max((y.widest() as f64 * LETTER) as u32 + TICK);
    let x = x.with_room(f64::from(SIZE.0.saturating_sub(beside + RIGHT)), LETTER);
    let ((left, right), (low, high)) = (x.ends(), y.ends());
    let root = Drawing::new(into, SIZE).into_drawing_area();
    let mut builder = ChartBuilder::on(&root);
    builder.margin_top(14).margin_right(RIGHT).x_label_area_size(BELOW).y_label_area_size(beside);
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
    let inside = |value: f64| (low..=high).contains(&value);
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
        for Point { x: place, y: value, ends, .. } in points {
            let (before, after) = (x.beside(*place, -CAP), x.beside(*place, CAP));
            if let Some((from, to)) = *ends {
                line(vec![(*place, from), (*place, to)], 4, paint).ok()?;
                for end in [from, to].into_iter().filter(|end| inside(*end)) {
                    line(vec![(before, end), (after, end)], 4, paint).ok()?;
                }
            }
            // What is outside the axis is an arrow at its edge.
            let (least, most) = ends.unwrap_or((*value, *value));
            let outside = [(least < low, low, ARROW), (most > high, high, -ARROW)];
            for (_, edge, inwards) in outside.into_iter().filter(|(is_outside, ..)| *is_outside) {
                let base = y.beside(edge, inwards);
                let arrow = vec![(before, base), (*place, edge), (after, base)];
                area.draw(&Polygon::new(arrow, paint.colour().filled())).ok()?;
            }
        }
        let places: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.y)).collect();
        if *joined {
            line(places.clone(), 4, paint).ok()?;
        }
        for place in places.into_iter().filter(|(_, value)| *dot > 0 && inside(*value)) {
            area.draw(&Circle::new(place, *dot, paint.colour().filled())).ok()?;
        }
    }
    let hinted = described.series.iter().flat_map(|series| &series.points).filter(|point| !point.hint.is_empty());
    let hints = hinted.map(|point| (area.map_coordinate(&(point.x, point.y)), point.hint.as_str())).collect();
    root.present().ok()?;
    Some(hints)
}

/// An addition to the content security policy, which such a picture inherits. Everything in it is of iotoll or inferno, or escaped.
pub const POLICY: &str = "; frame-src data:; script-src 'unsafe-inline'";

pub fn flame_graph(graph: &FlameGraph) -> String {
    let Some(svg) = svg(graph) else { return String::new() };
    // inferno leaves out calls that are too narrow to be seen, so only it knows the height.
    let height = svg.split_once("height=\"").and_then(|(_, rest)| rest.split('"').next()?.parse::<f64>().ok());
    let frame = format!(
        "<iframe class=\"flame\" title=\"{}\" style=\"height:{}px\" src=\"data:image/svg+xml,{}\"></iframe>",
        escape(&graph.title),
        height.unwrap_or(600.0),
        in_address(&svg)
    );
    element("div", "flame", &frame) + "\n"
}

/// Text as a part of an address: what ends an attribute or begins a fragment is written in hexadecimal digits.
fn in_address(text: &str) -> String {
    let mut address = String::with_capacity(text.len() * 5 / 4);
    for byte in text.bytes() {
        match byte {
            b'%' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'&' | b'\\' | 0..=b' ' | 127.. => {
                address += &format!("%{byte:02X}");
            }
            _ => address.push(char::from(byte)),
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Axis, Calls};

    #[test]
    fn an_end_outside_the_axis_is_an_arrow() {
        let point = |x: usize, y, low, high| Point { x: x as f64, y, ends: Some((low, high)), hint: String::new() };
        let points = vec![
            point(0, 0.02, -0.01, 0.05),
            point(1, 0.03, 0.0, 0.06),
            point(2, 0.1, -0.7, 9.0),
            point(3, 3.0, 2.0, 4.0),
        ];
        let chart = Chart {
            title: "change".to_owned(),
            of: String::new(),
            x: Axis::Steps(["p50", "p90", "p99", "p99.9"].map(str::to_owned).to_vec()),
            y: Axis::Change,
            marks: vec![Mark::Band(-0.03, 0.03), Mark::Level(0.0)],
            series: vec![Series { subject: 1, joined: true, dot: 9, points }],
        };
        let drawn = figure(&chart);
        assert_eq!(drawn.matches("<polygon class=\"f subject1\"").count(), 3, "{drawn}");
        assert!(drawn.contains(">+6 %<") && !drawn.contains(">+400 %<"), "{drawn}");
    }

    #[test]
    fn a_long_number_beside_the_vertical_axis_has_room() {
        for (change, number) in [(0.05, "+5 %"), (59.0, "+6000 %")] {
            let point = Point { x: 0.0, y: change, ends: None, hint: String::new() };
            let chart = Chart {
                title: "change".to_owned(),
                of: String::new(),
                x: Axis::Steps(vec!["4k".to_owned()]),
                y: Axis::Change,
                marks: Vec::new(),
                series: vec![Series { subject: 1, joined: true, dot: 9, points: vec![point] }],
            };
            let drawn = figure(&chart);
            // The number ends at this place, and its letters are before it.
            let text = drawn.lines().find(|line| line.contains(&format!(">{number}<"))).unwrap_or(&drawn);
            let place = text.split(" x=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
            let letters = number.chars().count() as f64 * LETTER;
            assert!(place.parse::<f64>().is_ok_and(|place| place >= letters), "{number}: {text}");
        }
    }

    fn graph(calls: &str) -> FlameGraph {
        let calls = vec![Calls { calls: calls.to_owned(), cost: 5.0, before: None }];
        FlameGraph { title: "<b>".to_owned(), subtitle: None, what: "cycles".to_owned(), calls }
    }

    #[test]
    fn names_cannot_leave_the_picture() {
        let drawn = flame_graph(&graph("a;\"><script>x</script>"));
        assert!(drawn.contains("title=\"&lt;b&gt;\""), "{drawn}");
        assert!(!drawn.contains("<script") && !drawn.contains("\"><script"), "{drawn}");
        assert_eq!(drawn.matches('"').count(), 10, "{drawn}");
        assert_eq!(in_address("a b<'\u{e9}#"), "a%20b%3C%27%C3%A9%23");
    }

    #[test]
    fn without_calls_nothing_is_drawn() {
        assert_eq!(flame_graph(&FlameGraph::default()), "");
    }
}
