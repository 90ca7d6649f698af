//! Caveats that follow from the numbers: what a careful reader would ask about. Those of comparisons
//! (`comparison/study/caveats.rs`) begin at the same thresholds.

use super::Context;
use super::io_time::{io_seconds, own_in_interval};
use super::windows::{Window, steal_taken_off, windows};
use super::{placement, regimes};
use crate::finding::{JobFinding, PhaseFinding, RunFinding};
use crate::placement::Place;
use crate::record::{Canaries, Execution, Meter, Outcome, PhaseRecord, Record};
use crate::warning::{Code, Warning, gravest_first};

/// A background busier than this is worth a word: its own variation then shows in the result.
pub(crate) const BUSY_BACKGROUND: f64 = 0.05;
/// A machine busier than this without the workload has no idle time left in which a workload could be seen.
pub(crate) const NEVER_IDLE: f64 = 0.95;
/// A background that moved by this part of the machine between before and after.
const MOVED_BACKGROUND: f64 = 0.02;
/// From here on no CPU had time to spare, and the background's work was squeezed by the load.
pub(crate) const SATURATED: f64 = 0.98;
/// A background smaller than this, held up by a load, is of no interest.
const SQUEEZABLE: f64 = 0.01;
/// Time stolen by the hypervisor, as a part of the machine's capacity.
pub(crate) const STOLEN: f64 = 0.005;
/// Meters that should agree and differ by more than this.
const DISAGREEMENT: f64 = 0.03;
/// A load on its CPUs this part of the time does not sleep, so that all meters must agree on it.
const AWAKE: f64 = 0.97;
/// A canary that moved by more than this. On a shared host they move by a third without anything to see in
/// longer measurements.
const CANARY_MOVED: f64 = 0.5;
/// Windows whose rate differs this much (coefficient of variation) have no one mean.
const UNSTEADY: f64 = 0.25;

/// Adds the caveats and puts the gravest first.
pub(super) fn add(record: &Record, finding: &mut RunFinding) {
    let mut found = Vec::new();
    outcome(finding, &mut found);
    meters(finding, &mut found);
    background(record, finding, &mut found);
    steal(record, finding, &mut found);
    for phase in &finding.phases {
        phase_caveats(phase, record.place.as_ref(), &mut found);
    }
    found.extend(placement::elsewhere_in(record));
    agreement(finding, &mut found);
    for job in &finding.jobs {
        few_samples(job, &mut found);
    }
    canaries(&finding.canaries, &mut found);
    found.append(&mut finding.warnings);
    gravest_first(&mut found);
    finding.warnings = found;
}

