//! A run or a command beside an earlier one: what each phase cost then, and by how much that differs from now.

use super::study;
use crate::finding::{PhaseFinding, RunFinding, StoredPhase};
use crate::record::{Record, Source};
use crate::stats::Estimate;
use crate::stored::machine::Machine;
use crate::stored::{Stored, UnpairedChange, warnings, work};
use crate::warning::gravest_first;

/// Whether a measurement of `source` can stand beside an earlier record.
///
/// # Errors
/// When no phase is in both: why.
pub(crate) fn fits(record: &Record, source: &Source) -> Result<(), String> {
    if record.phases.is_empty() {
        return Err("it holds no phase that was measured".to_owned());
    }
    if pairs(&record.source, source).iter().any(Option::is_some) {
        return Ok(());
    }
    let label = |source| names(source).iter().map(|names| format!("'{}'", names.join(", "))).collect::<Vec<_>>();
    let (then, now) = (label(&record.source).join("; "), label(source).join("; "));
    Err(format!("its jobs were {then}, today's are {now}; give one of them the name that it had"))
}

/// Adds what was found then, and what is known to differ.
pub(super) fn stand_beside(finding: &mut RunFinding, record: &Record, stored: &Stored<Record>) {
    let then = &stored.record;
    let earlier = study(then);
    for (phase, place) in finding.phases.iter_mut().zip(pairs(&then.source, &record.source)) {
        phase.stored = place.and_then(|place| earlier.phases.get(place)).map(|then| against(phase, then));
    }
    finding.stored = Some(stored.finding(&then.envelope, machine(then).differences(&machine(record))));
    let differing = work::named(differing_work(&then.source, &record.source));
    finding.warnings.extend(warnings(&then.envelope, &record.envelope, &differing));
    gravest_first(&mut finding.warnings);
}

/// The jobs of each phase; a command is one phase without any.
fn names(source: &Source) -> Vec<Vec<&str>> {
    match source {
        Source::Run(plan) => {
            plan.phases.iter().map(|phase| phase.jobs.iter().map(|job| job.name.as_str()).collect()).collect()
        }
        Source::Cost { .. } => vec![Vec::new()],
    }
}

/// For each phase of now, which one of then it stands beside: that with the same jobs, or the only one there is.
fn pairs(then: &Source, now: &Source) -> Vec<Option<usize>> {
    let (then, now) = (names(then), names(now));
    if let ([_], [_]) = (then.as_slice(), now.as_slice()) {
        return vec![Some(0)];
    }
    now.iter().map(|names| then.iter().position(|others| others == names)).collect()
}

fn against(now: &PhaseFinding, then: &PhaseFinding) -> StoredPhase {
    // Two meters have two ideas of a cycle: both are read by the one that speaks now, or not at all.
    let estimate = |phase: &PhaseFinding| {
        // A mean that was withheld, for being of two loads, is not to be had here either.
        phase.cycles_per_io?;
        let meter = now.headline_meter.as_deref()?;
        phase.by_meter_detail.iter().find(|reading| reading.name == meter)?.cycles_per_io
    };
    let cycles = |phase: &PhaseFinding| {
        let comparable = phase.headline_meter == now.headline_meter && now.ios.is_none();
        let (low, high) = (phase.cycles_low, phase.cycles_high);
        phase.cycles.filter(|_| comparable).map(|value| Estimate { value, low, high })
    };
    let change = |of: &dyn Fn(&PhaseFinding) -> Option<Estimate>| UnpairedChange::since(of(now)?, of(then)?);
    StoredPhase {
        cycles_per_io: estimate(then).map(|then| then.value),
        cycles_per_io_change: change(&estimate),
        cycles: cycles(then).map(|then| then.value),
        cycles_change: change(&cycles),
        iops: then.iops,
        iops_change: now.iops.zip(then.iops).filter(|(_, then)| *then > 0.0).map(|(now, then)| now / then - 1.0),
    }
}

fn machine(record: &Record) -> Machine<'_> {
    let canaries = record.canaries.iter().collect();
    Machine { host: &record.host, canaries, iotoll_version: &record.envelope.iotoll_version }
}

fn differing_work(then: &Source, now: &Source) -> Vec<String> {
    match (then, now) {
        (Source::Run(before), Source::Run(today)) => work::of_plans(before, today),
        (Source::Cost { command: before, .. }, Source::Cost { command: today, .. }) => work::of_words(before, today),
        (Source::Cost { .. }, Source::Run(_)) => vec!["a command → jobs".to_owned()],
        (Source::Run(_), Source::Cost { .. }) => vec!["jobs → a command".to_owned()],
    }
}
