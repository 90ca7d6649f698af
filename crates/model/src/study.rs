//! Computes a finding from a record: every derived number comes from raw readings, and can be recomputed.

mod accounts;
pub(crate) mod against_stored;
pub mod caveats;
pub(crate) mod events;
mod job;
pub(crate) mod limits;
mod net;
pub(crate) mod page_cache;
pub(crate) mod phase;
pub mod placement;
pub mod probes;
pub mod regimes;
mod series;
mod symbols;
pub mod windows;

use crate::events::Events;
use crate::finding::{MeterFinding, RunFinding};
use crate::kind::{Head, Recorded};
use crate::plan::JobPlan;
use crate::record::{Host, MeterStatus, PhaseRecord, Record, Source};
use crate::unit::Hertz;
use net::BackgroundRates;

/// Computes the finding of a record.
pub fn study(record: &Record) -> RunFinding {
    let rates = BackgroundRates::new(&record.background, Context::of(&record.host));
    let mut finding = RunFinding {
        head: Head::of(
            Record::KIND,
            &record.envelope,
            title(record),
            (&record.host, &record.services),
            Some((&record.outcome, &record.warnings)),
        ),
        counted_by: match &record.source {
            Source::Run(_) => None,
            Source::Cost { counted_by, .. } => Some(counted_by.clone()),
        },
        meters: record.meters.iter().map(meter_finding).collect(),
        events: record.events.as_ref().map(Events::findings).unwrap_or_default(),
        background: rates.finding(&record.background),
        phases: with_jobs(record).map(|(phase, jobs)| phase::study(phase, jobs, record, &rates)).collect(),
        jobs: Vec::new(),
        merged_jobs: Vec::new(),
        canaries: record.canaries.clone(),
    };
    for (number, ((phase, planned), found)) in with_jobs(record).zip(&finding.phases).enumerate() {
        let jobs = |merges| {
            let mut jobs = job::study(phase, planned, rates.context.clock, merges);
            jobs.iter_mut().for_each(|job| job.phase = number);
            if let [job] = jobs.as_mut_slice() {
                job.cycles_per_io = found.cycles_per_io();
            }
            if regimes::are_loads_apart(&found.regimes) {
                jobs.iter_mut().for_each(|job| job.thread_cycles_per_io = None);
            }
            jobs
        };
        finding.jobs.extend(jobs(|job| job.group_reporting));
        finding.merged_jobs.extend(jobs(|_| true));
    }
    caveats::add(record, &mut finding);
    finding
}

/// The phases, each with the jobs of the plan if there is one.
fn with_jobs(record: &Record) -> impl Iterator<Item = (&PhaseRecord, Option<&[JobPlan]>)> {
    let planned = match &record.source {
        Source::Run(plan) => plan.phases.as_slice(),
        Source::Cost { .. } => &[],
    };
    let jobs = planned.iter().map(|phase| Some(phase.jobs.as_slice())).chain(std::iter::repeat(None));
    record.phases.iter().zip(jobs)
}

/// What all parts of the study need.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    pub(crate) clock: Hertz,
    pub(crate) cpus: usize,
    /// Whether the CPU time of tasks includes stolen time.
    pub(crate) steal_in_task_clocks: bool,
}

impl Context {
    pub(crate) fn of(host: &Host) -> Self {
        // If unknown, assume the kernel configuration of distributions for virtual machines.
        let steal_in_task_clocks = host.steal_in_task_clocks.unwrap_or(false);
        Self { clock: host.clock(), cpus: host.cpus.max(1), steal_in_task_clocks }
    }
}

fn title(record: &Record) -> String {
    match &record.source {
        Source::Run(plan) => {
            let names: Vec<&str> =
                plan.phases.iter().flat_map(|phase| &phase.jobs).map(|job| job.name.as_str()).collect();
            names.join(", ")
        }
        Source::Cost { command, .. } => command.join(" "),
    }
}

fn meter_finding(status: &MeterStatus) -> MeterFinding {
    MeterFinding {
        name: status.meter.name().to_owned(),
        available: status.status.taken().is_some(),
        reason: status.status.reason().map(str::to_owned),
        sees: status.status.taken().cloned(),
    }
}

#[cfg(test)]
mod tests;
