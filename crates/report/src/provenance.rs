//! Sentences on where numbers come from: the machine, what it did by itself, what a cycle is on it.

use crate::number;
use crate::page::tied;
use crate::placement;
use model::few::few;
use model::finding::{Background, RunFinding};
use model::record::{Host, Meter};

/// Background tasks that are named.
const NAMED: usize = 4;

/// What the machine did without the workload, in a sentence.
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
    text += &format!("; watched for {}", tied(&number::seconds(background.seconds)));
    if let Some(switches) = background.context_switches_per_second {
        text += &format!("; {} context switches/s", number::with_unit(number::COUNT, switches));
    }
    let tasks = background.tasks.iter().take(NAMED);
    let tasks: Vec<_> = tasks.map(|task| format!("{} {}", task.name, percent(task.busy_fraction))).collect();
    if !tasks.is_empty() {
        text += &format!("; most of it {}", tasks.join(", "));
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

/// Where threads ran, phase by phase.
pub fn placement(finding: &RunFinding) -> Option<String> {
    let several = finding.phases.len() > 1;
    let parts = finding.phases.iter().filter_map(|phase| {
        let text = placement::of_phase(phase)?;
        Some(if several { format!("{}: {text}", phase.jobs.join(", ")) } else { text })
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| few(&parts, "; "))
}

/// What one cycle is here.
pub fn cycles(finding: &RunFinding) -> String {
    let headline =
        |meter: Meter| finding.phases.iter().any(|phase| phase.headline_meter.as_deref() == Some(meter.name()));
    cycles_of(&finding.host, headline(Meter::Pmu))
}

/// What one cycle is on a host, by the processor's own counter or by the clock.
pub fn cycles_of(host: &Host, by_pmu: bool) -> String {
    if by_pmu {
        return "counted by the processor (PMU), all CPUs, user and kernel".to_owned();
    }
    let guest = if host.hypervisor.is_some() { "guest reference cycles" } else { "reference cycles" };
    format!("{guest}: TSC {} × CPU time of the whole machine", tied(&number::gigahertz(host.tsc_hertz)))
}
