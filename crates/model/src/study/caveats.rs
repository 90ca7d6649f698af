//! Caveats that follow from the numbers of a run. Comparisons (`verbs/src/compare/study/caveats.rs`) use the same thresholds.

use super::accounts::largest_others;
use super::windows::{Window, io_seconds, own_in_interval, steal_taken_off, windows};
use super::{Context, placement, regimes};
use crate::account::BUSY_OTHERS;
use crate::elided_list::elided_list;
use crate::experiment::Metric;
use crate::finding::{CarryingUnit, JobFinding, PhaseFinding, RunFinding};
use crate::group_limit;
use crate::number::directed;
use crate::placement::Place;
use crate::record::{Canaries, Execution, Holder, Host, Meter, Outcome, PhaseRecord, Record};
use crate::warning::{Code, Warning, gravest_first};

/// Busy fraction of the background above which there is a caveat: its variation then affects the result.
pub const BUSY_BACKGROUND: f64 = 0.05;
/// Busy fraction of the idle machine above which the added load of a workload cannot be seen.
pub(crate) const NEVER_IDLE: f64 = 0.95;
/// Difference between the background before and after, as a fraction of the machine, above which there is a caveat.
const MOVED_BACKGROUND: f64 = 0.02;
/// Busy fraction above which all CPUs count as busy, so that the load squeezes the background.
pub const SATURATED: f64 = 0.98;
/// Smaller backgrounds are ignored, even if the load squeezes them.
const SQUEEZABLE: f64 = 0.01;
/// Stolen time, as a fraction of the machine's capacity, above which there is a caveat.
pub const STOLEN: f64 = 0.005;
/// Relative difference between meters above which they disagree.
pub const DISAGREEMENT: f64 = 0.03;
/// On-CPU fraction above which a load counts as not sleeping, so that all meters must agree on it.
const AWAKE: f64 = 0.97;
/// Relative change of a canary above which there is a caveat. On a shared host, canaries move by a third without a
/// visible effect on longer measurements.
const CANARY_MOVED: f64 = 0.5;
/// Part of the I/Os of jobs that may be outside the time of their phase's rate and cost without a caveat.
const OUTSIDE: f64 = 0.05;
/// Coefficient of variation of the rate of windows above which one mean does not describe them.
const UNSTEADY: f64 = 0.25;

/// Adds the caveats, the gravest first.
pub(super) fn add(record: &Record, finding: &mut RunFinding) {
    let mut found = Vec::new();
    outcome(finding, &mut found);
    meters(finding, &mut found);
    background(record, finding, &mut found);
    steal(record, finding, &mut found);
    found.extend(starved(record));
    let executions = record.phases.iter().flat_map(|phase| &phase.executions);
    found.extend(group_limit::caveats(executions.map(Execution::limits), "windows"));
    for phase in &finding.phases {
        phase_caveats(phase, record.place.as_ref(), &mut found);
    }
    found.extend(placement::elsewhere_in(record));
    let reasons = || finding.phases.iter().filter_map(|phase| phase.counted.reason.as_ref());
    found.extend(record.events.iter().flat_map(|events| events.shortfalls(reasons())));
    agreement(finding, &mut found);
    for job in &finding.merged_jobs {
        few_samples(job, &mut found);
        found.extend(packets_lost(job));
        found.extend(loss_unknown(&job.name, job.all.lost.is_some()));
    }
    canaries(&finding.canaries, &mut found);
    found.append(&mut finding.head.warnings);
    gravest_first(&mut found);
    finding.head.warnings = found;
}

fn outcome(finding: &RunFinding, found: &mut Vec<Warning>) {
    match &finding.head.outcome {
        Outcome::Completed => {}
        // The record says how.
        Outcome::Interrupted if finding.head.warnings.iter().any(|warning| warning.code == Code::Interrupted) => {}
        Outcome::Interrupted => {
            let message = "interrupted: the figures cover only the time before the interruption";
            found.push(Warning::new(Code::Interrupted, message));
        }
        Outcome::Failed(why) => {
            let command = finding.phases.iter().any(|phase| !phase.exits.is_empty());
            let code = if command { Code::CommandFailed } else { Code::JobFailed };
            found.push(Warning::new(code, why.clone()));
        }
    }
}

