//! Every slice over time, one arm's beside the other's: drifts, steps and stalls are seen here and nowhere else.

use super::axis::{Axis, shortest};
use super::chart::{Shape, chart};
use super::markup::{element, escape};
use super::svg::Paint;
use crate::compare::{contents, words};
use crate::number;
use model::comparison::CompareFinding;
use model::comparison::finding::{CellFinding, SlicePoint};
use model::experiment::Metric;

/// Radius of a slice's dot.
const DOT: u32 = 4;

/// The slices of one comparison: cycles and I/Os.
pub fn slices(finding: &CompareFinding, cell: &CellFinding) -> String {
    let cycles = of_metric(finding, cell, Metric::CyclesPerIo, |slice| slice.cycles_per_io);
    let charts = cycles + &of_metric(finding, cell, Metric::Iops, |slice| slice.iops);
    if charts.is_empty() { charts } else { element("div", "charts", &charts) }
}

fn of_metric(
    finding: &CompareFinding,
    cell: &CellFinding,
    metric: Metric,
    value: fn(&SlicePoint) -> Option<f64>,
) -> String {
    let words = words::of(metric);
    let points = |baseline: bool| {
        let slices = cell.slices.iter().filter(move |slice| slice.baseline == baseline && slice.seconds.is_finite());
        let points = slices.filter_map(move |slice| Some((slice.seconds, value(slice)?)));
        points.filter(|(_, value)| value.is_finite()).collect::<Vec<_>>()
    };
    let (baseline, candidate) = (points(true), points(false));
    let values = baseline.iter().chain(&candidate).map(|(_, value)| *value);
    let times = || baseline.iter().chain(&candidate).map(|(time, _)| *time);
    let Some(up) = Axis::of_metric(words, values, false) else { return String::new() };
    let last = times().fold(0.0, f64::max);
    let across = Axis::linear(0.0, last, |time| match time {
        0.0 => "0 s".to_owned(),
        time => shortest(&number::seconds(time)),
    });
    let Some(across) = across else { return String::new() };
    let shapes = [
        Shape::Dots(baseline, DOT, Paint::Arm(0)),
        Shape::Dots(candidate, DOT, Paint::Arm(contents::arm_index(finding, &cell.arm))),
    ];
    let about = format!("{} of every slice over time", words.noun);
    let chart = chart(&about, &across, &up, &shapes, &[]);
    if chart.is_empty() {
        chart
    } else {
        format!("<figure><figcaption>{}</figcaption>{chart}</figure>\n", escape(words.noun))
    }
}
