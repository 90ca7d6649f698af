//! What this machine can measure, how well, and what would mend it.
//!
//! A host and the status of its meters enter, a [`Diagnosis`] leaves. Nothing is changed on the machine:
//! every mend is a command for the user to run. To look at one more thing, write a function from
//! `MachineView` to [`Check`] beside those of its kind, and add it to `EXAMINATIONS`.

mod clock;
mod kernel;
mod leftovers;
mod permission;
mod power;
mod sharing;
mod watch;

#[cfg(test)]
pub(crate) mod fixture;

use crate::sysroot::Sysroot;
use model::doctor::{Background, Check, Diagnosis, State, Topic};
use model::record::{Canaries, Host, Meter, MeterStatus};
use model::warning::{Code, Warning};
use std::io;
use std::path::Path;
use std::time::Duration;

/// How long the machine is watched: /proc/stat counts in steps of 10 ms, so that a shorter look would see
/// little but the step.
const WATCH: Duration = Duration::from_millis(300);

/// Everything that is looked at, in the order in which it is shown.
const EXAMINATIONS: [fn(&MachineView) -> Check; 22] = [
    clock::hypervisor,
    clock::reference_clock,
    clock::clocksource,
    power::governor,
    power::turbo,
    power::constant_frequency,
    power::idle_states,
    power::hyperthreads,
    power::pcie,
    kernel::mitigations,
    kernel::debugging,
    sharing::steal,
    sharing::background,
    sharing::numa,
    sharing::isolation,
    sharing::irqbalance,
    leftovers::left_behind,
    permission::io_uring,
    permission::locked_memory,
    permission::perf_events,
    permission::kernel_symbols,
    permission::privilege,
];

/// Examines the machine whose files are below `root`, `/` for this one. Takes a third of a second, in
/// which this thread sleeps. The meters' texts are the caller's: it knows what each of them can see here.
pub fn examine(root: &Path, host: Host, meters: Vec<MeterStatus>) -> Diagnosis {
    let sysroot = Sysroot::at(root);
    let background = watch::background(&sysroot, WATCH);
    let canaries = crate::canary::run();
    diagnose(&sysroot, host, meters, background, canaries, sys::availability::io_uring(), &crate::guardian::found())
}

fn diagnose(
    root: &Sysroot,
    host: Host,
    meters: Vec<MeterStatus>,
    background: Background,
    canaries: Canaries,
    io_uring: io::Result<()>,
    left: &[String],
) -> Diagnosis {
    let view =
        MachineView { root, host: &host, background: &background, canaries: &canaries, io_uring: &io_uring, left };
    let checks: Vec<_> = EXAMINATIONS.iter().map(|examination| examination(&view)).collect();
    let warnings = warnings(&meters, &checks);
    Diagnosis::new(host, meters, checks, background, canaries, warnings)
}

/// What an examination may look at.
struct MachineView<'a> {
    root: &'a Sysroot,
    host: &'a Host,
    background: &'a Background,
    canaries: &'a Canaries,
    io_uring: &'a io::Result<()>,
    /// What was left behind by iotolls that were killed.
    left: &'a [String],
}

/// Where this kernel runs, for what it can know about the hardware below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// On the machine itself.
    Metal,
    /// In a guest: the hardware is the host's business.
    Guest,
    /// Somewhere that shows no /sys, such as a small container.
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

    /// A check of something that this kernel does not show. `on_the_host` is what its owner can do,
    /// `on_metal` where to look when there is no host.
    fn unseen(&self, topic: Topic, on_the_host: &str, on_metal: &str) -> Check {
        let unknown = |found: &str| Check::new(topic, State::Unknown, found);
        match self.place() {
            Place::Guest => unknown("not visible to a guest").mend(format!("only the host can: {on_the_host}")),
            Place::Metal => unknown("the kernel does not say").mend(on_metal),
            Place::Hidden => {
                unknown("not visible without /sys").mend("give the container /sys (docker run -v /sys:/sys:ro)")
            }
        }
    }
}

/// The findings that scripts wait for.
fn warnings(meters: &[MeterStatus], checks: &[Check]) -> Vec<Warning> {
    // With one of these a cost can be told.
    let sees = |meter: Meter| meter.sees_whole_machine() && !meter.disturbs();
    let blind = (!meters.iter().any(|row| sees(row.meter) && row.status.taken().is_some())).then(|| {
        let message = "no meter that leaves the load alone sees the whole machine here; the meters' reasons are below";
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
