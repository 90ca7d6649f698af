//! Caveats about the spread of the rounds: what makes an interval less sure than its confidence says.

use super::change::{Comparison, Dominated, Found};
use crate::comparison::finding::CellFinding;
use crate::experiment::{Cell, Metric};
use crate::warning::{Code, Warning};

/// The caveats of all comparisons in the target metrics.
pub(super) fn caveats(
    cells: &[CellFinding],
    compared: &[Comparison],
    targets: &[Metric],
    skipped: usize,
) -> Vec<Warning> {
    [correlated(cells, targets), dominated(cells, compared, targets, skipped)].into_iter().flatten().collect()
}

/// Consecutive rounds that resemble each other.
fn correlated(cells: &[CellFinding], targets: &[Metric]) -> Option<Warning> {
    let of_cell = |cell: &CellFinding| {
        let of_metric = |metric: &Metric| Some((*metric, cell.metrics.get(metric.name())?.correlation?));
        targets.iter().filter_map(of_metric).collect::<Vec<_>>()
    };
    let all = cells.iter().flat_map(of_cell);
    let (metric, most) = all.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let message = format!(
        "the change of consecutive rounds is correlated ({most:.2} in {}): something that lasts longer than a round affects one \
         arm. The intervals are wider for that, but a trend is not in them; run longer",
        metric.name()
    );
    Some(Warning::new(Code::RoundsCorrelated, message))
}

/// One round that carries much of an arm's mean. `skipped` rounds before the first do not count.
fn dominated(cells: &[CellFinding], compared: &[Comparison], targets: &[Metric], skipped: usize) -> Option<Warning> {
    let found = cells.iter().zip(compared).flat_map(|(cell, comparison)| {
        let of_metric = move |metric: &Metric| {
            let found: &Found = comparison.get(metric)?.as_ref().ok()?;
            Some((cell, *metric, found.dominated.as_ref()?))
        };
        targets.iter().filter_map(of_metric)
    });
    let (cell, metric, most): (&CellFinding, Metric, &Dominated) =
        found.max_by(|(_, _, one), (_, _, other)| one.unit.part.total_cmp(&other.unit.part))?;
    let place = Cell { values: cell.cell.clone() }.to_string();
    let message = format!(
        "round {} has {:.0} % of the {} of {}{}: the mean depends on it, and there are too few such rounds to estimate how often they occur; run longer",
        skipped + most.unit.place + 1,
        most.unit.part * 100.0,
        sum_of(metric, most.unit.of_denominator),
        if most.is_baseline { "the baseline" } else { cell.arm.as_str() },
        if place.is_empty() { String::new() } else { format!(" at {place}") },
    );
    Some(Warning::new(Code::OneUnitCarriesTheMean, message))
}

/// What the numerator or the denominator of a metric counts.
fn sum_of(metric: Metric, is_denominator: bool) -> &'static str {
    let (numerator, denominator) = match metric {
        Metric::CyclesPerIo => ("cycles", "I/Os"),
        Metric::CyclesPerByte => ("cycles", "bytes"),
        Metric::Cycles => ("cycles", "executions"),
        Metric::Seconds => ("time", "executions"),
        Metric::Iops => ("I/Os", "time"),
        Metric::BytesPerSecond => ("bytes", "time"),
        Metric::ContextSwitchesPerIo => ("context switches", "I/Os"),
        Metric::ThreadCyclesPerIo => ("cycles of its threads", "I/Os"),
        Metric::LatencyMean | Metric::LatencyP50 | Metric::LatencyP99 | Metric::LatencyP999 => ("latency", "I/Os"),
    };
    if is_denominator { denominator } else { numerator }
}
