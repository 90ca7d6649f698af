//! How often a tracepoint is passed: counted by a program of ours where that is allowed, otherwise by perf, which misses what the idle
//! tasks of some CPUs do.
//!
//! The kernel keeps in each task whether it is inside a perf event, so that events do not count themselves. If this mark stays
//! behind in a CPU's idle task, perf drops all events of that task until the next boot, without a word: idle entries, the
//! switches away from it, the timers that it starts. Other counters, of the kernel itself and of ftrace, have them.

use crate::event_counters::Counters;
use model::probe::Scope;
use std::thread::ScopedJoinHandle;
use std::time::Duration;
use sys::perf::{TracepointCounter, available_tracepoints};

/// Sleeps on each CPU. Each has two switches, one to another task and one back; between them the CPU is idle, if no other task
/// wants it.
const SLEEPS: u32 = 32;
/// Length of a sleep: long enough that the CPU really switches.
const SLEEP: Duration = Duration::from_micros(100);
/// Part of the switches that may be missing because a sleep was over before its switch.
const MISSING: f64 = 0.125;

/// A counter of one tracepoint.
pub(super) enum Passes {
    Exact(Counters),
    ByPerf(TracepointCounter),
}

impl Passes {
    /// Starts counting.
    ///
    /// # Errors
    /// When there is no such tracepoint, or neither way is allowed.
    pub(super) fn open(group: &str, name: &str) -> Result<Self, String> {
        // Programs know no groups. Where names may not be listed, only attaching shows whether there is such a tracepoint.
        let exists = available_tracepoints().map_or(true, |names| names.contains(&format!("{group}:{name}")));
        let exact = exists.then(|| exact(name)).flatten();
        match exact {
            Some(counters) => Ok(Self::Exact(counters)),
            None => TracepointCounter::open(group, name).map(Self::ByPerf).map_err(|error| error.to_string()),
        }
    }

    /// Passes since it was opened. Does not allocate.
    pub(super) fn read(&self) -> Option<u64> {
        match self {
            Self::Exact(counters) => counters.passes(0).ok(),
            Self::ByPerf(counter) => counter.read().ok(),
        }
    }

    /// Whether it may miss some.
    pub(super) fn may_miss(&self) -> bool {
        matches!(self, Self::ByPerf(_))
    }
}

fn exact(name: &str) -> Option<Counters> {
    let mut counters = Counters::load(&[name], false).ok()?;
    counters.attach().ok()?.is_empty().then_some(counters)
}

/// What one CPU showed while a thread slept on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    /// Whether a thread could sleep on it: this process may not use all CPUs.
    slept: bool,
    /// Switches that perf counted.
    switches: u64,
    /// Times the CPU went idle, by the kernel's own counter; `None` if it has none.
    idle: Option<u64>,
}

/// What perf's counters of tracepoints cover on this machine, now. Takes about 10 ms.
pub(super) fn scope() -> Scope {
    let Ok(counter) = TracepointCounter::open("sched", "sched_switch") else { return Scope::IdleUnknown };
    let cpus = counter.cpus().to_vec();
    let looked = || -> Option<Vec<(u64, Option<u64>)>> {
        let switches = counter.read_each().ok()?;
        Some(switches.into_iter().zip(&cpus).map(|(switches, cpu)| (switches, idle_entries(*cpu))).collect())
    };
    let before = looked();
    let slept: Vec<bool> = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new;
        let sleepers: Vec<_> = cpus.iter().map(|cpu| thread().spawn_scoped(scope, || sleep_on(*cpu))).collect();
        let slept = |sleeper: std::io::Result<ScopedJoinHandle<bool>>| {
            sleeper.is_ok_and(|sleeper| sleeper.join().unwrap_or(false))
        };
        sleepers.into_iter().map(slept).collect()
    });
    let Some((before, after)) = before.zip(looked()) else { return Scope::IdleUnknown };
    let seen = before.iter().zip(&after).zip(slept).map(|((before, after), slept)| Seen {
        slept,
        switches: after.0.saturating_sub(before.0),
        idle: before.1.zip(after.1).map(|(before, after)| after.saturating_sub(before)),
    });
    judged(&seen.collect::<Vec<_>>())
}

/// One CPU that loses events decides; otherwise one that was never idle, and so showed nothing.
fn judged(cpus: &[Seen]) -> Scope {
    let expected = f64::from(2 * SLEEPS);
    let loses = |seen: &Seen| seen.slept && (seen.switches as f64) < (1.0 - MISSING) * expected;
    // A CPU that is idle in some sleeps only may lose their events among those of others.
    let showed = |seen: &Seen| seen.slept && seen.idle.is_some_and(|idle| idle >= u64::from(SLEEPS / 2));
    if cpus.iter().any(loses) {
        Scope::WithoutIdle
    } else if cpus.iter().all(showed) && !cpus.is_empty() {
        Scope::Machine
    } else {
        Scope::IdleUnknown
    }
}

/// Sleeps on a CPU; `false` if this process may not use it.
fn sleep_on(cpu: u32) -> bool {
    let pinned = sys::schedule::pin_to(&[cpu]).is_ok();
    (0..SLEEPS).filter(|_| pinned).for_each(|_| std::thread::sleep(SLEEP));
    pinned
}

/// How often a CPU went idle.
fn idle_entries(cpu: u32) -> Option<u64> {
    let states = std::fs::read_dir(format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle")).ok()?;
    let usage = |state: std::fs::DirEntry| -> Option<u64> {
        std::fs::read_to_string(state.path().join("usage")).ok()?.trim().parse().ok()
    };
    let usages: Vec<u64> = states.flatten().filter_map(usage).collect();
    (!usages.is_empty()).then(|| usages.into_iter().fold(0, u64::wrapping_add))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_counted_or_the_error_says_why() {
        match Passes::open("sched", "sched_switch") {
            Ok(passes) => {
                let before = passes.read().unwrap();
                (0..20).for_each(|_| std::thread::sleep(Duration::from_micros(100)));
                assert!(passes.read().unwrap() >= before + 20);
            }
            Err(why) => assert!(why.contains("root"), "{why}"),
        }
        let Err(why) = Passes::open("no", "sched_switch") else { panic!("there is no such group") };
        assert!(why.contains("no:sched_switch") || why.contains("root"), "{why}");
    }

    #[test]
    fn a_cpu_whose_idle_task_is_not_counted_decides() {
        let cpu = |switches, idle| Seen { slept: true, switches, idle };
        let sees = cpu(66, Some(33));
        assert_eq!(judged(&[sees, sees]), Scope::Machine);
        assert_eq!(judged(&[sees, cpu(33, Some(33))]), Scope::WithoutIdle, "one switch of each sleep is missing");
        assert_eq!(judged(&[sees, cpu(900, Some(0))]), Scope::IdleUnknown, "it was never idle");
        assert_eq!(judged(&[sees, cpu(66, None)]), Scope::IdleUnknown);
        let foreign = Seen { slept: false, ..cpu(3, Some(3)) };
        assert_eq!(judged(&[sees, foreign]), Scope::IdleUnknown, "no thread slept on it");
        assert_eq!(judged(&[]), Scope::IdleUnknown);
    }

    #[test]
    fn a_machine_without_permission_is_unknown() {
        let scope = scope();
        if TracepointCounter::open("sched", "sched_switch").is_err() {
            assert_eq!(scope, Scope::IdleUnknown);
        }
        assert!(matches!(scope, Scope::Machine | Scope::WithoutIdle | Scope::IdleUnknown), "{scope:?}");
    }
}
