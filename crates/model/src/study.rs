//! Computes a finding from a record: every derived number comes from raw readings, and can be recomputed.

mod accounts;
pub(crate) mod against_stored;
pub mod caveats;
pub(crate) mod events;
mod job;
mod net_cost;
pub(crate) mod page_cache;
pub mod placement;
pub mod probes;
pub mod regimes;
mod series;
pub(crate) mod windows;

use crate::account::BUSY_OTHERS;
use crate::account::named::others_of;
use crate::elided_list::distinct;
use crate::events::{CONTEXT_SWITCHES, Events};
use crate::experiment::Metric;
use crate::finding::{
    CarryingUnit, Figure, JobFinding, MeterFinding, MeterReading, OthersFinding, PhaseFinding, RunFinding,
    SpreadFinding,
};
use crate::kind::{Envelope, Extent, Head, Kind, Misplaced, Recorded};
use crate::limit::{AtPlace, Quantity};
use crate::plan::JobPlan;
use crate::profile;
use crate::record::lines::{self, Line};
use crate::record::{Execution, Host, IoInterval, JobRecord, Meter, MeterStatus, Mode, PhaseRecord, Record, Source};
use crate::stats::Estimate;
use crate::stored::Stored;
use crate::stored::machine::Machine;
use crate::unit::{Hertz, Nanos};
use accounts::Total;
use caveats::below_own_threads;
use net_cost::{BackgroundRates, Cost, Per, Rate, Work, per_work};
use std::collections::{BTreeMap, BTreeSet};
pub use windows::io_seconds;
use windows::{BusyTime, WorkloadThreads, windows};

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
        finding
    }

    fn quantities() -> Vec<Quantity> {
        Metric::quantities()
    }

    /// Costs and rates are estimates, with the interval over windows or executions. Latencies and the duration of one execution are
    /// facts about this measurement: every I/O of it was counted. A fact decides a limit on its value, but not on a change, because
    /// one of a kind shows no spread.
    fn at_places(&self, finding: &RunFinding, _: Option<&Stored<Self>>, metric: &str) -> Vec<AtPlace> {
        match Metric::parse(metric) {
            Some(metric) if metric.is_latency() => {
                finding.merged_jobs.iter().map(|job| of_job(finding, job, metric)).collect()
            }
            Some(metric) => finding.phases.iter().map(|phase| of_phase(finding, phase, metric)).collect(),
            None => Vec::new(),
        }
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
        phases: with_jobs(record).map(|(phase, jobs)| phase_finding(phase, jobs, record, &rates)).collect(),
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

/// Why a phase with two regimes has no rate.
const STEPPED: &str = "the rate stepped, so no one mean describes it";

/// The cost of a phase by one meter, per I/O, byte and second.
#[derive(Clone, Copy, Debug, Default)]
struct Costs {
    per_io: Option<Cost>,
    per_byte: Option<Cost>,
    per_second: Option<Cost>,
}

impl Costs {
    fn by(meter: Meter, executions: &[Execution], rates: &BackgroundRates) -> Self {
        let per = |per| cost(executions, meter, per, rates);
        Self { per_io: per(Per::Io), per_byte: per(Per::Byte), per_second: per(Per::Second) }
    }

    /// Of what belongs to the load by its name, from the windows of exact accounts. Nothing is subtracted from it as a whole, but what is taken
    /// off its parts has an error.
    fn by_name(executions: &[Execution], rates: &BackgroundRates) -> Self {
        let seen =
            |execution: &Execution| Some(accounts::of_the_load(execution, rates)).filter(|windows| !windows.is_empty());
        let per = |per| per_work(executions, per, rates.error_by_name(), seen);
        Self { per_io: per(Per::Io), per_byte: per(Per::Byte), per_second: per(Per::Second) }
    }
}

/// The result of each meter, or the reason why it did not run.
type Readings<'a> = Vec<(Meter, Result<Costs, &'a str>)>;

