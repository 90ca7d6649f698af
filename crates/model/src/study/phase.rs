//! The common cost of the jobs of a phase.

use super::accounts::{self, Total};
use super::net::{self, BackgroundRates, Cost, Per, Rate, per_work, total};
use super::windows::{self, growth, io_seconds, windows};
use super::{events, page_cache, placement, probes, regimes, series, symbols};
use crate::account::BUSY_OTHERS;
use crate::account::named::others_of;
use crate::elided_list::distinct;
use crate::events::CONTEXT_SWITCHES;
use crate::experiment::Metric;
use crate::finding::{CarryingUnit, Figure, MeterReading, OthersFinding, PhaseFinding, SpreadFinding};
use crate::meter::{BusyTime, WorkloadThreads};
use crate::plan::JobPlan;
use crate::record::{Done, Execution, IoInterval, JobRecord, Meter, MeterStatus, Mode, PhaseRecord, Record, Snapshot};
use crate::stats::Estimate;
use crate::unit::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// Why a phase with two regimes has no rate.
pub(super) const STEPPED: &str = "the rate stepped, so no one mean describes it";

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

/// The work done. The counts are those of the jobs; rates come from the snapshots if they have the work, because jobs
/// may start counting at different times.
struct Work {
    ios: Option<u64>,
    bytes: Option<u64>,
    wall_seconds: f64,
    counted_ios: Option<f64>,
    counted_bytes: Option<f64>,
}

impl Work {
    fn of(executions: &[Execution]) -> Self {
        let jobs = || executions.iter().flat_map(|execution| &execution.jobs);
        let (ios, bytes) = (total(jobs(), JobRecord::ios), total(jobs(), |job| job.bytes().0));
        let counted = |total: Option<u64>, of: fn(&Done) -> u64| {
            let read = |snapshot: &Snapshot| snapshot.done.map(|done| (snapshot.at_nanos, of(&done)));
            let counted: Option<f64> = executions.iter().map(|execution| growth(execution, read)).sum();
            total.map(|total| counted.unwrap_or(total as f64))
        };
        Self {
            ios,
            bytes,
            wall_seconds: executions.iter().map(io_seconds).sum(),
            counted_ios: counted(ios, |done| done.ios),
            counted_bytes: counted(bytes, |done| done.bytes.0),
        }
    }

    /// Work per second, of which `counted` is in the time of I/O. Where snapshots do not have it, it is that of the `jobs`.
    fn rate(
        &self,
        counted: Option<f64>,
        executions: &[Execution],
        done: fn(&Done) -> u64,
        jobs: fn(&JobRecord) -> u64,
    ) -> Option<Estimate> {
        let value = counted.filter(|_| self.wall_seconds > 0.0)? / self.wall_seconds;
        let whole = |execution: &Execution| total(execution.jobs.iter(), jobs);
        Some(net::rate_of_work(value, executions, done, whole))
    }
}

/// `jobs` are those of the plan, if known.
pub(super) fn study(
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
    let switches = net::switches(executions, rates);
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
        (Metric::Seconds, told(net::seconds(executions))),
    ];
    let functions = symbols::study(executions, &accounts, net);
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
pub(super) fn cost_within(
    execution: &Execution,
    interval: IoInterval,
    meter: Meter,
    rates: &BackgroundRates,
) -> Option<Estimate> {
    // Without counts in the snapshots, a part would get a share proportional to time, which is wrong if the rate
    // differs.
    execution.stretch.snapshots.iter().find(|snapshot| snapshot.done.is_some())?;
    let part = Execution { io_interval: Some(interval), ..execution.clone() };
    cost_of(std::slice::from_ref(&part), meter, rates)
}

/// The cost of an I/O in some of the executions.
pub(super) fn cost_of(executions: &[Execution], meter: Meter, rates: &BackgroundRates) -> Option<Estimate> {
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
pub(super) fn thread_cycles_per_io(
    executions: &[Execution],
    ios: Option<u64>,
    rates: &BackgroundRates,
) -> Option<Estimate> {
    let in_windows = cost(executions, Meter::Thread, Per::Io, rates).map(|cost| cost.net);
    in_windows.filter(|own| own.value > 0.0).or_else(|| {
        let nanos: Nanos = executions.iter().map(Execution::own_nanos).sum::<Option<Nanos>>()?;
        let ios = ios.filter(|ios| *ios > 0)?;
        let cycles = BusyTime::<WorkloadThreads>::from_nanos(nanos.as_f64()).cycles(rates.context.clock).count();
        Some(Estimate::bare(cycles / ios as f64))
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
