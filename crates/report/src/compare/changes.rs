//! The tables of changes: baseline, candidate, change, interval and verdict, a line for each metric or each cell.
//!
//! A finding enters, lines of bare text leave. How they are aligned, escaped and drawn is the renderers' matter.

use super::change::Change;
use super::{contents, words};
use model::comparison::CompareFinding;
use model::comparison::finding::{CellFinding, MetricFinding};
use model::experiment::Metric;
use model::stats::Verdict;

/// What stands in the last column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// What the change means.
    Verdict(Verdict),
    /// The line is the change in a typical round, which does not agree with the line above.
    Typical,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Line {
    /// The metric.
    pub metric: Metric,
    /// The metric in short, or a value for each axis.
    pub labels: Vec<String>,
    /// Whether the first label differs from the line's above: sweeps are read in groups.
    pub opens_group: bool,
    /// The baseline's value.
    pub baseline: String,
    /// The other arm's.
    pub candidate: String,
    /// The change and its interval.
    pub change: Change,
    /// What it means.
    pub mark: Mark,
}

/// Lines under one head.
#[derive(Clone, Debug)]
pub struct Changes {
    /// The metric, where all lines are of one.
    pub metric: Option<Metric>,
    /// The heads of the labels.
    pub heads: Vec<String>,
    /// The arms' names.
    pub arms: [String; 2],
    /// The lines.
    pub lines: Vec<Line>,
}

impl Changes {
    /// The ends of the scale on which all intervals are drawn: they hold 0, the margin and every interval.
    pub fn range(&self, margin: f64) -> Option<(f64, f64)> {
        let drawn = self.lines.iter().flat_map(|line| [line.change.value, line.change.low, line.change.high]);
        let ends: Vec<f64> = drawn.flatten().filter(|end| end.abs() < LARGEST).collect();
        if ends.is_empty() {
            return None;
        }
        let margin = if margin.is_finite() && margin > 0.0 { margin } else { 0.0 };
        let low = ends.iter().copied().fold(-margin, f64::min);
        let high = ends.iter().copied().fold(margin, f64::max);
        (high > low).then_some((low, high))
    }
}

/// Changes beyond this (a thousand times as much) are not drawn: one of them would hide all others.
pub const LARGEST: f64 = 1e3;

/// The tables of an arm: without a sweep one table with a line for each metric, with a sweep one table for each of
/// `metrics`, a line for each cell.
pub fn tables(finding: &CompareFinding, arm: &str, metrics: &[Metric]) -> Vec<Changes> {
    let cells = contents::cells(finding, arm);
    let arms = [contents::baseline(finding).to_owned(), arm.to_owned()];
    if contents::is_sweep(finding) {
        let tables = metrics.iter().map(|metric| by_cell(finding, &cells, *metric, arms.clone()));
        return tables.filter(|table| !table.lines.is_empty()).collect();
    }
    let mut table = Changes { metric: None, heads: vec![String::new()], arms, lines: Vec::new() };
    for cell in cells {
        for (metric, found) in contents::measured(cell) {
            table.lines.push(line(vec![words::of(metric).head.to_owned()], metric, found));
            table.lines.extend(typical(metric, found));
        }
    }
    if table.lines.is_empty() { Vec::new() } else { vec![table] }
}

fn by_cell(finding: &CompareFinding, cells: &[&CellFinding], metric: Metric, arms: [String; 2]) -> Changes {
    let heads: Vec<String> = contents::axes(finding).into_iter().map(str::to_owned).collect();
    let mut lines: Vec<Line> = Vec::new();
    for cell in cells {
        let Some(found) = contents::metric(cell, metric).filter(|found| contents::has_value(found)) else { continue };
        let labels: Vec<String> = heads.iter().map(|axis| cell.cell.get(axis).cloned().unwrap_or_default()).collect();
        let same = lines.last().is_some_and(|above| above.labels.first() == labels.first());
        let opens_group = !lines.is_empty() && !same && heads.len() > 1;
        lines.push(Line { opens_group, ..line(labels, metric, found) });
    }
    Changes { metric: Some(metric), heads, arms, lines }
}

fn line(labels: Vec<String>, metric: Metric, found: &MetricFinding) -> Line {
    let (baseline, candidate) = words::of(metric).pair(found.baseline, found.candidate);
    Line {
        metric,
        labels,
        opens_group: false,
        baseline,
        candidate,
        change: Change::from(found),
        mark: Mark::Verdict(found.verdict),
    }
}

/// The typical round, where it does not agree.
fn typical(metric: Metric, found: &MetricFinding) -> Option<Line> {
    let typical = found.typical.filter(|_| found.shape_changed)?;
    Some(Line {
        metric,
        labels: vec!["  typical".to_owned()],
        opens_group: false,
        baseline: String::new(),
        candidate: String::new(),
        change: Change::from(typical),
        mark: Mark::Typical,
    })
}