/// `jobs` are those of the plan, if known.
fn phase_finding(
    phase: &PhaseRecord,
    jobs: Option<&[JobPlan]>,
    record: &Record,
    rates: &BackgroundRates,
) -> PhaseFinding {
    let Record { meters, probes: asked, background, .. } = record;
    let executions = &phase.executions;
    let work = Work::of(executions);
    let readings = readings(executions, meters, rates);
    let headline = headline(&readings);
    let by_level = headline.map(|(_, costs)| costs).unwrap_or_default();
    let others = accounts::others_part(executions);
    // Without their rates before and after, what serves everybody would be charged to the load.
    let by_name = others.filter(|_| rates.accounts().is_some()).map(|_| Costs::by_name(executions, rates));
    // On a quiet machine all windows give the narrower interval; on a busy one, what others do would be in it, or in the level that is
    // subtracted from it.
    let others_before = rates.accounts().map(others_of);
    let busy = [others, others_before].into_iter().flatten().any(|part| part > BUSY_OTHERS);
    let named = by_name.filter(|named| (busy || headline.is_none()) && named.per_second.is_some());
    let Costs { per_io, per_byte, per_second } = named.unwrap_or(by_level);
    let headline = headline.map(|(meter, _)| meter);
    // Without a meter of the whole machine, only the own threads have an interval.
    let of_threads = readings.iter().find(|(meter, _)| *meter == Meter::Thread);
    let of_threads = of_threads.and_then(|(_, costs)| costs.ok()?.per_io);
    let net = per_io.map(|cost| cost.net);
    let thread = thread_cycles_per_io(executions, work.ios, rates);
    let switches = net_cost::switches(executions, rates);
    let cycles_outside_io = outside(executions, headline, rates);
    let busy_cpus = |cycles_per_second: f64| cycles_per_second / rates.context.clock.0;
    let an_execution = work.wall_seconds / executions.len().max(1) as f64;

    let total = net.map(|net| Total { net: net.value, by_name: named.is_some(), meter: headline });
    let regimes = match executions.as_slice() {
        [execution] => regimes::study(execution, headline, rates),
        several => regimes::of_executions(several, headline, rates),
    };
    let accounts = accounts::study(executions, total, work.ios, cycles_outside_io, rates);
    let mut counted = events::study(record, executions);
    // Both count the same; on one sheet it is one figure.
    if counted.per_io.remove(CONTEXT_SWITCHES).is_some() {
        counted.per_io.extend(switches.estimate.map(|net| (CONTEXT_SWITCHES.to_owned(), net)));
    }
    let told = |estimate| Figure { estimate, why_not: None };
    let figures = [
        (Metric::CyclesPerIo, told(net)),
        (Metric::CyclesPerByte, told(per_byte.map(|cost| cost.net))),
        (Metric::Iops, told(work.rate(work.counted_ios, executions, |done| done.ios, JobRecord::ios))),
        (
            Metric::BytesPerSecond,
            told(work.rate(work.counted_bytes, executions, |done| done.bytes.0, |job| job.bytes().0)),
        ),
        (Metric::ContextSwitchesPerIo, switches),
        (Metric::ThreadCyclesPerIo, told(thread)),
        (Metric::Cycles, told(per_second.map(|cost| cost.net.scaled(an_execution)))),
        (Metric::Seconds, told(net_cost::seconds(executions))),
    ];
    let functions = profile::study(executions, &accounts, net);
    let basis = per_io.or(per_second);
    let mut found = PhaseFinding {
        jobs: distinct(executions.iter().flat_map(|execution| &execution.jobs).map(|job| job.name.clone())),
        groups: groups(executions),
        wall_seconds: work.wall_seconds,
        ios: work.ios,
        bytes: work.bytes,
        figures: figures.into_iter().collect(),
        headline_meter: headline.map(|meter| meter.name().to_owned()),
        others: OthersFinding {
            cycles_per_io_gross: by_level.per_io.map(|cost| cost.gross),
            busy_cpus_gross: by_level.per_second.map(|cost| busy_cpus(cost.gross)),
            cycles_per_io_by_level: by_level.per_io.map(|cost| cost.net),
            cycles_per_io_by_name: by_name.and_then(|named| named.per_io).map(|cost| cost.net),
            known_by_name: named.is_some(),
            others_busy_fraction: others,
            others_busy_fraction_before: others_before,
        },
        spread: SpreadFinding {
            interval_from: match named {
                Some(_) if basis.is_some_and(|cost| cost.net.low.is_none()) => {
                    "too few windows of the accounts".to_owned()
                }
                Some(_) => "the spread of the windows of the accounts within this measurement".to_owned(),
                None => interval_from(executions, basis.or(of_threads)),
            },
            carried_by: basis.and_then(carried_by),
            correlation: basis.and_then(|cost| cost.correlation),
        },
        busy_cpus: per_second.map(|cost| busy_cpus(cost.net.value)),
        threads_on_cpu_fraction: threads_on_cpu(executions, work.wall_seconds),
        by_meter: BTreeMap::new(),
        by_meter_detail: readings.iter().map(|reading| detail(reading, thread, &work, executions, rates)).collect(),
        accounts,
        functions,
        counted,
        exits: executions.iter().filter_map(|execution| execution.exit).collect(),
        cycles_outside_io,
        regimes,
        page_cache: page_cache::page_cache(executions, jobs),
        placement: placement::study(executions, jobs, headline, rates),
        probes: probes::study(asked, executions, background),
        progress: phase.executions.first().map(series::progress).unwrap_or_default(),
        series: series::study(executions, headline, rates),
        stored: None,
    };
    if !page_cache::makes_regimes(found.page_cache.as_ref()) {
        // For a command whose I/Os are not counted live, the regimes are those of its reads from storage.
        found.regimes.retain(|regime| regime.iops.is_some());
    }
    if !found.has_one_rate() {
        for rate in [Metric::Iops, Metric::BytesPerSecond] {
            found.figures.withhold(rate, STEPPED);
        }
    }
    if regimes::are_loads_apart(&found.regimes) {
        regimes::withhold_means(&mut found);
    }
    let by_meter = |reading: &MeterReading| (reading.name.clone(), reading.cycles_per_io.map(|cycles| cycles.value));
    found.by_meter = found.by_meter_detail.iter().map(by_meter).collect();
    found
}