fn meters(finding: &RunFinding, found: &mut Vec<Warning>) {
    let whole = |name: &str| Meter::named(name).is_some_and(Meter::sees_whole_machine);
    if !finding.meters.iter().any(|meter| meter.available && whole(&meter.name)) {
        let message = "no meter of the whole machine is available, so the cost is unknown; see `iotoll doctor`";
        found.push(Warning::new(Code::MeterUnavailable, message));
    }
    let said = finding.head.warnings.iter().any(|warning| warning.code == Code::WorkUnknown);
    if !said && finding.phases.iter().any(|phase| phase.ios.is_none() && phase.bytes.is_none()) {
        let message = match finding.merged_jobs.is_empty() {
            true => "the number of I/Os is unknown, so there is no cost per I/O; use --ios, --bytes or --count",
            false => "no I/O was counted, so there is no cost per I/O; check the source of the count",
        };
        found.push(Warning::new(Code::WorkUnknown, message));
    }
}

/// The cost of a packet that was sent is not that of one that arrived.
fn packets_lost(job: &JobFinding) -> Option<Warning> {
    let of = |lost: Option<u64>| lost.unwrap_or(0);
    let came = job.read.ios.saturating_add(of(job.read.lost));
    lost_packets(&job.name, (of(job.write.lost), job.write.ios), (of(job.read.lost), came))
}

/// The caveat about packets that may have been lost, where `name` does not learn how many.
pub fn loss_unknown(name: &str, is_known: bool) -> Option<Warning> {
    let message = format!(
        "{name}: the number of packets lost is unavailable, because only the other side counts them; measure the side that receives, \
         or read its report"
    );
    (!is_known).then(|| Warning::new(Code::LossUnknown, message))
}

/// Part of the packets that were lost from which on there is a caveat: the default margin of a verdict.
const LOST: f64 = 0.03;

/// The caveat about packets that `name` sent, or that were sent to it: how many were lost, and of how many.
pub fn lost_packets(name: &str, sent: (u64, u64), came: (u64, u64)) -> Option<Warning> {
    let part = |(lost, of): (u64, u64)| if of > 0 { lost as f64 / of as f64 } else { 0.0 };
    let message = if part(sent) > LOST {
        format!(
            "{name}: {:.1} % of the packets that it sent did not arrive ({} of {}); the cost per I/O is that of a packet sent",
            part(sent) * 100.0,
            sent.0,
            sent.1
        )
    } else if part(came) > LOST {
        format!(
            "{name}: {:.1} % of the packets that were sent to it did not arrive ({} of {}); only those that arrived are I/Os",
            part(came) * 100.0,
            came.0,
            came.1
        )
    } else {
        return None;
    };
    Some(Warning::new(Code::PacketsLost, message))
}

/// Why a cost is wrong whose whole interval is below what the load's own threads used: the whole machine cannot have done less.
pub(super) fn below_own_threads(host: &Host, phase: &PhaseFinding) -> Option<String> {
    // cpuidle counts the interrupts that wake a sleeping task as idle, and clocks that contain steal exceed a figure from which steal is
    // subtracted.
    let cpuidle = !phase.others.known_by_name && phase.headline_meter.as_deref() == Some(Meter::Idle.name());
    if cpuidle || host.steal_in_task_clocks == Some(true) {
        return None;
    }
    let net = phase.told(Metric::CyclesPerIo)?;
    let high = net.high.unwrap_or(net.value);
    let own = phase.value(Metric::ThreadCyclesPerIo);
    let own = own.filter(|own| high < *own && net.value < own * (1.0 - DISAGREEMENT))?;
    Some(format!(
        "the workload's own threads used {own:.0} cycles per I/O, but the machine net of its background at most {high:.0}: the background was \
         smaller beside the load than without it (squeezed by it, or at its end), or the number of I/Os or their time is wrong"
    ))
}

