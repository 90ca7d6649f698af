//! Everything that changes a core's speed: frequency, turbo, idle states, a sibling thread, sleeping links.

use super::{Found, MachineView, good, note, poor};
use crate::host::{CPU, governors};
use crate::sysroot::listed;
use std::collections::BTreeSet;

/// The performance governor requests the highest frequency at every load.
pub(super) fn governor(view: &MachineView) -> Found {
    let governors = governors(view.root);
    if governors.is_empty() {
        return view.unseen(
            "cpupower frequency-set -g performance",
            "no cpufreq driver is loaded: choose the performance profile in the firmware, or let \
             the OS control power",
        );
    }
    let driver = view.root.text(&format!("{CPU}/cpufreq/policy0/scaling_driver"));
    let driver = driver.map_or_else(String::new, |driver| format!(" ({driver})"));
    let names = governors.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    if governors.iter().all(|governor| governor == "performance") {
        good(format!("{names}{driver}"))
    } else {
        poor(format!("{names}{driver}"), "cpupower frequency-set -g performance")
    }
}

/// Whether cores may run above their nominal frequency, and the command that forbids it. The switch of Intel's driver is inverse to all
/// others; since 6.11 each frequency domain may have its own.
fn turbo_switch(view: &MachineView) -> Option<(bool, String)> {
    let intel = format!("{CPU}/intel_pstate/no_turbo");
    let common = format!("{CPU}/cpufreq/boost");
    if let Some(no_turbo) = view.root.number(&intel) {
        return Some((no_turbo == 0, format!("echo 1 > /{intel}")));
    }
    if let Some(boost) = view.root.number(&common) {
        return Some((boost != 0, format!("echo 0 > /{common}")));
    }
    let policies = view.root.numbered(&format!("{CPU}/cpufreq"), "policy");
    let boosts = policies.iter().filter_map(|policy| view.root.number(&format!("{CPU}/cpufreq/{policy}/boost")));
    Some((boosts.max()? != 0, format!("echo 0 | tee /{CPU}/cpufreq/policy*/boost")))
}

/// Whether turbo is off.
pub(super) fn turbo(view: &MachineView) -> Found {
    match turbo_switch(view) {
        Some((false, _)) => good("off"),
        Some((true, mend)) => poor("on", mend),
        None => view.unseen(
            "turn turbo off (intel_pstate/no_turbo, cpufreq/boost)",
            "turn turbo or boost off in the firmware, if it has a switch",
        ),
    }
}

/// A state with at least this latency in microseconds counts as deeper than C1. C1 and its like have 1 or 2 µs in the
/// kernel's tables (drivers/idle/intel_idle.c; ACPI C1 1 µs, Arm WFI 1 µs), C1E 4 to 10 µs.
const DEEP_MICROS: i64 = 3;

/// Idle states deeper than C1 that some CPU may enter.
fn deep_states(view: &MachineView) -> BTreeSet<(i64, String)> {
    let mut deep = BTreeSet::new();
    for cpu in view.root.numbered(CPU, "cpu") {
        let directory = format!("{CPU}/{cpu}/cpuidle");
        for state in view.root.numbered(&directory, "state") {
            let number = |file: &str| view.root.number(&format!("{directory}/{state}/{file}"));
            let (Some(latency), Some(0)) = (number("latency"), number("disable")) else {
                continue;
            };
            if latency >= DEEP_MICROS {
                let name = view.root.text(&format!("{directory}/{state}/name")).unwrap_or(state);
                deep.insert((latency, name));
            }
        }
    }
    deep
}

/// The latency limit that a program sets for all CPUs by keeping this device open.
fn demanded_latency_micros(view: &MachineView) -> Option<i32> {
    let bytes = view.root.bytes("dev/cpu_dma_latency", 4)?;
    Some(i32::from_ne_bytes(*bytes.first_chunk()?))
}

