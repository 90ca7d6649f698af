//! Caveats about the spread of the rounds: what makes an interval less sure than its confidence says.

use super::change::{Comparison, Dominated, Found};
use crate::comparison::finding::CellFinding;
use crate::experiment::{Cell, Metric};
use crate::warning::{Code, Warning};

/// The caveats of all comparisons in the target metrics.
pub(super) fn caveats(cells: &[CellFinding], compared: &[Comparison], targets: &[Metric]) -> Vec<Warning> {
    [correlated(cells, targets), dominated(cells, compared, targets)].into_iter().flatten().collect()
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

/// One round that carries much of an arm's mean.
fn dominated(cells: &[CellFinding], compared: &[Comparison], targets: &[Metric]) -> Option<Warning> {
    let found = cells.iter().zip(compared).flat_map(|(cell, comparison)| {
        let of_metric = move |metric: &Metric| {
            let found: &Found = comparison.get(metric)?.as_ref().ok()?;
            Some((cell, *metric, found.dominated.as_ref()?))
        };
        targets.iter().filter_map(of_metric)
    });
    let (cell, metric, most): (&CellFinding, Metric, &Dominated) =
        found.max_by(|(_, _, one), (_, _, other)| one.part.total_cmp(&other.part))?;
    let place = Cell { values: cell.cell.clone() }.to_string();
    let message = format!(
        "round {} has {:.0} % of the sum of {} of {}{}: the mean rests on it, and how often such rounds occur is hardly known; \
         run longer",
        most.round + 1,
        most.part * 100.0,
        metric.name(),
        if most.is_baseline { "the baseline" } else { cell.arm.as_str() },
        if place.is_empty() { String::new() } else { format!(" at {place}") },
    );
    Some(Warning::new(Code::OneUnitCarriesTheMean, message))
}
