//! The change beside that since an earlier comparison.

use crate::compare::CompareFinding;
use crate::compare::finding::{AgainstStored, CellFinding, MetricFinding};
use crate::pages::stored::block;
use crate::pages::words::{self, Change};
use model::elided_list::{distinct, elided_list};
use model::experiment::Metric;
use model::stats::Estimate;
use report::document::{Block, Fact, tied};

/// `None` without a stored record.
pub fn of_comparison(finding: &CompareFinding) -> Option<Block> {
    let stored = finding.head.stored.as_ref()?;
    let metrics = &finding.targets;
    let (matched, others): (Vec<&CellFinding>, Vec<&CellFinding>) =
        finding.cells.iter().partition(|cell| is_known(cell));
    let lines = matched.iter().flat_map(|cell| metrics.iter().map(move |metric| line(finding, cell, *metric)));
    let facts: Vec<Fact> = lines.flatten().collect();
    let caution = "environment includes everything that changed between the two sessions, such as the kernel or other guests; its interval and \
                   that of the total only cover the variation within each session";
    let remarks = missing(&matched, metrics).into_iter().chain(unmatched(finding, &others));
    Some(block("baseline", stored, facts, caution, remarks))
}

/// Whether the stored record has this cell.
fn is_known(cell: &CellFinding) -> bool {
    cell.metrics.values().any(|metric| metric.stored.is_some())
}

/// "+75.8 % [70.8, 80.8] = +4.0 % [3.0, 5.0] change × +69.0 % [64.0, 74.0] environment".
fn line(finding: &CompareFinding, cell: &CellFinding, metric: Metric) -> Option<Fact> {
    let found = super::metric(cell, metric)?;
    let split = split(found, found.stored.as_ref()?);
    let several = super::candidates(finding).len() > 1;
    let place = [super::point(finding, &cell.cell), if several { cell.arm.clone() } else { String::new() }];
    let place = place.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    let head = words::of(metric).head;
    // With one cell and one arm, the metric is the label. With a cell name as the label, the metric moves into the
    // text.
    Some(if place.is_empty() { Fact::new(head, split) } else { Fact::new(place, format!("{head} {split}")) })
}

fn split(found: &MetricFinding, stored: &AgainstStored) -> String {
    let whole = |change: Estimate| Change::from(change).whole();
    format!(
        "{} = {} {}",
        tied(&whole(stored.total)),
        tied(&format!("{} change", Change::from(found).whole())),
        tied(&format!("× {} environment", whole(stored.environment))),
    )
}

/// Metrics that have a value now, but not in the stored record.
fn missing(cells: &[&CellFinding], metrics: &[Metric]) -> Option<String> {
    let lacks = |metric: &&Metric| {
        let mut found = cells.iter().filter_map(|cell| super::metric(cell, **metric));
        found.any(|found| super::has_value(found) && found.stored.is_none())
    };
    let heads: Vec<&str> = metrics.iter().filter(lacks).map(|metric| words::of(*metric).head).collect();
    (!heads.is_empty()).then(|| format!("not in the stored record, or measured by another meter: {}", heads.join(", ")))
}

/// Cells that the stored record does not contain.
fn unmatched(finding: &CompareFinding, cells: &[&CellFinding]) -> Option<String> {
    let points = cells.iter().map(|cell| tied(&super::point(finding, &cell.cell)));
    let points = distinct(points.filter(|point| !point.is_empty()));
    (!points.is_empty()).then(|| format!("not in the stored record: {}", elided_list(&points, ", ")))
}
