//! A run or a command next to an earlier one: the earlier cost of each phase, and the change since then.

use super::study;
use crate::experiment::Metric;
use crate::finding::{PhaseFinding, RunFinding, StoredFigure};
use crate::record::{PhaseRecord, Record, Source};
use crate::stored::{self, Stored, work};
use std::collections::BTreeMap;

/// Checks whether a measurement of `source` can be compared with an earlier record.
///
/// # Errors
/// If the two have no phase in common.
pub(crate) fn fits(record: &Record, source: &Source) -> Result<(), String> {
    if record.phases.is_empty() {
        return Err("it contains no measured phase".to_owned());
    }
    if matched(&names(&record.source), &names(source)).iter().any(Option::is_some) {
        return Ok(());
    }
    let label = |source| names(source).iter().map(|names| format!("'{}'", names.join(", "))).collect::<Vec<_>>();
    let (then, now) = (label(&record.source).join("; "), label(source).join("; "));
    Err(format!("its jobs were {then}, but today's are {now}; use the same job names"))
}

/// Adds the earlier figures and the known differences.
pub(crate) fn stand_beside(finding: &mut RunFinding, record: &Record, stored: &Stored<Record>) {
    let then = &stored.record;
    let earlier = study(then);
    for (phase, place) in finding.phases.iter_mut().zip(matched(&measured_names(then), &measured_names(record))) {
        phase.stored = place.and_then(|place| earlier.phases.get(place)).map(|then| against(phase, then));
    }
    stored.stand_beside(record, differing_work(then, record), &mut finding.head);
}

/// The job names of each phase of a plan. A command is one phase without jobs.
fn names(source: &Source) -> Vec<Vec<&str>> {
    match source {
        Source::Run(plan) => {
            plan.phases.iter().map(|phase| phase.jobs.iter().map(|job| job.name.as_str()).collect()).collect()
        }
        Source::Cost { .. } => vec![Vec::new()],
    }
}

/// The job names of each phase that was measured. A command has several if its jobs ran one group after the other.
fn measured_names(record: &Record) -> Vec<Vec<&str>> {
    match &record.source {
        Source::Cost { .. } if record.phases.len() > 1 => record.phases.iter().map(names_of).collect(),
        source => names(source),
    }
}

fn names_of(phase: &PhaseRecord) -> Vec<&str> {
    phase.executions.iter().take(1).flat_map(|execution| &execution.jobs).map(|job| job.name.as_str()).collect()
}

/// For each phase of `now`, the phase of `then` to compare it with: the one with the same jobs, or the only one.
fn matched(then: &[Vec<&str>], now: &[Vec<&str>]) -> Vec<Option<usize>> {
    if let ([_], [_]) = (then, now) {
        return vec![Some(0)];
    }
    now.iter().map(|names| then.iter().position(|others| others == names)).collect()
}

fn against(now: &PhaseFinding, then: &PhaseFinding) -> BTreeMap<String, StoredFigure> {
    let meter = |phase: &PhaseFinding| (phase.headline_meter.clone(), phase.others.known_by_name);
    let comparable = meter(now) == meter(then);
    let of = |phase: &PhaseFinding, metric: Metric| match metric {
        // Meters differ in what they count as busy, so both records are read with the headline meter of now. A mean that the study
        // withholds, because it covers two loads, is withheld here too.
        Metric::CyclesPerIo => {
            phase.cycles_per_io()?;
            let meter = now.headline_meter.as_deref()?;
            phase.by_meter_detail.iter().find(|reading| reading.name == meter)?.cycles_per_io
        }
        metric => phase.told(metric).filter(|_| comparable || !metric.is_of_whole_machine()),
    };
    let figure = |metric: Metric| {
        let then = of(then, metric)?;
        let change = of(now, metric).and_then(|now| stored::since(now, then));
        Some((metric.name().to_owned(), StoredFigure { value: then.value, change }))
    };
    Metric::ALL.into_iter().filter_map(figure).collect()
}

fn differing_work(then: &Record, now: &Record) -> Vec<String> {
    let (before, today) = (&then.services, &now.services);
    let found = match (&then.source, &now.source) {
        (Source::Run(then), Source::Run(now)) => work::of_plans((then, before), (now, today)),
        (Source::Cost { command: then, .. }, Source::Cost { command: now, .. }) => {
            work::of_words((then, before), (now, today))
        }
        (Source::Cost { .. }, Source::Run(_)) => vec!["a command → jobs".to_owned()],
        (Source::Run(_), Source::Cost { .. }) => vec!["jobs → a command".to_owned()],
    };
    work::of_services(before, today).into_iter().chain(found).collect()
}
