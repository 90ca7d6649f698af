//! Extra work of the kernel: mitigations and self-checks.

use super::{Found, MachineView, Place, good, note, poor, unknown};
use crate::host::{CLOCKSOURCE, cpu_flag, kernel_config, vulnerabilities};
use model::doctor::State;

/// Which mitigations are on. They are never wrong; they are part of what is measured.
pub(super) fn mitigations(view: &MachineView) -> Found {
    let known = vulnerabilities(view.root);
    if known.is_empty() {
        return view.unseen("show the guest its CPU's vulnerabilities", "the kernel is too old to list them (4.15)");
    }
    let names = |mark: &str| -> Vec<&str> {
        known.iter().filter(|(_, status)| status.starts_with(mark)).map(|(name, _)| name.as_str()).collect()
    };
    let (active, open) = (names("Mitigation"), names("Vulnerable"));
    let open = if open.is_empty() { String::new() } else { format!("; not mitigated: {}", open.join(", ")) };
    if active.is_empty() {
        return good(format!("none active{open}"));
    }
    note(
        format!("{} active: {}{open}", active.len(), active.join(", ")),
        "to see their cost, boot with mitigations=off, on a machine that runs only your own code",
    )
}

/// Options that cost CPU time on every path, from lib/Kconfig.debug and its neighbours; off in most distribution
/// kernels, on in the debugging kernels that developers measure with (seed 000).
const COSTLY: [&str; 19] = [
    "KASAN",
    "KCSAN",
    "KMSAN",
    "PROVE_LOCKING",
    "LOCKDEP",
    "LOCK_STAT",
    "PROVE_RCU",
    "DEBUG_SPINLOCK",
    "DEBUG_MUTEXES",
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_PAGEALLOC_ENABLE_DEFAULT",
    "SLUB_DEBUG_ON",
    "DEBUG_OBJECTS",
    "DEBUG_KMEMLEAK",
    "DEBUG_VM",
    "DEBUG_PREEMPT",
    "DEBUG_SG",
    "DMA_API_DEBUG",
    "GCOV_KERNEL",
];

/// Boot parameters that turn on such checks if the kernel has them built in.
const COSTLY_WORDS: [&str; 5] = ["debug_pagealloc=on", "page_poison=1", "slub_debug", "slab_debug", "kmemleak=on"];

/// Whether the kernel runs costly self-checks.
pub(super) fn debugging(view: &MachineView) -> Found {
    let command_line = view.root.text("proc/cmdline").unwrap_or_default();
    let asked = |word: &&&str| command_line.split_whitespace().any(|given| is_word(given, word));
    let words: Vec<_> = COSTLY_WORDS.iter().filter(asked).map(|word| (*word).to_owned()).collect();
    let config = kernel_config(view.root);
    let options = config.as_deref().map(costly_options).unwrap_or_default();
    let found: Vec<_> = options.iter().map(|option| format!("CONFIG_{option}")).chain(words).collect();
    match (found.is_empty(), config.is_some()) {
        (false, _) => {
            poor(found.join(", "), "boot a kernel built without them, such as a distribution's, for numbers to publish")
        }
        (true, true) => good("none of the costly checks is built in"),
        (true, false) => unknown(
            "the kernel's configuration was not found",
            format!("run modprobe configs, or copy it to /boot/config-{}", view.host.kernel),
        ),
    }
}

/// `slub_debug` may also have a value: `slub_debug=FZ`.
fn is_word(given: &str, word: &str) -> bool {
    given == word || given.strip_prefix(word).is_some_and(|rest| rest.starts_with('='))
}

fn costly_options(config: &str) -> Vec<&'static str> {
    let on = |option: &&str| {
        config.lines().any(|line| line.strip_prefix("CONFIG_").and_then(|line| line.strip_prefix(option)) == Some("=y"))
    };
    COSTLY.into_iter().filter(on).collect()
}

/// A guest's cycles are not the machine's.
pub(super) fn hypervisor(view: &MachineView) -> Found {
    match (&view.host.hypervisor, view.place(), cpu_flag(view.root, "hypervisor")) {
        (Some(name), _, _) => {
            note(format!("runs under {name}"), "run on bare metal for true cycles; compare only figures of one guest")
        }
        (None, Place::Hidden, None) => view.unseen("", ""),
        (None, _, _) => good("none: this kernel runs on bare metal"),
    }
}

/// constant_tsc: one rate at every core frequency; nonstop_tsc: also in deep sleep.
pub(super) fn reference_clock(view: &MachineView) -> Found {
    let rate = format!("{:.4} GHz ({})", view.host.tsc_hertz / 1e9, view.host.tsc_source);
    let flags = (cpu_flag(view.root, "constant_tsc"), cpu_flag(view.root, "nonstop_tsc"));
    let lacks = |lack: &str, on_metal: &str| {
        let of_guest = "only the host can fix this: give the guest an invariant TSC (QEMU `-cpu host,+invtsc`)";
        let mend = if view.host.hypervisor.is_some() { of_guest } else { on_metal };
        poor(format!("TSC at {rate}, but {lack}"), mend)
    };
    match flags {
        (Some(true), Some(true)) => good(format!("TSC at {rate}, constant and non-stop")),
        (Some(true), Some(false)) => lacks(
            "it stops in deep C-states",
            "keep CPUs out of them: boot with processor.max_cstate=1 intel_idle.max_cstate=1",
        ),
        (Some(false), _) => lacks(
            "its rate follows the core's frequency",
            "keep the frequency constant: cpupower frequency-set -g performance, turbo off",
        ),
        _ if cfg!(target_arch = "aarch64") => good(format!("generic timer at {rate}: constant by architecture")),
        _ => unknown(format!("{rate}; /proc/cpuinfo does not show whether it is constant"), "mount /proc"),
    }
}

/// Some clock sources are read in user space, others need a system call or device access.
pub(super) fn clocksource(view: &MachineView) -> Found {
    let current = view.host.clocksource.as_str();
    let cost = format!("{:.0} ns a reading", view.canaries.clock_read_nanos);
    let available = view.root.text(&format!("{CLOCKSOURCE}/available_clocksource")).unwrap_or_default();
    let switch_to_tsc = available.split_whitespace().find(|name| *name == "tsc");
    let switch_to_tsc = switch_to_tsc.map(|tsc| format!("echo {tsc} > /{CLOCKSOURCE}/current_clocksource"));
    match current {
        "tsc" | "arch_sys_counter" => good(format!("{current}, {cost}")),
        "kvm-clock" | "hyperv_clocksource_tsc_page" => {
            (State::Note, format!("{current}, {cost}: scaled by the hypervisor"), switch_to_tsc)
        }
        "unknown" => unknown(
            format!("not visible without /sys; {cost}"),
            "mount /sys into the container (docker run -v /sys:/sys:ro)",
        ),
        _ => poor(
            format!("{current}, {cost}"),
            switch_to_tsc.as_deref().unwrap_or(
                "see in `dmesg | grep -i tsc` why the kernel rejected the TSC; if it was wrong, boot with \
                 tsc=reliable",
            ),
        ),
    }
}
