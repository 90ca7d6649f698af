//! Which accounts a change belongs to.

use super::View;
use crate::comparison::finding::{CellFinding, EventCorrelation};
use crate::comparison::record::{RoundRecord, Schedule};
use crate::events::Events;
use crate::experiment::Metric;
use crate::explained::{self, Divided, EventChange, ExplainingRounds, FEWEST_ROUNDS};
use crate::measured::Rounds;
use crate::meter::{Meter, MeterStatus};
use crate::record::Mode;
use crate::stats::basics::{FEWEST_PLACES, correlation};
use crate::stats::confidence_of_each;
use std::collections::{BTreeMap, BTreeSet};

/// Divides the costs of these comparisons. Without events although some were to be counted: why.
pub(super) fn explain(record: View, sums: &Rounds, pairs: &[(usize, usize)]) -> (Divided, Option<String>) {
    let header = record.header;
    let (cases, counter) = (sums.cases(), header.work_counter.as_ref());
    let rounds = ExplainingRounds { cases, host: &header.host, counter, rounds: record.explaining };
    let divided = rounds.divide(sums, header.events.as_ref(), pairs);
    let events = header.events.as_ref().filter(|_| divided.event_family.is_none());
    (divided, events.map(|events| uncounted(events, record.explaining)))
}

/// Why no events have been counted.
fn uncounted(events: &Events, rounds: &[RoundRecord]) -> String {
    let counts = |round: &RoundRecord| does(round, |mode| matches!(mode, Mode::Events(_)));
    match events.refusal() {
        Some(reason) => reason.to_owned(),
        None if rounds.iter().filter(|round| counts(round)).count() < FEWEST_ROUNDS => {
            "there was no time for rounds that count them; use a longer --budget".to_owned()
        }
        None => "the number of I/Os is unknown, or an execution is too short for a window of theirs".to_owned(),
    }
}

/// Whether a slice of a round has such a mode.
fn does(round: &RoundRecord, fits: fn(Mode) -> bool) -> bool {
    round.slices.iter().any(|slice| slice.reading.pairs().any(|(before, _)| fits(before.mode)))
}

/// What the rounds did, in words.
pub(super) fn done(record: View) -> Vec<&'static str> {
    let is_done = |fits: fn(Mode) -> bool| record.explaining.iter().any(|round| does(round, fits));
    let done = [
        is_done(|mode| mode == Mode::Alone(Meter::Accounts)).then_some("kept accounts"),
        is_done(|mode| matches!(mode, Mode::Events(_))).then_some("counted events"),
        is_done(|mode| mode == Mode::Alone(Meter::Sampler)).then_some("sampled stacks"),
    ];
    done.into_iter().flatten().collect()
}

/// Why there are none, if somebody could mend it.
pub(super) fn reason(record: View) -> Option<String> {
    let header = record.header;
    if !record.explaining.is_empty() || record.end.is_none() {
        return None;
    }
    let can = |status: &MeterStatus| status.meter == Meter::Accounts && status.status.taken().is_some();
    let of_boots = header.schedule == Schedule::Boots && header.meters.iter().any(can);
    let of_boots = of_boots.then(|| "each boot measures one arm, so no round has the accounts of both".to_owned());
    explained::reason(&header.meters).or(of_boots)
}

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
