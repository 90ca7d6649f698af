//! A timeline as an SVG: in each column of pixels the reach of each track.

use crate::document::{Timeline, Trace, Track};
use crate::html::markup::escape;
use crate::number;
use std::fmt::Write;

/// Size of the drawing in units, and the part of it that has the tracks.
const SIZE: (f64, f64) = (1100.0, 380.0);
const LEFT: f64 = 70.0;
const RIGHT: f64 = 1088.0;
const TOP: f64 = 12.0;
const FOOT: f64 = 350.0;
/// Columns of the drawing: one for each unit.
const COLUMNS: usize = (RIGHT - LEFT) as usize;
/// Numbers on the time axis, and on the scale of the first track.
const TIMES: u32 = 5;
const LEVELS: u32 = 4;

/// The drawing. Its colours are in the style sheet.
pub fn drawing(timeline: &Timeline) -> String {
    let (width, height) = SIZE;
    let mut svg = format!("<svg role=\"img\" aria-label=\"timeline\" viewBox=\"0 0 {width} {height}\">\n");
    let length = timeline.end() - timeline.began;
    let across = |time: f64| LEFT + ((time - timeline.began) / length).clamp(0.0, 1.0) * (RIGHT - LEFT);
    for (from, to) in &timeline.marks {
        let (from, to) = (across(*from), across(*to));
        let _ = writeln!(
            svg,
            "<rect class=\"mark\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{}\"/>",
            (to - from).max(1.0),
            FOOT - TOP
        );
    }
    for step in 0..=TIMES {
        let part = f64::from(step) / f64::from(TIMES);
        let x = LEFT + part * (RIGHT - LEFT);
        let anchor = if step == TIMES { "end" } else { "middle" };
        let text = escape(&number::seconds(timeline.began + part * length));
        let _ = writeln!(svg, "<text x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"{anchor}\">{text}</text>", FOOT + 20.0);
    }
    let first = timeline.tracks.first().map_or(0, |track| track.scale);
    if let Some(scale) = timeline.scales.get(first) {
        for step in 0..=LEVELS {
            let part = f64::from(step) / f64::from(LEVELS);
            let y = FOOT - part * (FOOT - TOP);
            let text = escape(&number::with_unit(scale.units, part * timeline.greatest(first)));
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{LEFT},{y:.0}H{RIGHT}\"/><text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{text}</text>",
                LEFT - 8.0,
                y + 4.0
            );
        }
    }
    for track in &timeline.tracks {
        let _ = writeln!(svg, "<path class=\"hue-{}\" d=\"{}\"/>", track.hue.name(), path(timeline, track));
    }
    svg + "</svg>\n"
}

/// An upright stroke in each column. A line is joined to the column before.
fn path(timeline: &Timeline, track: &Track) -> String {
    let greatest = timeline.greatest(track.scale);
    let down = |value: f64| (FOOT - value / greatest * (FOOT - TOP)).round();
    let mut path = String::new();
    let mut before: Option<f64> = None;
    for (column, reach) in timeline.parts(track, COLUMNS).into_iter().enumerate() {
        let Some(reach) = reach else {
            before = None;
            continue;
        };
        if track.trace == Trace::Events && reach.greatest == 0.0 {
            continue;
        }
        let (mut low, mut high) = (down(reach.least), down(reach.greatest));
        if let Some(before) = before.filter(|_| track.trace == Trace::Line) {
            (low, high) = (low.max(before), high.min(before));
        }
        before = Some(down(reach.mean));
        let x = LEFT + column as f64 + 0.5;
        // A stroke of zero length is not drawn.
        let _ = write!(path, "M{x},{}V{high}", low + 1.0);
    }
    path
}