fn background(record: &Record, finding: &RunFinding, found: &mut Vec<Warning>) {
    let background = &finding.background;
    let percent = |fraction: f64| format!("{:.1} %", fraction * 100.0);
    let others = finding
        .phases
        .iter()
        .filter(|phase| phase.others.known_by_name)
        .filter_map(|phase| phase.others.others_busy_fraction);
    if let Some(others) = others.reduce(f64::max).filter(|others| *others > BUSY_OTHERS) {
        let executions = record.phases.iter().flat_map(|phase| &phase.executions);
        let message = format!(
            "other processes ({}) used {} of the machine beside the load; they are left out of the cost by their names. If one of them \
             works for the load, start it with --service, or take cycles_per_io_by_level of the JSON{}",
            largest_others(executions).join(", "),
            percent(others),
            kept_at_switches(record, finding)
        );
        found.push(Warning::new(Code::BusyBackground, message));
    }
    let impossible = |phase: &PhaseFinding| {
        below_own_threads(&record.host, phase).map(|why| Warning::new(Code::MetersDisagree, why))
    };
    found.extend(finding.phases.iter().filter(|phase| phase.others.known_by_name).find_map(impossible));
    if finding.phases.iter().all(|phase| phase.others.known_by_name) && !finding.phases.is_empty() {
        return;
    }
    let Some(busy) = background.busy_fraction else {
        if record.background.is_empty() && finding.phases.iter().any(|phase| phase.value(Metric::Cycles).is_some()) {
            let message = "the background was not measured, so costs are gross";
            found.push(Warning::new(Code::Unknown, message));
        }
        return;
    };
    if busy > BUSY_BACKGROUND {
        let tasks: Vec<String> = background.tasks.iter().take(3).map(|task| task.name.clone()).collect();
        let consequence = match busy > NEVER_IDLE {
            true => "the cost of a workload cannot be seen on top of that; stop these tasks first",
            false => "stop these tasks for a narrower interval",
        };
        let message = format!(
            "the machine was {} busy without the workload ({}); {consequence}",
            percent(busy),
            tasks.join(", ")
        );
        found.push(Warning::new(Code::BusyBackground, message));
    }
    if let (Some(before), Some(after)) = (background.busy_fraction_before, background.busy_fraction_after)
        && (before - after).abs() > MOVED_BACKGROUND
    {
        let message = format!(
            "the background was {} busy before the run and {} after, which is in the interval; stop other work",
            percent(before),
            percent(after)
        );
        found.push(Warning::new(Code::BackgroundMoved, message));
    }
    let cpus = finding.head.host.cpus as f64;
    let full = |phase: &PhaseFinding| phase.others.busy_cpus_gross.is_some_and(|busy| busy > SATURATED * cpus);
    let below_own = |phase: &PhaseFinding| {
        let both = phase.cycles_per_io().zip(phase.value(Metric::ThreadCyclesPerIo));
        both.is_some_and(|(net, own)| net < own * (1.0 - DISAGREEMENT))
    };
    found.extend(
        finding
            .phases
            .iter()
            .filter(|phase| !phase.others.known_by_name && !full(phase) && busy <= BUSY_BACKGROUND)
            .find_map(impossible),
    );
    let squeezed = finding.phases.iter().find(|phase| full(phase) || below_own(phase) && busy > BUSY_BACKGROUND);
    if let Some(phase) = squeezed.filter(|_| busy > SQUEEZABLE) {
        let between = match (phase.value(Metric::ThreadCyclesPerIo), phase.others.cycles_per_io_gross) {
            (Some(own), Some(gross)) => {
                format!(
                    "; its own threads used {own:.0} cycles per I/O and gross is {gross:.0}, but neither is a bound"
                )
            }
            _ => String::new(),
        };
        let message = format!(
            "the load displaced background work ({} of the machine), so subtracting the whole background gives a cost that is too \
             low{between}",
            percent(busy)
        );
        found.push(Warning::new(Code::BackgroundSqueezed, message));
    }
}

