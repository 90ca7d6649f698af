//! The machine in sentences: its hardware, its background, and what a cycle means on it.

use crate::number;
use crate::phrase::tied;
use model::finding::Background;
use model::record::Host;

/// Maximum number of background tasks to name.
const NAMED: usize = 4;
/// Maximum number of mitigations to name.
const MITIGATIONS: usize = 6;

/// What the machine did without the workload.
pub fn background(background: &Background) -> String {
    let percent = |fraction| tied(&number::percent(fraction));
    let Some(busy) = background.busy_fraction else { return format!("{} not measured", number::MISSING) };
    let mut text = format!("{} of the machine", percent(busy));
    if let (Some(low), Some(high)) = (background.busy_fraction_low, background.busy_fraction_high) {
        text += &tied(&format!(" [{}, {}]", percent(low), percent(high)));
    }
    if let Some(before) = background.busy_fraction_before {
        text += &format!(", {} before the workload", percent(before));
    }
    if let Some(after) = background.busy_fraction_after {
        text += &format!(", {} after it", percent(after));
    }
    text += &format!("; measured for {}", tied(&number::seconds(background.seconds)));
    if let Some(switches) = background.context_switches_per_second {
        text += &format!("; {} context switches/s", number::with_unit(number::COUNT, switches));
    }
    let tasks = background.tasks.iter().take(NAMED);
    let tasks: Vec<_> = tasks.map(|task| format!("{} {}", task.name, percent(task.busy_fraction))).collect();
    // The tasks have clocks of their own, whose error may make them more than the whole.
    let together: f64 = background.tasks.iter().take(NAMED).map(|task| task.busy_fraction).sum();
    let of = if together > busy * 1.01 { "by the tasks' own clocks, whose sum is higher:" } else { "mainly" };
    if !tasks.is_empty() {
        text += &format!("; {of} {}", tasks.join(", "));
    }
    text
}

/// The machine in a line.
pub fn machine(host: &Host) -> String {
    let cpus = if host.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", host.cpus) };
    let mut parts = vec![format!("Linux {}", host.kernel), host.cpu_model.clone(), tied(&cpus)];
    parts.extend(host.hypervisor.iter().map(|hypervisor| format!("under {hypervisor}")));
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

pub fn settings(host: &Host) -> String {
    let Host { governor, smt, clocksource, idle_driver, .. } = host;
    format!("governor {governor}, SMT {smt}, clocksource {clocksource}, idle {idle_driver}")
}

/// The names of its mitigations.
pub fn mitigations(host: &Host) -> String {
    let names: Vec<_> = host.mitigations.iter().filter_map(|line| line.split(':').next()).map(str::trim).collect();
    if names.is_empty() {
        return "none".to_owned();
    }
    let more = names.len().saturating_sub(MITIGATIONS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.iter().take(MITIGATIONS).copied().collect::<Vec<_>>().join(", ") + &more
}

/// What a cycle means on a host, counted by the processor or derived from the clock.
pub fn cycles(host: &Host, by_pmu: bool) -> String {
    if by_pmu {
        return "counted by the PMU on all CPUs, user and kernel mode".to_owned();
    }
    let guest = if host.hypervisor.is_some() { "guest reference cycles" } else { "reference cycles" };
    format!("{guest}: TSC {} × CPU time of the whole machine", tied(&number::gigahertz(host.tsc_hertz)))
}