fn outcome(finding: &RunFinding, found: &mut Vec<Warning>) {
    match &finding.outcome {
        Outcome::Completed => {}
        Outcome::Interrupted => {
            let message = "interrupted: the figures are of what was measured until then";
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
        let message = "no meter sees the whole machine here, so its cost is unknown; `iotoll doctor` says why";
        found.push(Warning::new(Code::MeterUnavailable, message));
    }
    if finding.phases.iter().any(|phase| phase.ios.is_none()) {
        let message = match finding.jobs.is_empty() {
            true => "the number of I/Os is not known, so there is no cost per I/O; give --ios, --bytes or --count",
            false => "no I/O was counted, so there is no cost per I/O; did what counts them count what was done?",
        };
        found.push(Warning::new(Code::WorkUnknown, message));
    }
}

fn background(record: &Record, finding: &RunFinding, found: &mut Vec<Warning>) {
    let background = &finding.background;
    let percent = |fraction: f64| format!("{:.1} %", fraction * 100.0);
    let Some(busy) = background.busy_fraction else {
        if record.background.is_empty() && finding.phases.iter().any(|phase| phase.cycles.is_some()) {
            let message = "the background was not watched, so costs are gross";
            found.push(Warning::new(Code::Unknown, message));
        }
        return;
    };
    if busy > BUSY_BACKGROUND {
        let tasks: Vec<String> = background.tasks.iter().take(3).map(|task| task.name.clone()).collect();
        let consequence = match busy > NEVER_IDLE {
            true => "what a workload adds to that cannot be seen, so its cost is not known; stop that first",
            false => "stop that for a narrower interval",
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
            "the background was {} busy before and {} after; the interval allows for it",
            percent(before),
            percent(after)
        );
        found.push(Warning::new(Code::BackgroundMoved, message));
    }
    let cpus = finding.host.cpus as f64;
    let full = |phase: &PhaseFinding| phase.busy_cpus_gross.is_some_and(|busy| busy > SATURATED * cpus);
    let below_own = |phase: &PhaseFinding| {
        phase.cycles_per_io.zip(phase.thread_cycles_per_io).is_some_and(|(net, own)| net < own * (1.0 - DISAGREEMENT))
    };
    if let Some((net, own)) =
        finding.phases.iter().filter(|phase| below_own(phase) && !full(phase) && busy <= BUSY_BACKGROUND).find_map(
            |phase| {
                // cpuidle takes the interrupts that wake a sleeper for idle, and clocks that hold steal are above what it is taken off of.
                let known = phase.headline_meter.as_deref() == Some(Meter::Idle.name())
                    || record.host.steal_in_task_clocks == Some(true);
                if known {
                    return None;
                }
                // What the meters cannot tell from it is no disagreement.
                let high = phase.cycles_per_io_high.or(phase.cycles_per_io)?;
                phase.thread_cycles_per_io.filter(|own| high < *own).map(|own| (high, own))
            },
        )
    {
        let message = format!(
            "the workload's own threads used {own:.0} cycles an I/O, and the machine is said to have paid {net:.0} at most, which cannot be: \
             the I/Os, or the time in which they were done, are not what they are taken for"
        );
        found.push(Warning::new(Code::MetersDisagree, message));
    }
    let squeezed = finding.phases.iter().find(|phase| full(phase) || below_own(phase) && busy > BUSY_BACKGROUND);
    if let Some(phase) = squeezed.filter(|_| busy > SQUEEZABLE) {
        let between = match (phase.thread_cycles_per_io, phase.cycles_per_io_gross) {
            (Some(own), Some(gross)) => {
                format!("; its own threads used {own:.0}, gross is {gross:.0}, and neither is a bound")
            }
            _ => String::new(),
        };
        let message = format!(
            "the load left the background ({} of the machine) less time than it had before, so subtracting all of it \
             says too little{between}",
            percent(busy)
        );
        found.push(Warning::new(Code::BackgroundSqueezed, message));
    }
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
    let costs: Vec<(f64, f64)> =
        costs.filter_map(|(phase, found)| taken_off(record, phase, found).zip(found.cycles_per_io_gross)).collect();
    // A load that uses little of the machine loses much of its cost to little steal.
    let matters = costs.iter().any(|(taken, gross)| *taken > DISAGREEMENT * (taken + gross));
    if capacity <= 0.0 || stolen / capacity <= STOLEN && !matters {
        return;
    }
    let left_out = match costs.iter().map(|(taken, _)| *taken).fold(0.0, f64::max) {
        cost if cost >= 0.5 => format!("for that {cost:.0} cycles an I/O"),
        _ => "for that cycles".to_owned(),
    };
    let message = format!(
        "the hypervisor took {:.1} % of the CPU time away; {left_out} that no task is known to have used are left out of the cost, which is \
         too low as far as interrupts or tasks that ended did; times are as they were",
        stolen / capacity * 100.0
    );
    found.push(Warning::new(Code::Steal, message));
}

/// Cycles an I/O that the headline leaves out because a hypervisor took them.
fn taken_off(record: &Record, phase: &PhaseRecord, found: &PhaseFinding) -> Option<f64> {
    let meter = found.headline_meter.as_deref().and_then(Meter::named)?;
    let context = Context::of(&record.host);
    // The windows do not cover all of the time; what they show is a rate.
    let taken = |execution: &Execution| {
        let seconds: f64 = windows(execution, meter, execution.io_interval, &context).iter().map(Window::seconds).sum();
        (seconds > 0.0).then(|| steal_taken_off(execution, meter, &context) / seconds * io_seconds(execution))
    };
    let cycles: f64 = phase.executions.iter().map(taken).sum::<Option<f64>>()?;
    let ios = own_in_interval(&phase.executions).map_or_else(|| found.ios.unwrap_or(0) as f64, |own| own.ios);
    (ios > 0.0).then(|| cycles / ios)
}

fn phase_caveats(phase: &PhaseFinding, place: Option<&Place>, found: &mut Vec<Warning>) {
    let jobs = phase.jobs.join(", ");
    if phase.cycles_per_io.is_some() && phase.cycles_per_io_low.is_none() {
        let message = format!("{jobs}: too short for an interval; run it longer");
        found.push(Warning::new(Code::NoInterval, message));
    }
    let two_places = placement::caveat(phase, &jobs, place);
    let explained = two_places.is_some();
    found.extend(two_places);
    if let Some(warning) = regimes::caveat(phase, &jobs) {
        found.push(warning);
        // That one mean does not describe it has been said, with the reason.
        return;
    }
    let metered = phase.series.iter().filter(|point| point.busy_cpus.is_some());
    let rates: Vec<f64> = metered.filter_map(|point| point.iops).collect();
    if let Some(variation) = variation(&rates).filter(|variation| *variation > UNSTEADY && !explained) {
        let message = format!(
            "{jobs}: I/Os per second vary by {:.0} % from window to window, so one mean does not describe it",
            variation * 100.0
        );
        found.push(Warning::new(Code::UnsteadyLoad, message));
    }
}

/// Standard deviation ÷ mean; `None` for fewer than five values.
fn variation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() >= 5 && mean > 0.0).then(|| (square / (count - 1.0)).sqrt() / mean)
}

