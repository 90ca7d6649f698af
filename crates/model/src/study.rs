//! Computes a finding from a record: every derived number comes from raw readings, and can be recomputed.

mod accounts;
pub(crate) mod against_stored;
pub mod caveats;
pub(crate) mod events;
mod job;
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
use crate::experiment::Metric;
use crate::finding::{JobFinding, MeterFinding, PhaseFinding, RunFinding};
use crate::kind::{Envelope, Extent, Head, Kind, Misplaced, Recorded};
use crate::limit::{self, AtPlace, Limit, Quantity};
use crate::plan::JobPlan;
use crate::record::lines::{self, Line};
use crate::record::{Host, MeterStatus, PhaseRecord, Record, Source};
use crate::stats::Estimate;
use crate::stored::Stored;
use crate::stored::machine::Machine;
use crate::unit::Hertz;
use caveats::below_own_threads;
use net::BackgroundRates;
use phase::STEPPED;

impl Recorded for Record {
    const KIND: Kind = Kind {
        name: "cost",
        schema: "iotoll.run/1",
        noun: "a run",
        made_by: "iotoll run or iotoll cost",
        method_version: 6,
    };
    type Line = Line;
    type Plan = Source;
    type Finding = RunFinding;

    fn assemble(envelope: Envelope, lines: Vec<Line>) -> Result<Self, Misplaced> {
        lines::assemble(envelope, lines)
    }

    fn extent(&self) -> Extent {
        // The beginning has one reading of the canaries, the end another.
        let has_end = self.canaries.len() != 1;
        let parts = self.phases.iter().map(|phase| phase.executions.len()).sum();
        Extent { has_end, parts, noun: "executions of phases" }
    }

    fn machine(&self) -> Machine<'_> {
        Machine { canaries: self.canaries.iter().collect(), ..Machine::of(&self.host, &self.envelope) }
    }

    fn header(&self) -> (&Envelope, &Host, &Source) {
        (&self.envelope, &self.host, &self.source)
    }

    fn fits(&self, plan: &Source) -> Result<(), String> {
        against_stored::fits(self, plan)
    }

    fn study(&self, stored: Option<&Stored<Self>>) -> RunFinding {
        let mut finding = study(self);
        if let Some(stored) = stored {
            against_stored::stand_beside(&mut finding, self, stored);
        }
        finding.head.limits = limit::judge(&self.envelope.typed.limits, |metric| at_places(&finding, metric));
        finding
    }

    fn quantities() -> Vec<Quantity> {
        Metric::quantities()
    }

    fn limits_mut(&mut self) -> &mut Vec<Limit> {
        &mut self.envelope.typed.limits
    }
}

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

/// What is known of a metric that `--fail-on` can limit in each phase, or of each job.
///
/// Costs and rates are estimates, with the interval over windows or executions. Latencies and the duration of one execution are
/// facts about this measurement: every I/O of it was counted. A fact decides a limit on its value, but not on a change, because
/// one of a kind shows no spread.
fn at_places(finding: &RunFinding, metric: &str) -> Vec<AtPlace> {
    match Metric::parse(metric) {
        Some(metric) if metric.is_latency() => {
            finding.merged_jobs.iter().map(|job| of_job(finding, job, metric)).collect()
        }
        Some(metric) => finding.phases.iter().map(|phase| of_phase(finding, phase, metric)).collect(),
        None => Vec::new(),
    }
}

fn of_job(finding: &RunFinding, job: &JobFinding, metric: Metric) -> AtPlace {
    let latency = &job.all.latency_ns;
    let stepped =
        metric == Metric::LatencyMean && !finding.phases.get(job.phase).is_some_and(PhaseFinding::has_one_rate);
    let (value, error) = match metric {
        Metric::LatencyP50 => (latency.p50, latency.bucket_error_fraction),
        Metric::LatencyP99 => (latency.p99, latency.bucket_error_fraction),
        Metric::LatencyP999 => (latency.p999, latency.bucket_error_fraction),
        _ => (latency.mean, None),
    };
    // A value of the histogram is the middle of its bucket.
    let half = error.unwrap_or(0.0) / 2.0;
    let known = |value: f64| Estimate { value, low: Some(value * (1.0 - half)), high: Some(value * (1.0 + half)) };
    AtPlace {
        cell: if finding.merged_jobs.len() > 1 { job.name.clone() } else { String::new() },
        arm: String::new(),
        value: match value {
            _ if stepped => Err(STEPPED.to_owned()),
            Some(value) => Ok(known(value)),
            None => Err("there were too few I/Os, or their latencies are unknown".to_owned()),
        },
        change: Some(Err("latencies of one run show no spread; compare the two with iotoll compare".to_owned())),
    }
}

fn of_phase(finding: &RunFinding, phase: &PhaseFinding, metric: Metric) -> AtPlace {
    let wrong = below_own_threads(&finding.head.host, phase).filter(|_| metric.is_of_whole_machine());
    let figure = phase.figures.of(metric);
    let unknown = || figure.why_not.unwrap_or_else(|| "it is unknown; a caveat or the meters say why".to_owned());
    let change = || {
        let then = phase.stored.as_ref().ok_or("the stored record has no such phase")?;
        let then = then.get(metric.name()).and_then(|then| then.change);
        Ok(then.ok_or("it is unknown of one of the two, or another meter gave it")?)
    };
    AtPlace {
        cell: if finding.phases.len() > 1 { phase.jobs.join(", ") } else { String::new() },
        arm: String::new(),
        // What is not told from the background is within its interval all the same.
        value: wrong.map_or_else(|| figure.estimate.ok_or_else(unknown), Err),
        change: finding.head.stored.is_some().then(change),
    }
}

#[cfg(test)]
mod tests;