/// The tasks that kept iotoll from the CPUs at boundaries of windows.
fn starved(record: &Record) -> Option<Warning> {
    let executions = record.phases.iter().flat_map(|phase| &phase.executions);
    let starved = executions.filter_map(|execution| execution.stretch.starved.as_ref());
    let longest = starved.max_by_key(|starved| starved.waited_nanos)?;
    let holder = |it: &Holder| format!("{} (priority {}, CPU {})", it.name, it.priority, it.cpu);
    let holders: Vec<String> = longest.holders.iter().map(holder).collect();
    let why = match (longest.priority, holders.as_slice()) {
        (None, []) => "it has no right to a real-time priority; run as root, or keep a CPU free".to_owned(),
        (Some(own), []) => format!(
            "its real-time priority is {own}; tasks with a higher one held all CPUs, or the machine stood still"
        ),
        (own, several) => {
            let own = own.map_or_else(|| "has no real-time priority".to_owned(), |own| format!("has priority {own}"));
            format!("real-time tasks held them: {}; iotoll {own}", elided_list(several, ", "))
        }
    };
    let waited = longest.waited_nanos.seconds();
    let message = format!(
        "iotoll got no CPU for {waited:.1} s while windows were to end: {why}. Windows are missing, so accounts, functions and intervals may be too"
    );
    Some(Warning::new(Code::Starved, message))
}

fn steal(record: &Record, finding: &RunFinding, found: &mut Vec<Warning>) {
    let stretches = record.phases.iter().flat_map(|phase| &phase.executions).map(|execution| &execution.stretch);
    let (mut stolen, mut capacity) = (0.0, 0.0);
    for stretch in stretches {
        let mut readings = stretch.snapshots.iter().filter_map(|snapshot| snapshot.system);
        if let (Some(first), Some(last)) = (readings.next(), readings.next_back()) {
            stolen += last.steal_nanos.since(first.steal_nanos).seconds();
            capacity += last.at_nanos.since(first.at_nanos).seconds() * record.host.cpus as f64;
        }
    }
    let costs = record.phases.iter().zip(&finding.phases);
    let costs: Vec<(f64, f64)> = costs
        .filter_map(|(phase, found)| taken_off(record, phase, found).zip(found.others.cycles_per_io_gross))
        .collect();
    // On a load that uses little of the machine, a little steal is a large part of the cost.
    let matters = costs.iter().any(|(taken, gross)| *taken > DISAGREEMENT * (taken + gross));
    if capacity <= 0.0 || stolen / capacity <= STOLEN && !matters {
        return;
    }
    let left_out = match costs.iter().map(|(taken, _)| *taken).fold(0.0, f64::max) {
        cost if cost >= 0.5 => format!("{cost:.0} cycles per I/O"),
        _ => "cycles".to_owned(),
    };
    let message = format!(
        "the hypervisor stole {:.1} % of the CPU time; {left_out} that no task is known to have used are left out of the cost. The cost is \
         too low if interrupts or tasks that ended used them; times are not corrected",
        stolen / capacity * 100.0
    );
    found.push(Warning::new(Code::Steal, message));
}