/// The cost of an I/O in a part of an execution.
fn cost_within(execution: &Execution, interval: IoInterval, meter: Meter, rates: &BackgroundRates) -> Option<Estimate> {
    // Without counts in the snapshots, a part would get a share proportional to time, which is wrong if the rate
    // differs.
    execution.stretch.snapshots.iter().find(|snapshot| snapshot.done.is_some())?;
    let part = Execution { io_interval: Some(interval), ..execution.clone() };
    cost_of(std::slice::from_ref(&part), meter, rates)
}

/// The cost of an I/O in some of the executions.
fn cost_of(executions: &[Execution], meter: Meter, rates: &BackgroundRates) -> Option<Estimate> {
    cost(executions, meter, Per::Io, rates).map(|cost| cost.net)
}

fn readings<'a>(executions: &[Execution], meters: &'a [MeterStatus], rates: &BackgroundRates) -> Readings<'a> {
    let never_idle = rates.never_idle();
    let reading = |status: &'a MeterStatus| match status.status.reason() {
        Some(reason) => (status.meter, Err(reason)),
        None if never_idle && status.meter.sees_whole_machine() => {
            (status.meter, Err("the machine was never idle, so the workload's cost cannot be seen"))
        }
        None => (status.meter, Ok(Costs::by(status.meter, executions, rates))),
    };
    meters.iter().map(reading).collect()
}

/// The most trusted meter with a result, and its costs.
fn headline(readings: &Readings) -> Option<(Meter, Costs)> {
    let found = |wanted: Meter| {
        let mut of_it = readings.iter().filter(|(meter, _)| *meter == wanted).filter_map(|(_, costs)| costs.ok());
        of_it.find(|costs| costs.per_second.is_some()).map(|costs| (wanted, costs))
    };
    Meter::by_trust().find_map(found)
}

fn detail(
    (meter, costs): &(Meter, Result<Costs, &str>),
    thread: Option<Estimate>,
    work: &Work,
    executions: &[Execution],
    rates: &BackgroundRates,
) -> MeterReading {
    let name = meter.name().to_owned();
    let none = MeterReading { name, cycles_per_io: None, cycles_per_execution: None, seconds: 0.0, reason: None };
    // The total CPU time of a command is known even if no window has it.
    let is_thread = *meter == Meter::Thread;
    let total = thread.filter(|_| is_thread);
    let reason = match (costs.map(|costs| costs.per_io), total) {
        (Ok(Some(cost)), _) => {
            return MeterReading { cycles_per_io: Some(cost.net), seconds: cost.seconds, ..none };
        }
        (_, Some(total)) => {
            return MeterReading { cycles_per_io: Some(total), seconds: work.wall_seconds, ..none };
        }
        (Err(reason), None) => reason,
        (Ok(None), None) if work.ios.is_none() => "the number of I/Os is unknown",
        (Ok(None), None) => absence(*meter),
    };
    let executed = executions.len().max(1) as f64;
    let per_second = costs.ok().and_then(|costs| costs.per_second);
    let (cycles_per_execution, seconds) = if work.ios.is_some() {
        (None, 0.0)
    } else if is_thread {
        let nanos: Option<Nanos> = executions.iter().map(|execution| execution.command_cpu_nanos).sum();
        let cycles = |nanos: Nanos| Estimate::bare(nanos.seconds() * rates.context.clock.0 / executed);
        (nanos.map(cycles), work.wall_seconds)
    } else {
        let cycles = per_second.map(|cost| cost.net.scaled(work.wall_seconds / executed));
        (cycles, per_second.map_or(0.0, |cost| cost.seconds))
    };
    let seconds = cycles_per_execution.map_or(0.0, |_| seconds);
    MeterReading { cycles_per_execution, seconds, reason: Some(reason.to_owned()), ..none }
}

/// Why a meter that ran has no result.
fn absence(meter: Meter) -> &'static str {
    if meter.disturbs() {
        "too few own windows, or I/Os only counted in total: run longer, use a longer --background, or select only this meter"
    } else {
        "no complete window was read"
    }
}