/// Whether states deeper than C1 are off, by disabling them or by a latency limit.
pub(super) fn idle_states(view: &MachineView) -> Found {
    let driver = view.root.text(&format!("{CPU}/cpuidle/current_driver")).filter(|driver| driver != "none");
    let command_line = view.root.text("proc/cmdline").unwrap_or_default();
    if command_line.split_whitespace().any(|word| word == "idle=poll") {
        return poor(
            "none: idle CPUs poll (idle=poll), so no meter can tell idle from busy",
            "boot without idle=poll; processor.max_cstate=1 keeps wake-ups short",
        );
    }
    let Some(driver) = driver else {
        return view.unseen(
            "boot it with intel_idle.max_cstate=1 processor.max_cstate=1",
            "no cpuidle driver is loaded: boot without cpuidle.off=1; the idle meter needs it too",
        );
    };
    let polls = view.root.number("sys/module/haltpoll/parameters/guest_halt_poll_ns").filter(|nanos| *nanos > 0);
    if let ("haltpoll", Some(nanos)) = (driver.as_str(), polls) {
        let found = format!("haltpoll: idle CPUs poll for up to {nanos} ns before they halt, which counts as idle");
        return note(found, "echo 0 > /sys/module/haltpoll/parameters/guest_halt_poll_ns");
    }
    let deep = deep_states(view);
    let names: Vec<_> = deep.iter().map(|(latency, name)| format!("{name} ({latency} µs)")).collect();
    match (names.is_empty(), demanded_latency_micros(view)) {
        (true, _) if view.host.hypervisor.is_some() => note(
            format!("{driver}: nothing deep in the guest; the host's states are not visible"),
            "only the host can fix this: boot it with intel_idle.max_cstate=1 processor.max_cstate=1",
        ),
        (true, _) => good(format!("{driver}: none deeper than C1 is enabled")),
        (false, Some(micros)) if i64::from(micros) < DEEP_MICROS => {
            good(format!("{driver}: limited to C1 by a program that set /dev/cpu_dma_latency to {micros} µs"))
        }
        (false, _) => poor(
            format!("{driver}: deep states enabled: {}", names.join(", ")),
            format!("cpupower idle-set -D {DEEP_MICROS}"),
        ),
    }
}

/// Whether each core runs one thread.
pub(super) fn hyperthreads(view: &MachineView) -> Found {
    let active = view.root.number(&format!("{CPU}/smt/active"));
    // From the topology if the kernel has no SMT control, as on some architectures.
    let siblings = view.root.text(&format!("{CPU}/cpu0/topology/thread_siblings_list")).and_then(|list| listed(&list));
    match (active, siblings, &view.host.hypervisor) {
        (Some(1), _, _) => poor("on", format!("echo off > /{CPU}/smt/control")),
        (_, Some(threads), _) if threads > 1 => {
            poor(format!("{threads} threads per core"), format!("echo off > /{CPU}/smt/control"))
        }
        (Some(_), _, Some(_)) => note(
            "none in the guest; two of its CPUs may still share a core",
            "only the host can fix this: pin each virtual CPU to a core of its own",
        ),
        (Some(_), _, None) => good(format!("none active ({})", view.host.smt)),
        (None, Some(_), None) => good("one thread per core"),
        (None, _, _) => {
            view.unseen("turn SMT off, or pin each virtual CPU to a core of its own", "turn SMT off in the firmware")
        }
    }
}

/// Active-state power management of PCIe: the kernel shows the current policy in brackets.
pub(super) fn pcie(view: &MachineView) -> Found {
    const POLICY: &str = "sys/module/pcie_aspm/parameters/policy";
    let policies = view.root.text(POLICY);
    let policy = policies.as_deref().and_then(|text| text.split_once('[')?.1.split_once(']')).map(|(policy, _)| policy);
    let mend = format!("echo performance > /{POLICY}");
    match policy {
        Some("performance") => good("performance: links stay awake"),
        Some("default") if view.host.hypervisor.is_some() => good("default: virtual devices have no links that sleep"),
        Some("default") => note("default: as the firmware left it", mend),
        Some(other) => poor(other, mend),
        None if view.root.names("sys/bus/pci/devices").is_empty() && view.root.has("sys/bus") => good("no PCIe device"),
        None => view.unseen("keep the links of passed-through devices awake", "boot with pcie_aspm=off"),
    }
}