/// A cost by name comes from windows that keep accounts, which takes time at each switch: how much of the cost that is, if it is much.
fn kept_at_switches(record: &Record, finding: &RunFinding) -> String {
    /// At a switch and the wake-up that belongs to it: `cargo run --release -p validation -- accounts` shows 245 ns [166, 325].
    const NANOS: f64 = 245.0;
    /// A smaller part is not told.
    const TOLD: f64 = 0.02;
    let part = |phase: &PhaseFinding| {
        let switches = phase.value(Metric::ContextSwitchesPerIo)?;
        Some(switches * NANOS / 1e9 * record.host.tsc_hertz / phase.cycles_per_io()?)
    };
    let parts = finding.phases.iter().filter(|phase| phase.others.known_by_name).filter_map(part);
    match parts.filter(|part| part.is_finite()).fold(0.0, f64::max) {
        part if part >= TOLD => format!(
            ". Of the cost, some {:.0} % are what keeping accounts adds to its context switches (0.25 µs each)",
            part * 100.0
        ),
        _ => String::new(),
    }
}

/// Cycles per I/O that the headline cost leaves out because the hypervisor stole them.
fn taken_off(record: &Record, phase: &PhaseRecord, found: &PhaseFinding) -> Option<f64> {
    // By name nothing is: stolen time is charged to what it stopped.
    if found.others.known_by_name {
        return None;
    }
    let meter = found.headline_meter.as_deref().and_then(Meter::named)?;
    let context = Context::of(&record.host);
    // The windows cover only a part of the time, so they give a rate.
    let taken = |execution: &Execution| {
        let seconds: f64 = windows(execution, meter, execution.io_interval, &context).iter().map(Window::seconds).sum();
        (seconds > 0.0).then(|| steal_taken_off(execution, meter, &context) / seconds * io_seconds(execution))
    };
    let cycles: f64 = phase.executions.iter().map(taken).sum::<Option<f64>>()?;
    let ios = own_in_interval(&phase.executions).map_or_else(|| found.ios.unwrap_or(0) as f64, |own| own.ios);
    (ios > 0.0).then(|| cycles / ios)
}

/// The jobs of a phase; of a command that reported none, the command.
fn jobs_of(phase: &PhaseFinding) -> String {
    if phase.jobs.is_empty() { "the command".to_owned() } else { phase.jobs.join(", ") }
}

fn phase_caveats(phase: &PhaseFinding, place: Option<&Place>, found: &mut Vec<Warning>) {
    let jobs = jobs_of(phase);
    if phase.told(Metric::CyclesPerIo).is_some_and(|cost| cost.low.is_none()) {
        let message = format!("{jobs}: too short for an interval, or one part has most of the work; run longer");
        found.push(Warning::new(Code::NoInterval, message));
    }
    if phase.exits.is_empty() {
        found.extend(ios_outside(phase, &jobs));
    }
    if let Some(CarryingUnit { number, of, part }) = phase.spread.carried_by {
        let message = format!(
            "{jobs}: part {number} of {of} of the measurement has {:.0} % of the cycles: the mean depends on it, and there are too few \
             such parts to estimate how often they occur; run longer",
            part * 100.0
        );
        found.push(Warning::new(Code::OneUnitCarriesTheMean, message));
    }
    let cause = if group_limit::is_reached(found) { "; the limit of the cgroup may explain it" } else { "" };
    let two_places = placement::caveat(phase, &jobs, place);
    let explained = two_places.is_some();
    found.extend(two_places);
    if let Some(warning) = regimes::caveat(phase, &jobs) {
        found.push(Warning { message: warning.message + cause, ..warning });
        // This caveat already says that one mean does not describe the phase.
        return;
    }
    found.extend(phase.spread.correlation.map(|correlation| {
        let units = if phase.exits.len() > 1 { "executions" } else { "groups of windows" };
        let message = format!(
            "{jobs}: the cost of consecutive {units} is correlated ({correlation:.2}): something that lasts longer than one of them \
             affects it. The interval is wider for that, but a trend is not in it; run longer"
        );
        Warning::new(Code::WindowsCorrelated, message)
    }));
    let metered = phase.series.iter().filter(|point| point.busy_cpus.is_some());
    let rates: Vec<f64> = metered.filter_map(|point| point.iops).collect();
    if let Some(variation) = variation(&rates).filter(|variation| *variation > UNSTEADY && !explained) {
        let message = format!(
            "{jobs}: I/Os per second vary by {:.0} % from window to window, so one mean does not describe it{cause}",
            variation * 100.0
        );
        found.push(Warning::new(Code::UnsteadyLoad, message));
    }
}