/// Number of groups of jobs of which it is not known that they ran at the same time.
fn groups(executions: &[Execution]) -> u32 {
    let of = |execution: &Execution| {
        // Records of earlier versions have the number of a group of fio as that of a copy.
        let number =
            |job: &JobRecord| if job.engine.starts_with("fio") { (job.group, job.copy) } else { (job.group, 0) };
        execution.jobs.iter().map(number).collect::<BTreeSet<_>>().len()
    };
    u32::try_from(executions.iter().map(of).max().unwrap_or(0)).unwrap_or(u32::MAX).max(1)
}

fn interval_from(executions: &[Execution], cost: Option<Cost>) -> String {
    match cost {
        Some(cost) if cost.units < 2 => "the run was too short for two windows".to_owned(),
        Some(cost) if executions.len() > 1 => {
            format!("the spread of {} executions, and the background's error", cost.units)
        }
        Some(cost) => format!(
            "the spread of {} groups of windows within one execution, and the background's error; \
             excludes the variation between executions",
            cost.units
        ),
        None => "no meter gave a cost".to_owned(),
    }
}

fn carried_by(cost: Cost) -> Option<CarryingUnit> {
    let dominant = cost.dominant?;
    Some(CarryingUnit { number: dominant.place + 1, of: cost.units, part: dominant.part })
}

/// The phase's cost by one meter.
fn cost(executions: &[Execution], meter: Meter, per: Per, rates: &BackgroundRates) -> Option<Cost> {
    let rate = match rates.of(meter) {
        Some(rate) => rate,
        // The thread clock does not see the background. If no background was measured, every cost is gross, and a
        // caveat says so.
        None if meter == Meter::Thread || !rates.watched() => Rate::default(),
        None => return None,
    };
    let seen = |execution: &Execution| {
        let found = windows(execution, meter, execution.io_interval, &rates.context);
        let alone = execution.stretch.snapshots.iter().all(|snapshot| snapshot.mode != Mode::Quiet);
        // If only the rate of the whole execution is known, it does not apply to the windows of this meter.
        let uncounted = meter.disturbs() && per != Per::Second && !alone && found.iter().any(|it| it.done.is_none());
        (!uncounted).then_some(found)
    };
    per_work(executions, per, rate, seen)
}

/// Cycles per I/O that the workload's own threads used: iotoll's workers, or a command with all its children. A meter that disturbs the load
/// raises their cost in its windows. The headline leaves those windows out, so this figure does too, where iotoll read the threads' clocks at
/// the boundaries of windows.
fn thread_cycles_per_io(executions: &[Execution], ios: Option<u64>, rates: &BackgroundRates) -> Option<Estimate> {
    let in_windows = cost(executions, Meter::Thread, Per::Io, rates).map(|cost| cost.net);
    in_windows.filter(|own| own.value > 0.0).or_else(|| {
        let nanos: Nanos = executions.iter().map(Execution::own_nanos).sum::<Option<Nanos>>()?;
        let own = BusyTime::<WorkloadThreads>::from_nanos(nanos.as_f64()).cycles(rates.context.clock);
        own.per(ios?).map(Estimate::bare)
    })
}

/// Fraction of the time that the workload's own threads were on a CPU.
fn threads_on_cpu(executions: &[Execution], wall_seconds: f64) -> Option<f64> {
    let jobs = || executions.iter().flat_map(|execution| &execution.jobs);
    let threads = jobs().count() as f64 / executions.len().max(1) as f64;
    let nanos = match windows::own_in_interval(executions) {
        Some(own) => own.nanos,
        None => jobs().map(|job| job.thread_nanos).sum::<Option<Nanos>>()?.as_f64(),
    };
    (threads > 0.0 && wall_seconds > 0.0).then(|| nanos / 1e9 / wall_seconds / threads)
}

/// Net cycles of a command before and after its I/O.
fn outside(executions: &[Execution], headline: Option<Meter>, rates: &BackgroundRates) -> Option<f64> {
    let meter = headline?;
    let rate = rates.of(meter).map_or(0.0, |rate| rate.cycles_per_capacity_second);
    let net = |execution: &Execution, interval: Option<IoInterval>| -> f64 {
        let found = windows(execution, meter, interval, &rates.context);
        found.iter().map(|window| window.cycles - rate * window.capacity_seconds).sum()
    };
    let mut cycles = None;
    for execution in executions.iter().filter(|execution| execution.command_cpu_nanos.is_some()) {
        let interval = execution.io_interval?;
        let inside = net(execution, Some(interval));
        *cycles.get_or_insert(0.0) += net(execution, None) - inside;
    }
    cycles
}

#[cfg(test)]
mod tests;
