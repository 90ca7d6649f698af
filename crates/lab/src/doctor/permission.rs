//! Permissions of this user, and what killed iotoll processes left behind.

use super::{Found, MachineView, good, note, poor};
use std::io::ErrorKind;

/// Tested by setting up a ring; the sysctl only explains a refusal.
pub(super) fn io_uring(view: &MachineView) -> Found {
    let error = match view.io_uring {
        Ok(()) => return good("available"),
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
    poor(format!("refused: {error}"), mend)
}

/// kernel.perf_event_paranoid: events of whole CPUs need root, CAP_PERFMON, or a value of at most 0.
pub(super) fn perf_events(view: &MachineView) -> Found {
    match (view.root.number("proc/sys/kernel/perf_event_paranoid"), view.host.root) {
        (None, _) => note("the kernel has none", "boot a kernel with CONFIG_PERF_EVENTS"),
        (Some(paranoid), true) => good(format!("allowed for root (perf_event_paranoid {paranoid})")),
        (Some(paranoid), false) if paranoid <= 0 => {
            good(format!("allowed for all users (perf_event_paranoid {paranoid})"))
        }
        (Some(paranoid), false) => poor(
            format!("refused for whole CPUs (perf_event_paranoid {paranoid})"),
            "sysctl kernel.perf_event_paranoid=0",
        ),
    }
}

/// Root or not.
pub(super) fn privilege(view: &MachineView) -> Found {
    if view.host.root {
        good("root")
    } else {
        note(
            "ordinary user: the timer_list meter and the sampler are missing",
            "run sudo iotoll doctor to see what root adds",
        )
    }
}

/// What killed iotoll processes left behind when their guardians were killed too: reads their ledgers, and what of it is still in
/// force.
pub(super) fn left_behind(view: &MachineView) -> Found {
    match view.left {
        [] => good("nothing left behind by a killed iotoll"),
        left => poor(
            left.join("; "),
            "run iotoll demo (or any run, cost or compare): it first restores what it can, and reports it",
        ),
    }
}