/// Jobs count from the end of their own ramp; the phase has a rate and a cost from the end of the last one.
fn ios_outside(phase: &PhaseFinding, jobs: &str) -> Option<Warning> {
    let (ios, within) = (phase.ios? as f64, phase.value(Metric::Iops)? * phase.wall_seconds);
    let outside = (ios - within) / ios;
    let message = format!(
        "{jobs}: {:.0} % of the I/Os that the jobs counted came before the last job had ramped (ramp_time, startdelay): rate and cost of the \
         phase are of the {:.2} s after that; a job behind a stonewall has a phase of its own",
        outside * 100.0,
        phase.wall_seconds
    );
    (outside > OUTSIDE).then(|| Warning::new(Code::IosOutside, message))
}

/// Standard deviation ÷ mean; `None` for fewer than five values.
fn variation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() >= 5 && mean > 0.0).then(|| (square / (count - 1.0)).sqrt() / mean)
}

/// Two definitions of idle may disagree on a load that sleeps, but not on one that does not.
fn agreement(finding: &RunFinding, found: &mut Vec<Warning>) {
    for phase in &finding.phases {
        let Some(net) = phase.told(Metric::CyclesPerIo) else { continue };
        if phase.threads_on_cpu_fraction.is_none_or(|fraction| fraction < AWAKE) {
            continue;
        }
        for reading in &phase.by_meter_detail {
            let Some(other) = reading.cycles_per_io else { continue };
            let apart = (other.value / net.value - 1.0).abs() > DISAGREEMENT;
            let both = net.ends().zip(other.ends());
            let overlap =
                both.is_some_and(|((low, high), (other_low, other_high))| other_low <= high && low <= other_high);
            if apart && !overlap && reading.name != Meter::Thread.name() {
                let message = format!(
                    "{}: meter {} gives {:.0} cycles per I/O and {} {:.0} for a load that does not sleep; neither is more \
                     accurate than their difference",
                    jobs_of(phase),
                    reading.name,
                    other.value,
                    phase.headline_meter.as_deref().unwrap_or("the headline meter"),
                    net.value,
                );
                found.push(Warning::new(Code::MetersDisagree, message));
            }
        }
    }
}

fn few_samples(job: &JobFinding, found: &mut Vec<Warning>) {
    let latency = &job.all.latency_ns;
    let missing = if latency.p50.is_none() { "p50" } else { "p99" };
    // A foreign program may report no percentiles of many I/Os.
    let is_own = latency.bucket_error_fraction.is_some();
    if job.all.ios > 0 && is_own && latency.mean.is_some() && latency.p99.is_none() {
        let message = format!("{}: {} I/Os are too few for {missing}", job.name, job.all.ios);
        found.push(Warning::new(Code::FewSamples, message));
    }
}

fn canaries(canaries: &[Canaries], found: &mut Vec<Warning>) {
    let [before, .., after] = canaries else { return };
    let pairs = [
        ("a null system call", before.null_system_call_nanos, after.null_system_call_nanos),
        ("a clock reading", before.clock_read_nanos, after.clock_read_nanos),
        ("copying memory", 1.0 / before.memcpy_gigabytes_per_second, 1.0 / after.memcpy_gigabytes_per_second),
    ];
    for (what, before, after) in pairs {
        let change = after / before - 1.0;
        if change.is_finite() && change.abs() > CANARY_MOVED {
            let message = format!(
                "{what} took {} time after the run than before it: the machine changed speed",
                directed(change, 0, "more", "less")
            );
            found.push(Warning::new(Code::CanaryMoved, message));
        }
    }
}
