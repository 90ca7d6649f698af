//! Every slice of two arms over time. Only this chart shows drifts, steps and stalls.

use super::{contents, words};
use crate::document::{Axis, Chart, Point, Series};
use model::comparison::CompareFinding;
use model::comparison::finding::{CellFinding, SlicePoint};
use model::experiment::Metric;

/// The slices of one comparison: cycles and I/Os.
pub fn charts(finding: &CompareFinding, cell: &CellFinding) -> Vec<Chart> {
    let cycles = of_metric(finding, cell, Metric::CyclesPerIo, |slice| slice.cycles_per_io);
    let rate = of_metric(finding, cell, Metric::Iops, |slice| slice.iops);
    cycles.into_iter().chain(rate).collect()
}

fn of_metric(
    finding: &CompareFinding,
    cell: &CellFinding,
    metric: Metric,
    value: fn(&SlicePoint) -> Option<f64>,
) -> Option<Chart> {
    let series = |baseline: bool| {
        let slices = cell.slices.iter().filter(|slice| slice.baseline == baseline && slice.seconds.is_finite());
        let points = slices.filter_map(|slice| Some(Point::new(slice.seconds, value(slice)?)));
        let points = points.filter(|point| point.y.is_finite()).collect();
        let subject = if baseline { 0 } else { contents::arm_index(finding, &cell.arm) };
        Series { subject, joined: false, dot: 4, points }
    };
    let series = [true, false].map(series).to_vec();
    series.iter().any(|series| !series.points.is_empty()).then(|| Chart {
        title: words::of(metric).noun.to_owned(),
        of: String::new(),
        x: Axis::Time,
        y: Axis::Amount { units: words::of(metric).units, from_zero: false },
        marks: Vec::new(),
        series,
    })
}
