//! The clocks: the reference clock for cycles, and the kernel's clock source.

use super::{MachineView, Place};
use crate::host::{CLOCKSOURCE, cpu_flag};
use model::doctor::{Check, State, Topic};

/// A guest's cycles are not the machine's.
pub(super) fn hypervisor(view: &MachineView) -> Check {
    let topic = Topic::Hypervisor;
    match (&view.host.hypervisor, view.place(), cpu_flag(view.root, "hypervisor")) {
        (Some(name), _, _) => Check::new(topic, State::Note, format!("runs under {name}"))
            .mend("run on bare metal for true cycles; compare only figures of one guest"),
        (None, Place::Hidden, None) => view.unseen(topic, "", ""),
        (None, _, _) => Check::new(topic, State::Good, "none: this kernel runs on bare metal"),
    }
}

/// constant_tsc: one rate at every core frequency; nonstop_tsc: also in deep sleep.
pub(super) fn reference_clock(view: &MachineView) -> Check {
    let topic = Topic::ReferenceClock;
    let rate = format!("{:.4} GHz ({})", view.host.tsc_hertz / 1e9, view.host.tsc_source);
    let flags = (cpu_flag(view.root, "constant_tsc"), cpu_flag(view.root, "nonstop_tsc"));
    let poor = |lack: &str, on_metal: &str| {
        let check = Check::new(topic, State::Poor, format!("TSC at {rate}, but {lack}"));
        match view.host.hypervisor {
            Some(_) => {
                check.mend("only the host can fix this: give the guest an invariant TSC (QEMU `-cpu host,+invtsc`)")
            }
            None => check.mend(on_metal),
        }
    };
    match flags {
        (Some(true), Some(true)) => Check::new(topic, State::Good, format!("TSC at {rate}, constant and non-stop")),
        (Some(true), Some(false)) => poor(
            "it stops in deep C-states",
            "keep CPUs out of them: boot with processor.max_cstate=1 intel_idle.max_cstate=1",
        ),
        (Some(false), _) => poor(
            "its rate follows the core's frequency",
            "keep the frequency constant: cpupower frequency-set -g performance, turbo off",
        ),
        _ if cfg!(target_arch = "aarch64") => {
            Check::new(topic, State::Good, format!("generic timer at {rate}: constant by architecture"))
        }
        _ => Check::new(topic, State::Unknown, format!("{rate}; /proc/cpuinfo does not show whether it is constant"))
            .mend("mount /proc"),
    }
}

/// Some clock sources are read in user space, others need a system call or device access.
pub(super) fn clocksource(view: &MachineView) -> Check {
    let topic = Topic::Clocksource;
    let current = view.host.clocksource.as_str();
    let cost = format!("{:.0} ns a reading", view.canaries.clock_read_nanos);
    let available = view.root.text(&format!("{CLOCKSOURCE}/available_clocksource")).unwrap_or_default();
    let tsc_offered = available.split_whitespace().any(|name| name == "tsc");
    match current {
        "tsc" | "arch_sys_counter" => Check::new(topic, State::Good, format!("{current}, {cost}")),
        "kvm-clock" | "hyperv_clocksource_tsc_page" => {
            let check = Check::new(topic, State::Note, format!("{current}, {cost}: scaled by the hypervisor"));
            if tsc_offered { check.mend(switch_to_tsc()) } else { check }
        }
        "unknown" => Check::new(topic, State::Unknown, format!("not visible without /sys; {cost}"))
            .mend("mount /sys into the container (docker run -v /sys:/sys:ro)"),
        _ => {
            let check = Check::new(topic, State::Poor, format!("{current}, {cost}"));
            if tsc_offered {
                check.mend(switch_to_tsc())
            } else {
                check.mend(
                    "see in `dmesg | grep -i tsc` why the kernel rejected the TSC; if it was wrong, boot with \
                     tsc=reliable",
                )
            }
        }
    }
}

fn switch_to_tsc() -> String {
    format!("echo tsc > /{CLOCKSOURCE}/current_clocksource")
}
