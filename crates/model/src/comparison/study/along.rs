//! Over the cells of a sweep: the events whose change goes along with that of the cost.

use crate::comparison::finding::{CellFinding, EventCorrelation};
use crate::experiment::Metric;
use crate::explained::EventChange;
use crate::stats::basics::{FEWEST_PLACES, correlation};
use crate::stats::confidence_of_each;
use std::collections::{BTreeMap, BTreeSet};

/// Changes of the cost and of an event in the same cells.
type Places = Vec<(f64, f64)>;

/// For each arm the events whose correlation with the cost is not chance, the closest first. An event or a cost that changes nowhere is not
/// correlated with anything.
pub(super) fn correlations(cells: &[CellFinding]) -> Vec<EventCorrelation> {
    let arms: BTreeSet<&str> = cells.iter().map(|cell| cell.arm.as_str()).collect();
    let mut tested: Vec<(&str, &str, Places)> = Vec::new();
    for arm in arms {
        let of_arm: Vec<&CellFinding> = cells.iter().filter(|cell| cell.arm == arm).collect();
        let cost = |cell: &&CellFinding| cell.metrics.get(Metric::CyclesPerIo.name()).is_some_and(|cost| cost.detected);
        if !of_arm.iter().any(cost) {
            continue;
        }
        let mut events: BTreeMap<&str, Places> = BTreeMap::new();
        for (cell, event) in of_arm.iter().flat_map(|cell| cell.events.iter().map(move |event| (cell, event))) {
            events.entry(&event.name).or_default().extend(cost_change(cell).zip(Some(event.change_per_io.value)));
        }
        let is_detected = |name: &str| {
            let is_it = |event: &EventChange| event.detected && event.name == name;
            of_arm.iter().any(|cell| cell.events.iter().any(is_it))
        };
        let several = events.into_iter().filter(|(name, places)| places.len() >= FEWEST_PLACES && is_detected(name));
        tested.extend(several.map(|(name, places)| (arm, name, places)));
    }
    let confidence = confidence_of_each(tested.len());
    let found = tested.into_iter().filter_map(|(arm, name, places)| {
        let correlation = correlation(&places, confidence).filter(|found| found.contains(0.0) == Some(false))?;
        Some(EventCorrelation { arm: arm.to_owned(), name: name.to_owned(), cells: places.len(), correlation })
    });
    let mut found: Vec<EventCorrelation> = found.collect();
    found.sort_by(|one, other| {
        let size = |found: &EventCorrelation| found.correlation.value.abs();
        one.arm.cmp(&other.arm).then(size(other).total_cmp(&size(one)))
    });
    found
}

/// Change of cycles per I/O.
fn cost_change(cell: &CellFinding) -> Option<f64> {
    let cost = cell.metrics.get(Metric::CyclesPerIo.name())?;
    Some(cost.candidate? - cost.baseline?)
}
