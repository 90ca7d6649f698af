//! Charts as drawings in SVG: two axes, the contents, and tooltips. Colours are classes of the style sheet.

use super::axis::Axis;
use super::{element, escape, subject};
use crate::document::{Chart, Mark, Point};
use std::fmt::Write;

/// Size of a drawing in units: two units per screen pixel if two charts are next to each other.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 470.0;
/// Room above, on the right for half of the last number, and for the numbers of the horizontal axis.
const TOP: f64 = 14.0;
const RIGHT: f64 = WIDTH - 40.0;
const FOOT: f64 = HEIGHT - 48.0;
/// Width of a letter in a number, at most: "%" and "m" are wider, but no number has only these.
const LETTER: f64 = 13.5;
/// Least width of the vertical axis: the same for charts that are below each other.
const LEFT: f64 = 104.0;
/// Room between a number of the vertical axis and the axis.
const TICK: f64 = 14.0;
/// Half the width of an interval's end marks.
const CAP: f64 = 8.0;

/// A chart as a figure; empty if it cannot be drawn.
pub fn figure(chart: &Chart) -> String {
    let Some(inside) = draw(chart) else { return String::new() };
    let title = escape(&chart.title);
    format!(
        "<figure><figcaption>{title}</figcaption><svg class=\"chart\" role=\"img\" aria-label=\"{title}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\">\n{inside}</svg></figure>\n"
    )
}

fn draw(chart: &Chart) -> Option<String> {
    let points = || chart.series.iter().flat_map(|series| &series.points);
    let ends = |of: fn(&Mark) -> Option<(f64, f64)>| {
        chart.marks.iter().filter_map(of).flat_map(<[f64; 2]>::from).collect::<Vec<f64>>()
    };
    let across: Vec<f64> = points().map(|point| point.x).chain(ends(|mark| mark.across)).collect();
    let range = |point: &Point| [Some(point.y), point.ends.map(|ends| ends.0), point.ends.map(|ends| ends.1)];
    let upright: Vec<f64> = points().flat_map(range).flatten().chain(ends(|mark| mark.upright)).collect();
    let (horizontal, vertical) = (Axis::of(&chart.x, &across)?, Axis::of(&chart.y, &upright)?);
    let left = LEFT.max(vertical.widest() as f64 * LETTER + TICK + 6.0);
    let x = |value: f64| (left + horizontal.place(value) * (RIGHT - left)).round();
    let y = |value: f64| (FOOT - vertical.place(value) * (FOOT - TOP)).round();
    let mut svg = String::new();
    // Writing to a string does not fail.
    for (value, text) in &vertical.numbers {
        let (at, text) = (y(*value), escape(text));
        let _ = writeln!(svg, "<path class=\"s grid\" d=\"M{left},{at}H{RIGHT}\"/>");
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{at}\" dy=\"0.35em\" text-anchor=\"end\">{text}</text>", left - TICK);
    }
    // Of numbers that would touch each other, only every second, third… is written.
    let room = (horizontal.widest() + 1) as f64 * LETTER * horizontal.numbers.len() as f64;
    for (value, text) in horizontal.numbers.iter().step_by((room / (RIGHT - left)).ceil().max(1.0) as usize) {
        let (at, text, below) = (x(*value), escape(text), FOOT + 34.0);
        let _ = writeln!(svg, "<text x=\"{at}\" y=\"{below}\" text-anchor=\"middle\">{text}</text>");
    }
    for Mark { across, upright } in &chart.marks {
        let (from, to) = across.map_or((left, RIGHT), |(from, to)| (x(from), x(to)));
        let (foot, top) = upright.map_or((FOOT, TOP), |(low, high)| (y(low), y(high)));
        let _ = match from == to || foot == top {
            true => writeln!(svg, "<path class=\"s zero\" stroke-width=\"2\" d=\"M{from},{foot}L{to},{top}\"/>"),
            false => writeln!(svg, "<path class=\"f margin\" d=\"M{from},{top}H{to}V{foot}H{from}z\"/>"),
        };
    }
    for series in &chart.series {
        let (mut line, mut dots, mut ends) = (String::new(), String::new(), String::new());
        for point in &series.points {
            let (at, value) = (x(point.x), y(point.y));
            let _ = write!(line, "{}{at},{value}", if line.is_empty() { 'M' } else { 'L' });
            // A line of zero length with round ends is a dot.
            let _ = write!(dots, "M{at},{value}h0");
            if let Some((low, high)) = point.ends.map(|(low, high)| (y(low), y(high))) {
                let (from, to) = (at - CAP, at + CAP);
                let _ = write!(ends, "M{at},{low}V{high}M{from},{low}H{to}M{from},{high}H{to}");
            }
        }
        let lines =
            [(series.joined, line, "s", 4), (true, ends, "s", 4), (series.dot > 0, dots, "dots", series.dot * 2)];
        for (_, path, class, width) in lines.into_iter().filter(|(is_drawn, path, ..)| *is_drawn && !path.is_empty()) {
            let subject = subject(series.subject);
            let _ = writeln!(svg, "<path class=\"{class} {subject}\" stroke-width=\"{width}\" d=\"{path}\"/>");
        }
    }
    for point in points().filter(|point| !point.hint.is_empty()) {
        let (at, value, text) = (x(point.x), y(point.y), escape(&point.hint));
        let title = element("title", "", &text);
        let _ = writeln!(svg, "<circle class=\"hint\" cx=\"{at}\" cy=\"{value}\" r=\"16\">{title}</circle>");
    }
    Some(svg)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Axis, Series};
    use crate::number::COUNT;

    #[test]
    fn a_chart_has_its_numbers_marks_and_points_in_place() {
        let point = Point { ends: Some((0.0, 2e6)), hint: "<8>".to_owned(), ..Point::new(1.0, 1e6) };
        let mark = |upright| Mark { upright: Some(upright), ..Mark::default() };
        let chart = Chart {
            title: "rate".to_owned(),
            x: Axis::Named(vec![(0.0, "4k".to_owned()), (1.0, "8k".to_owned())]),
            y: Axis::Amount { units: COUNT, from_zero: true },
            marks: vec![mark((1e6, 1e6)), mark((0.0, 1e6))],
            series: vec![Series { subject: 7, joined: true, dot: 9, points: vec![Point::new(0.0, 2e6), point] }],
        };
        let drawn = figure(&chart);
        let (middle, foot) = ((TOP + FOOT) / 2.0, FOOT);
        assert!(
            drawn.contains(">2 M<") && drawn.contains(">8k<") && drawn.contains("<title>&lt;8&gt;</title>"),
            "{drawn}"
        );
        assert!(
            drawn.contains(&format!("zero\" stroke-width=\"2\" d=\"M{LEFT},{middle}L{RIGHT},{middle}\"")),
            "{drawn}"
        );
        assert!(drawn.contains(&format!("margin\" d=\"M{LEFT},{middle}H{RIGHT}V{foot}")), "{drawn}");
        assert!(drawn.contains(&format!(",{foot}V{TOP}M")), "the interval: {drawn}");
        assert!(drawn.contains("dots subject1\" stroke-width=\"18\""), "a colour for every sixth: {drawn}");
        let wild = Point::new(0.0, f64::NAN);
        let series = vec![Series { subject: 0, joined: true, dot: 1, points: vec![wild] }];
        assert_eq!(figure(&Chart { series, ..chart }), "");
    }
}
