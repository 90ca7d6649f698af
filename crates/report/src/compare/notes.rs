//! Remarks below a table: missing metrics, the time to decide, changes that a mean hides, and what intervals hold together.

use super::{contents, words};
use crate::change::Change;
use crate::document::{Note, Tone};
use crate::number;
use crate::phrase::tied;
use model::comparison::CompareFinding;
use model::comparison::finding::{CellFinding, Families, FamilyFinding, MetricFinding};
use model::elided_list::elided_list;
use model::experiment::Metric;
use model::stats::Verdict;

/// The remarks on an arm's tables of `metrics`.
pub fn notes(finding: &CompareFinding, arm: &str, metrics: &[Metric]) -> Vec<Note> {
    let cells = contents::cells(finding, arm);
    let shown = |metric: &Metric| !contents::is_sweep(finding) || metrics.contains(metric);
    let shown: Vec<Metric> = Metric::ALL.into_iter().filter(shown).collect();
    let mut notes = Vec::new();
    for metric in &shown {
        notes.extend(shape(finding, &cells, *metric));
    }
    notes.extend(time(finding, &cells, &shown));
    notes.extend(families(finding).filter(|_| !cells.is_empty()));
    let missing = contents::reasons(&cells).into_iter();
    notes.extend(missing.map(|text| Note::new(Tone::Faint, format!("not compared: {text}"))));
    notes
}

/// The cells in which a metric satisfies a condition.
fn found<'a>(
    cells: &[&'a CellFinding],
    metric: Metric,
    holds: impl Fn(&MetricFinding) -> bool,
) -> Vec<(&'a CellFinding, &'a MetricFinding)> {
    let of_metric = cells.iter().filter_map(|cell| Some((*cell, contents::metric(cell, metric)?)));
    of_metric.filter(|(_, metric)| holds(metric)).collect()
}

/// The ratio of sums and the typical round disagree.
fn shape(finding: &CompareFinding, cells: &[&CellFinding], metric: Metric) -> Option<Note> {
    let changed = found(cells, metric, |metric| metric.shape_changed);
    let places = places(finding, &changed, |metric| {
        let typical = metric.typical.map(|typical| tied(&Change::from(typical).whole()));
        let typical = typical.map(|typical| format!(", {typical} in a typical round"));
        format!("{} overall{}", tied(&Change::from(metric).whole()), typical.unwrap_or_default())
    })?;
    let head = words::of(metric).head;
    let text =
        format!("{head}: the shape of the distribution changed, either in rare slow parts or in the rest: {places}");
    Some(Note::new(Tone::Notice, text))
}

/// Which intervals hold together, and with what confidence each.
fn families(finding: &CompareFinding) -> Option<Note> {
    let Families { targets, others } = finding.families?;
    let of = |family: FamilyFinding, one: &str, several: &str| match family.comparisons {
        0 => None,
        1 => Some(format!("the {one}")),
        count => Some(format!("the {count} {several} ({} each)", tied(&number::confidence(family.confidence)))),
    };
    let known = [of(targets, "target", "targets"), of(others, "other metric", "other metrics")];
    let known: Vec<String> = known.into_iter().flatten().collect();
    let text = format!("simultaneous confidence of all intervals of a group, 95 %: {}", known.join("; "));
    (!known.is_empty()).then(|| Note::new(Tone::Faint, text))
}

/// The time to decide, for metrics that the answer does not cover.
fn time(finding: &CompareFinding, cells: &[&CellFinding], metrics: &[Metric]) -> Option<Note> {
    // The answer of a comparison of the baseline with itself covers no single change.
    let answered = !contents::is_sweep(finding) && finding.noise_floor.is_none();
    let said = |metric: &Metric| answered && contents::targets(finding).contains(metric);
    let open = |metric: &MetricFinding| metric.verdict == Verdict::Inconclusive && metric.seconds_to_decide.is_some();
    let mut parts = Vec::new();
    for metric in metrics.iter().filter(|metric| !said(metric)) {
        let times = found(cells, *metric, open);
        let longest = times
            .iter()
            .filter_map(|(_, metric)| metric.seconds_to_decide)
            .filter(|seconds| seconds.is_finite())
            .reduce(f64::max);
        parts.extend(longest.map(|longest| format!("{} {}", words::of(*metric).head, number::lasting(longest))));
    }
    let cell = if contents::is_sweep(finding) { " in every cell" } else { "" };
    let text = || format!("estimated measuring time to decide inconclusive results{cell}: {}", parts.join(", "));
    (!parts.is_empty()).then(|| Note::new(Tone::Faint, text()))
}

/// The first cells of a list with a text for each, and the number of further ones.
fn places(
    finding: &CompareFinding,
    cells: &[(&CellFinding, &MetricFinding)],
    say: impl Fn(&MetricFinding) -> String,
) -> Option<String> {
    let places = cells.iter().map(|(cell, metric)| {
        let point = contents::point(finding, &cell.cell);
        let point = if point.is_empty() { point } else { format!("{} ", tied(&point)) };
        format!("{point}{}", say(metric))
    });
    let places: Vec<String> = places.collect();
    (!places.is_empty()).then(|| elided_list(&places, "; "))
}