/// Two definitions of idle need not agree on a load that sleeps; on one that does not, they must.
fn agreement(finding: &RunFinding, found: &mut Vec<Warning>) {
    for phase in &finding.phases {
        let Some(net) = phase.cycles_per_io else { continue };
        if phase.threads_on_cpu_fraction.is_none_or(|fraction| fraction < AWAKE) {
            continue;
        }
        for reading in &phase.by_meter_detail {
            let Some(other) = reading.cycles_per_io else { continue };
            let apart = (other.value / net - 1.0).abs() > DISAGREEMENT;
            let overlap = match (phase.cycles_per_io_low, phase.cycles_per_io_high, other.low, other.high) {
                (Some(low), Some(high), Some(other_low), Some(other_high)) => other_low <= high && low <= other_high,
                _ => false,
            };
            if apart && !overlap && reading.name != Meter::Thread.name() {
                let message = format!(
                    "{}: {} says {:.0} cycles per I/O and {} {net:.0}, on a load that does not sleep; trust neither to \
                     better than their distance",
                    phase.jobs.join(", "),
                    reading.name,
                    other.value,
                    phase.headline_meter.as_deref().unwrap_or("the headline meter"),
                );
                found.push(Warning::new(Code::MetersDisagree, message));
            }
        }
    }
}

fn few_samples(job: &JobFinding, found: &mut Vec<Warning>) {
    let latency = &job.latency_ns;
    let missing = if latency.p50.is_none() { "p50" } else { "p99" };
    if job.ios > 0 && latency.mean.is_some() && latency.p99.is_none() {
        let message = format!("{}: {} I/Os are too few to tell {missing}", job.name, job.ios);
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
                "{what} took {:+.0} % longer after the run than before: the machine changed speed",
                change * 100.0
            );
            found.push(Warning::new(Code::CanaryMoved, message));
        }
    }
}
