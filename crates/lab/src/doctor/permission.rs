//! Permissions of this user, and what killed iotoll processes left behind.

use super::MachineView;
use model::doctor::{Check, State, Topic};
use std::io::ErrorKind;

/// Tested by setting up a ring; the sysctl only explains a refusal.
pub(super) fn io_uring(view: &MachineView) -> Check {
    let topic = Topic::IoUring;
    let error = match view.io_uring {
        Ok(()) => return Check::new(topic, State::Good, "available"),
        Err(error) => error,
    };
    let mend = match (view.root.number("proc/sys/kernel/io_uring_disabled"), error.kind()) {
        (Some(1), _) => "run as root, or sysctl kernel.io_uring_disabled=0",
        (Some(disabled), _) if disabled > 1 => "sysctl kernel.io_uring_disabled=0",
        (_, ErrorKind::Unsupported) => "boot a kernel of 5.1 or later with CONFIG_IO_URING, and no seccomp filter",
        (_, ErrorKind::OutOfMemory) => "ulimit -l unlimited",
        _ => {
            "a seccomp filter refuses it: docker run --security-opt seccomp=unconfined, or use a profile that allows \
             io_uring"
        }
    };
    Check::new(topic, State::Poor, format!("refused: {error}")).mend(mend)
}

/// Need of a queue of 256 buffers of 64 KiB and of the samplers, with a reserve.
const LOCKED_BYTES: u64 = 32 << 20;

/// RLIMIT_MEMLOCK, which does not apply to root.
pub(super) fn locked_memory(view: &MachineView) -> Check {
    let topic = Topic::LockedMemory;
    let limits = view.root.text("proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"));
    let soft = line.and_then(|line| line.split_whitespace().next());
    let Some(soft) = soft else {
        return Check::new(topic, State::Unknown, "/proc/self/limits has no such line").mend("mount /proc");
    };
    match soft.parse::<u64>() {
        Err(_) => Check::new(topic, State::Good, soft),
        Ok(bytes) if bytes >= LOCKED_BYTES => Check::new(topic, State::Good, format!("{} KiB", bytes >> 10)),
        Ok(bytes) if view.host.root => {
            Check::new(topic, State::Good, format!("{} KiB, which does not apply to root", bytes >> 10))
        }
        Ok(bytes) => Check::new(topic, State::Note, format!("{} KiB", bytes >> 10))
            .mend("run ulimit -l unlimited as root before iotoll"),
    }
}

/// kernel.perf_event_paranoid: events of whole CPUs need root, CAP_PERFMON, or a value of at most 0.
pub(super) fn perf_events(view: &MachineView) -> Check {
    let topic = Topic::PerfEvents;
    match (view.root.number("proc/sys/kernel/perf_event_paranoid"), view.host.root) {
        (None, _) => {
            Check::new(topic, State::Note, "the kernel has none").mend("boot a kernel with CONFIG_PERF_EVENTS")
        }
        (Some(paranoid), true) => {
            Check::new(topic, State::Good, format!("allowed for root (perf_event_paranoid {paranoid})"))
        }
        (Some(paranoid), false) if paranoid <= 0 => {
            Check::new(topic, State::Good, format!("allowed for all users (perf_event_paranoid {paranoid})"))
        }
        (Some(paranoid), false) => {
            Check::new(topic, State::Poor, format!("refused for whole CPUs (perf_event_paranoid {paranoid})"))
                .mend("sysctl kernel.perf_event_paranoid=0")
        }
    }
}

/// kernel.kptr_restrict: 0 shows addresses to all users that may have them, 1 to root, 2 to nobody.
pub(super) fn kernel_symbols(view: &MachineView) -> Check {
    let topic = Topic::KernelSymbols;
    match (view.root.number("proc/sys/kernel/kptr_restrict"), view.host.root) {
        (None, _) => Check::new(topic, State::Unknown, "the kernel does not report it"),
        (Some(0 | 1), true) | (Some(0), false) => Check::new(topic, State::Good, "visible"),
        (Some(restrict), _) => Check::new(topic, State::Note, format!("hidden (kptr_restrict {restrict})"))
            .mend("sysctl kernel.kptr_restrict=0"),
    }
}

/// Root or not.
pub(super) fn privilege(view: &MachineView) -> Check {
    let topic = Topic::Privilege;
    if view.host.root {
        Check::new(topic, State::Good, "root")
    } else {
        Check::new(topic, State::Note, "ordinary user: the timer_list meter and the sampler are missing")
            .mend("run sudo iotoll doctor to see what root adds")
    }
}

/// What killed iotoll processes left behind when their guardians were killed too: reads their ledgers, and what of it is still in
/// force.
pub(super) fn left_behind(view: &MachineView) -> Check {
    let topic = Topic::LeftBehind;
    match view.left {
        [] => Check::new(topic, State::Good, "nothing left behind by a killed iotoll"),
        left => Check::new(topic, State::Poor, left.join("; "))
            .mend("run iotoll demo (or any run, cost or compare): it first restores what it can, and reports it"),
    }
}
