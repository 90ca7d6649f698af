//! The contents of a finding in the order of every format: arms, axes, cells, metrics.

use crate::compare::CompareFinding;
use crate::compare::finding::{CellFinding, MetricFinding};
use crate::pages::words;
use model::elided_list::{distinct, grouped};
use model::experiment::{Axis, Metric};
use report::document::Cell;
use report::number::{BYTES, with_unit};
use std::collections::BTreeMap;

/// Accounts or functions with a row on the one screen that is read first. Limits, which the user asked for, take the room of some.
pub(crate) fn rows(finding: &CompareFinding) -> usize {
    if finding.head.limits.is_empty() { 4 } else { 2 }
}

pub fn baseline(finding: &CompareFinding) -> &str {
    finding.arms.first().map_or("baseline", |arm| arm.name.as_str())
}

/// The other arms, in the order in which they were given.
pub fn candidates(finding: &CompareFinding) -> Vec<&str> {
    let declared = finding.arms.iter().skip(1).map(|arm| arm.name.as_str());
    distinct(declared.chain(finding.cells.iter().map(|cell| cell.arm.as_str())))
}

/// What distinguishes an arm.
pub fn what<'a>(finding: &'a CompareFinding, arm: &str) -> Option<&'a str> {
    finding.arms.iter().find(|other| other.name == arm).map(|arm| arm.what.as_str()).filter(|what| !what.is_empty())
}

pub fn cells<'a>(finding: &'a CompareFinding, arm: &str) -> Vec<&'a CellFinding> {
    finding.cells.iter().filter(|cell| cell.arm == arm).collect()
}

/// Whether there is a sweep.
pub fn is_sweep(finding: &CompareFinding) -> bool {
    !axes(finding).is_empty()
}

/// The names of the axes, in the order in which they were given.
pub fn axes(finding: &CompareFinding) -> Vec<&str> {
    let declared = finding.axes.iter().map(|axis| axis.name.as_str());
    distinct(declared.chain(finding.cells.iter().flat_map(|cell| cell.cell.keys().map(String::as_str))))
}

/// A point of the sweep: "rw=randread bs=4k".
pub fn point(finding: &CompareFinding, cell: &BTreeMap<String, String>) -> String {
    let values = axes(finding).into_iter().filter_map(|axis| Some(format!("{axis}={}", cell.get(axis)?)));
    values.collect::<Vec<_>>().join(" ")
}

/// The arm if there are several, and the point of the sweep: "candidate, bs=4k".
pub fn place(finding: &CompareFinding, cell: &CellFinding) -> String {
    let arm = if candidates(finding).len() > 1 { cell.arm.clone() } else { String::new() };
    let parts = [arm, point(finding, &cell.cell)].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(", ")
}

/// The values of the axes in a cell, as the names of a row.
pub fn names(axes: &[&str], cell: &BTreeMap<String, String>) -> Vec<Cell> {
    axes.iter().map(|axis| Cell::from(cell.get(*axis).cloned().unwrap_or_default())).collect()
}

/// Metrics of a cell that have a value, in the order of [`Metric::ALL`].
pub fn measured(cell: &CellFinding) -> Vec<(Metric, &MetricFinding)> {
    let found = Metric::ALL.into_iter().filter_map(|metric| Some((metric, cell.metrics.get(metric.name())?)));
    found.filter(|(_, found)| has_value(found)).collect()
}

pub fn metric(cell: &CellFinding, metric: Metric) -> Option<&MetricFinding> {
    cell.metrics.get(metric.name())
}

/// Whether it has a value to show.
pub fn has_value(metric: &MetricFinding) -> bool {
    metric.baseline.is_some() || metric.candidate.is_some() || metric.change.is_some()
}

/// Why metrics have no value, grouped by reason: "p99 latency, p99.9 latency: too few I/Os".
pub fn reasons(cells: &[&CellFinding]) -> Vec<String> {
    let lacking = Metric::ALL.into_iter().filter_map(|metric| {
        let of_metric = || cells.iter().filter_map(|cell| self::metric(cell, metric));
        let reason = of_metric().find_map(|metric| metric.reason.as_deref()).filter(|_| !of_metric().any(has_value));
        Some((reason?, words::of(metric).head))
    });
    let told = |(reason, heads): (_, Vec<_>)| format!("{}: {}", heads.join(", "), super::conditions::reason(reason));
    grouped(lacking).into_iter().map(told).collect()
}

/// Options whose values are bytes, even without a suffix.
const SIZES: [&str; 4] = ["bs", "blocksize", "size", "path_max_payload"];

/// Whether the values of an axis are sizes, where `4k` is 4 KiB.
fn is_size(axis: &Axis) -> bool {
    let suffixed = |value: &String| value.ends_with(|letter: char| letter.is_ascii_alphabetic());
    SIZES.contains(&axis.name.as_str()) || axis.values.iter().any(suffixed)
}

/// A value of the numeric axis `name`, with its unit.
pub fn axis_value(finding: &CompareFinding, name: &str, value: f64) -> String {
    match finding.axes.iter().find(|axis| axis.name == name) {
        Some(axis) if is_size(axis) => with_unit(BYTES, value),
        _ if value.fract() == 0.0 && value.abs() < 1e6 => format!("{value:.0}"),
        _ => report::number::significant(value),
    }
}

/// The axis of the curves: the first with ascending numeric values.
pub fn curve_axis(finding: &CompareFinding) -> Option<(&Axis, Vec<f64>)> {
    let numeric = finding.axes.iter().filter_map(|axis| Some((axis, axis.numbers()?)));
    numeric.into_iter().find(|(_, numbers)| numbers.len() > 1)
}

/// The index of an arm. An unknown arm gets the index after the baseline.
pub fn arm_index(finding: &CompareFinding, arm: &str) -> usize {
    finding.arms.iter().position(|other| other.name == arm).unwrap_or(1)
}
