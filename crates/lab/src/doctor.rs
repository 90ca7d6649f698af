//! What this machine can measure, how well, and how to fix what is missing.
//!
//! A host and the status of its meters enter, a [`Diagnosis`] leaves. Nothing is changed on the machine: every fix is a
//! command for the user to run. To add a check, write a function from `MachineView` to `Found` beside those of its
//! kind, and add it to `EXAMINATIONS`.

mod kernel;
mod permission;
mod power;
mod sharing;
mod watch;

#[cfg(test)]
pub(crate) mod fixture;

use crate::error::Result;
use crate::meter::{MeterSet, Selection};
use crate::sysroot::Sysroot;
use model::doctor::{Background, Check, Diagnosis, Resolution, State, Topic};
use model::record::{Canaries, Host, Meter, MeterStatus};
use model::warning::{Code, Warning};
use std::io;
use std::path::Path;
use std::time::Duration;

/// How long to watch the machine: /proc/stat counts in steps of 10 ms, so a shorter time would show little but the
/// step.
const WATCH: Duration = Duration::from_millis(300);

/// All checks, in the order in which they are shown.
const EXAMINATIONS: [(Topic, Examination); 17] = [
    (Topic::Hypervisor, kernel::hypervisor),
    (Topic::ReferenceClock, kernel::reference_clock),
    (Topic::Clocksource, kernel::clocksource),
    (Topic::Governor, power::governor),
    (Topic::Turbo, power::turbo),
    (Topic::IdleStates, power::idle_states),
    (Topic::Hyperthreads, power::hyperthreads),
    (Topic::PciePower, power::pcie),
    (Topic::Mitigations, kernel::mitigations),
    (Topic::KernelDebugging, kernel::debugging),
    (Topic::Steal, sharing::steal),
    (Topic::Background, sharing::background),
    (Topic::ControlGroups, sharing::control_groups),
    (Topic::LeftBehind, permission::left_behind),
    (Topic::IoUring, permission::io_uring),
    (Topic::PerfEvents, permission::perf_events),
    (Topic::Privilege, permission::privilege),
];

/// Examines the machine whose files are below `root`, `/` for this one. Takes a third of a second, in which this thread
/// sleeps, and as long or some seconds for a load of one CPU.
///
/// # Errors
/// When the meters cannot be opened at all.
pub fn examine(root: &Path, host: Host) -> Result<Diagnosis> {
    let sysroot = Sysroot::at(root);
    let background = watch::background(&sysroot, WATCH);
    let resolution = Resolution::of(&host, &watch::one_busy_cpu(&mut MeterSet::open(Selection::Default)?));
    let (canaries, statuses) = (crate::canary::run(), MeterSet::open(Selection::All)?.statuses);
    let (io_uring, left) = (sys::uring::probe(), crate::guardian::found());
    Ok(diagnose(&sysroot, host, statuses, (background, resolution), canaries, io_uring, &left))
}

fn diagnose(
    root: &Sysroot,
    host: Host,
    meters: Vec<MeterStatus>,
    (background, resolution): (Background, Option<Resolution>),
    canaries: Canaries,
    io_uring: io::Result<()>,
    left: &[String],
) -> Diagnosis {
    let view =
        MachineView { root, host: &host, background: &background, canaries: &canaries, io_uring: &io_uring, left };
    let checked = |(topic, examine): &(Topic, Examination)| {
        let (state, found, mend) = examine(&view);
        Check { mend, ..Check::new(*topic, state, found) }
    };
    let checks: Vec<_> = EXAMINATIONS.iter().map(checked).collect();
    let warnings = warnings(&meters, &checks);
    Diagnosis::new(host, meters, checks, background, resolution, canaries, warnings)
}

type Examination = fn(&MachineView) -> Found;

/// The outcome of a check: the state, what was found, and how to fix it.
type Found = (State, String, Option<String>);

fn good(found: impl Into<String>) -> Found {
    (State::Good, found.into(), None)
}

fn note(found: impl Into<String>, mend: impl Into<String>) -> Found {
    (State::Note, found.into(), Some(mend.into()))
}

fn poor(found: impl Into<String>, mend: impl Into<String>) -> Found {
    (State::Poor, found.into(), Some(mend.into()))
}

fn unknown(found: impl Into<String>, mend: impl Into<String>) -> Found {
    (State::Unknown, found.into(), Some(mend.into()))
}

/// The input of a check.
struct MachineView<'a> {
    root: &'a Sysroot,
    host: &'a Host,
    background: &'a Background,
    canaries: &'a Canaries,
    io_uring: &'a io::Result<()>,
    /// What killed iotoll processes left behind.
    left: &'a [String],
}

/// Where this kernel runs, which decides what it can know about the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// On the machine itself.
    Metal,
    /// In a guest: only the host controls the hardware.
    Guest,
    /// Without /sys, for example in a small container.
    Hidden,
}

impl MachineView<'_> {
    fn place(&self) -> Place {
        match &self.host.hypervisor {
            Some(_) => Place::Guest,
            None if self.root.has(crate::host::CPU) => Place::Metal,
            None => Place::Hidden,
        }
    }

    /// A check of something that this kernel does not show. `on_the_host` is what the owner of the host can do,
    /// `on_metal` where to look on bare metal.
    fn unseen(&self, on_the_host: &str, on_metal: &str) -> Found {
        match self.place() {
            Place::Guest => unknown("not visible to a guest", format!("only the host can fix this: {on_the_host}")),
            Place::Metal => unknown("the kernel does not report it", on_metal),
            Place::Hidden => {
                unknown("not visible without /sys", "mount /sys into the container (docker run -v /sys:/sys:ro)")
            }
        }
    }
}

/// Findings that scripts rely on.
fn warnings(meters: &[MeterStatus], checks: &[Check]) -> Vec<Warning> {
    // One such meter suffices to measure a cost.
    let sees = |meter: Meter| meter.sees_whole_machine() && !meter.disturbs();
    let blind = (!meters.iter().any(|row| sees(row.meter) && row.status.taken().is_some())).then(|| {
        let message = "no meter here sees the whole machine without disturbing the workload; the reasons are below";
        Warning::new(Code::MeterUnavailable, message)
    });
    let poor = checks.iter().filter(|check| check.state == State::Poor).filter_map(|check| {
        let code = match check.topic {
            Topic::Background => Code::BusyBackground,
            Topic::Steal => Code::Steal,
            _ => return None,
        };
        Some(Warning::new(code, check.found.clone()))
    });
    blind.into_iter().chain(poor).collect()
}

#[cfg(test)]
mod tests;
