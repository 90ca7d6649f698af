//! The notes below every comparison with an earlier measurement: its date, and the known differences.

use crate::compare::CompareFinding;
use crate::compare::finding::{AgainstStored, CellFinding, MetricFinding};
use crate::pages::change::Change;
use crate::pages::{contents, words};
use model::elided_list::{distinct, elided_list};
use model::experiment::Metric;
use model::finding::{PhaseFinding, RunFinding};
use model::stats::Estimate;
use model::stored::StoredFinding;
use report::document::{Block, Body, Fact, Note};
use report::number::{self, COUNT, CYCLES};
use report::phrase::{self, phase_name, tied, units_tied};

/// A block of facts about the difference to a stored `what`, with notes on how to read them.
pub fn block(
    what: &str,
    stored: &StoredFinding,
    facts: Vec<Fact>,
    caution: &str,
    remarks: impl IntoIterator<Item = String>,
) -> Block {
    let time = phrase::time(stored.started_unix_seconds);
    let day = time.as_deref().and_then(|time| time.split(' ').next());
    let of_day = day.map(|day| format!(" of {day}")).unwrap_or_default();
    let mut notes = vec![differs(stored), caution.to_owned()];
    notes.extend(remarks);
    notes.push(match &time {
        Some(time) => format!("stored: {}, measured {}", stored.from, tied(time)),
        None => format!("stored: {}", stored.from),
    });
    let notes = notes.into_iter().map(Note::remark).collect();
    Block::new(format!("Against the stored {what}{of_day}"), Body::Facts(facts)).with(notes)
}

fn differs(stored: &StoredFinding) -> String {
    if stored.differs.is_empty() {
        return "no known difference between the machines then and now".to_owned();
    }
    format!("then → now: {}", units_tied(&stored.differs.join("; ")))
}

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
    let found = contents::metric(cell, metric)?;
    let split = split(found, found.stored.as_ref()?);
    let several = contents::candidates(finding).len() > 1;
    let place = [contents::point(finding, &cell.cell), if several { cell.arm.clone() } else { String::new() }];
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
        let mut found = cells.iter().filter_map(|cell| contents::metric(cell, **metric));
        found.any(|found| contents::has_value(found) && found.stored.is_none())
    };
    let heads: Vec<&str> = metrics.iter().filter(lacks).map(|metric| words::of(*metric).head).collect();
    (!heads.is_empty()).then(|| format!("not in the stored record, or measured by another meter: {}", heads.join(", ")))
}

/// Cells that the stored record does not contain.
fn unmatched(finding: &CompareFinding, cells: &[&CellFinding]) -> Option<String> {
    let points = cells.iter().map(|cell| tied(&contents::point(finding, &cell.cell)));
    let points = distinct(points.filter(|point| !point.is_empty()));
    (!points.is_empty()).then(|| format!("not in the stored record: {}", elided_list(&points, ", ")))
}

/// `None` without a stored record.
pub fn of_run(finding: &RunFinding) -> Option<Block> {
    let stored = finding.head.stored.as_ref()?;
    let several = finding.phases.len() > 1;
    let facts = finding.phases.iter().flat_map(|phase| {
        let prefix = if several { format!("{} ", phase_name(phase)) } else { String::new() };
        facts(phase).into_iter().map(move |(head, text)| Fact::new(format!("{prefix}{head}"), text))
    });
    let caution = "the two were not measured side by side: the difference includes everything that changed in between, such as the kernel or \
                   other guests, and its interval only the variation within each; use iotoll compare to isolate a change";
    let unknown = finding.phases.iter().filter(|phase| phase.stored.is_none());
    let unknown: Vec<String> = unknown.map(phase_name).filter(|name| !name.is_empty()).collect();
    let remark = (!unknown.is_empty()).then(|| format!("not in the stored record: {}", unknown.join(", ")));
    Some(block(if finding.counted_by.is_some() { "command" } else { "run" }, stored, facts.collect(), caution, remark))
}

fn facts(phase: &PhaseFinding) -> Vec<(&'static str, String)> {
    let cost = if phase.ios.is_some() { Metric::CyclesPerIo } else { Metric::Cycles };
    let told = [(cost, CYCLES), (Metric::Iops, COUNT)].into_iter().filter_map(|(metric, units)| {
        let then = phase.stored.as_ref()?.get(metric.name())?;
        let change = Change::from(then.change?).whole();
        let figures = [Some(then.value), phase.value(metric)].map(|value| number::known(units, value));
        Some((words::of(metric).head, format!("{} {}", tied(&change), tied(&format!("({})", figures.join(" → "))))))
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::page::fixture as comparisons;
    use crate::cost::page::fixture as runs;

    #[test]
    fn without_a_stored_record_there_is_nothing() {
        assert!(of_run(&runs::named("psync_4k")).is_none());
        assert!(of_comparison(&comparisons::named("options")).is_none());
    }
}
