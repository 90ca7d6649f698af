//! Other users of the machine: its host, other processes, and the placement of work.

use super::{Found, MachineView, Place, good, note, poor, unknown};
use crate::control_groups;
use crate::group_limits;
use model::doctor::State;
use model::group_limit::{GroupLimit, Resource};
use model::reading::Reading;

/// Steal below this fraction of all CPU time is negligible: a tenth of the finest error of any meter.
const STEAL_SEEN: f64 = 0.001;
/// Above this fraction it is a considerable part of the error.
const STEAL_POOR: f64 = 0.01;

/// The fraction that the hypervisor took, now and since boot.
pub(super) fn steal(view: &MachineView) -> Found {
    let (now, boot) = (&view.background.steal_fraction, &view.background.steal_since_boot_fraction);
    let (now, boot) = match (now, boot) {
        (Reading::Taken(now), Reading::Taken(boot)) => (*now, *boot),
        (Reading::Unavailable(reason), _) | (_, Reading::Unavailable(reason)) => {
            return (State::Unknown, reason.clone(), None);
        }
    };
    if view.place() == Place::Metal && now + boot == 0.0 {
        return good("none: there is no hypervisor");
    }
    let found = format!("{:.1} % now, {:.2} % since boot", now * 100.0, boot * 100.0);
    // In a short time one tick of 10 ms is a large fraction, so only several ticks are poor.
    let state = match now.max(boot) {
        _ if boot >= STEAL_POOR || now >= 3.0 * STEAL_POOR => State::Poor,
        most if most >= STEAL_SEEN => State::Note,
        _ => State::Good,
    };
    let mend = "only the host can fix this: pin the virtual CPUs, or take an instance with dedicated cores";
    (state, found, (state != State::Good).then(|| mend.to_owned()))
}

/// Below this fraction the machine is idle: one step of /proc/stat's clock in the measured time.
const BACKGROUND_GOOD: f64 = 0.04;
/// From this fraction on, the background is no longer small compared with a workload.
const BACKGROUND_POOR: f64 = 0.10;

/// What runs without a workload.
pub(super) fn background(view: &MachineView) -> Found {
    let busy = match &view.background.busy_fraction {
        Reading::Taken(busy) => *busy,
        Reading::Unavailable(reason) => return (State::Unknown, reason.clone(), None),
    };
    let watched_millis = view.background.watched_nanos.0 / 1_000_000;
    let found = format!("the machine was {:.0} % busy over {watched_millis} ms", busy * 100.0);
    match busy {
        busy if busy < BACKGROUND_GOOD => good(found),
        busy if busy < BACKGROUND_POOR => note(found, "see `top` for what runs"),
        _ => poor(found, "stop other processes while measuring (see `top`)"),
    }
}

/// Limits of the control groups that iotoll, and what it starts, run in.
pub(super) fn control_groups(view: &MachineView) -> Found {
    if view.root.has("proc/self/cgroup") && control_groups::of(view.root, "self", "cpu").is_empty() {
        return unknown("not visible without /sys/fs/cgroup", "mount it into the container");
    }
    let limits = group_limits::of(view.root, "self");
    let state = match limits.iter().any(|limit| limit.resource == Resource::Cpu) {
        true => State::Poor,
        false if limits.is_empty() => return good("none on CPU time, memory or I/O"),
        false => State::Note,
    };
    let found: Vec<String> = limits.iter().map(GroupLimit::words).collect();
    (state, found.join("; "), Some("raise them, or run outside the cgroup".to_owned()))
}
