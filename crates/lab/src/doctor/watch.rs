//! The machine without a workload: reads /proc/stat twice. And a load that keeps one CPU busy, watched by the meters: what this
//! machine would resolve.
//!
//! Busy is everything except idle, iowait and steal. The busy columns themselves are not added up: a kernel that stops
//! its tick samples them, and misses what runs between ticks (docs/method/unit.md).

use crate::meter::{MeterSet, Work, proc_stat};
use crate::sysroot::Sysroot;
use model::doctor::Background;
use model::reading::Reading;
use model::record::{Count, Done, Mode, Snapshot, SystemCounts};
use model::unit::{Bytes, Nanos};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// USER_HZ, the unit of /proc: 100 on every supported architecture.
const TICK_NANOS: u64 = 10_000_000;
/// How long the busy CPU is watched, and in how many steps.
const WATCHED: Duration = Duration::from_millis(300);
const STEPS: u32 = 30;
/// The same where the meters need longer steps.
const FEWEST_STEPS: u32 = 10;

/// Measures for `length`, asleep.
pub(super) fn background(root: &Sysroot, length: Duration) -> Background {
    let before = totals(root);
    let begin = Instant::now();
    thread::sleep(length);
    let watched_nanos = Nanos::from(begin.elapsed());
    between(before, totals(root), watched_nanos)
}

fn between(before: Option<Totals>, after: Option<Totals>, watched_nanos: Nanos) -> Background {
    const REASON: &str = "/proc/stat cannot be read: mount /proc";
    let (Some(before), Some(after)) = (before, after) else {
        let missing = || Reading::unavailable(REASON);
        return Background {
            watched_nanos,
            busy_fraction: missing(),
            steal_fraction: missing(),
            steal_since_boot_fraction: missing(),
        };
    };
    let ((idle_before, before), (idle_after, after)) = (before, after);
    let capacity = watched_nanos.as_f64() * f64::from(idle_after.cpus);
    let idle = Nanos(idle_after.total).since(Nanos(idle_before.total)).as_f64();
    let steal = after.steal_nanos.since(before.steal_nanos).as_f64();
    let all = Nanos(idle_after.total) + after.steal_nanos + after.busy_nanos.unwrap_or_default();
    let part = |part: f64, of: f64, reason: &str| {
        if of > 0.0 { Reading::Taken((part / of).clamp(0.0, 1.0)) } else { Reading::unavailable(reason) }
    };
    Background {
        watched_nanos,
        busy_fraction: part(capacity - idle - steal, capacity, "no time passed"),
        steal_fraction: part(steal, capacity, "no time passed"),
        steal_since_boot_fraction: part(after.steal_nanos.as_f64(), all.as_f64(), "/proc/stat is all zero"),
    }
}

/// Idle time with the number of CPUs, and the rest, since boot.
type Totals = (Count, SystemCounts);

fn totals(root: &Sysroot) -> Option<Totals> {
    parsed(&root.text("proc/stat")?)
}

fn parsed(stat: &str) -> Option<Totals> {
    proc_stat::parse(stat, Nanos(0), TICK_NANOS).filter(|(idle, _)| idle.cpus > 0)
}

#[derive(Default)]
struct Spinning {
    rounds: AtomicU64,
    ended: AtomicBool,
}

impl Work for Spinning {
    fn done(&self) -> Option<Done> {
        Some(Done { ios: self.rounds.load(Ordering::Relaxed), bytes: Bytes(0) })
    }
}

impl Spinning {
    fn spin(&self) {
        while !self.ended.load(Ordering::Relaxed) {
            (0..1000).for_each(|_| std::hint::spin_loop());
            self.rounds.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Counters at equal steps beside a load that keeps one CPU busy, in as much time as the meters need.
pub(super) fn one_busy_cpu(meters: &mut MeterSet) -> Vec<Snapshot> {
    let step = (WATCHED / STEPS).max(meters.shortest_slice());
    let steps = (WATCHED.div_duration_f64(step) as u32).max(FEWEST_STEPS);
    let spinning = Spinning::default();
    thread::scope(|scope| {
        // A limit of threads may forbid it: then nothing was seen.
        let Ok(_) = thread::Builder::new().spawn_scoped(scope, || spinning.spin()) else { return Vec::new() };
        // Until it has a CPU.
        thread::sleep(WATCHED / STEPS);
        let look = |_| {
            thread::sleep(step);
            meters.snapshot(Mode::Quiet, &spinning)
        };
        let seen = (0..=steps).map(look).collect();
        spinning.ended.store(true, Ordering::Relaxed);
        seen
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu  100 0 100 1000 50 0 0 10 7 7\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5\nctxt 9\n";
    const AFTER: &str = "cpu  101 0 101 1050 52 0 0 12 7 7\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5\nctxt 9\n";

    #[test]
    fn busy_is_what_is_not_idle_nor_waiting_nor_stolen() {
        let seen = between(parsed(BEFORE), parsed(AFTER), Nanos::from_millis(300));
        let busy = *seen.busy_fraction.taken().unwrap();
        assert!((busy - (600.0 - 520.0 - 20.0) / 600.0).abs() < 1e-9, "{busy}");
        assert!((seen.steal_fraction.taken().unwrap() - 20.0 / 600.0).abs() < 1e-9);
        let boot = *seen.steal_since_boot_fraction.taken().unwrap();
        assert!((boot - 12.0 / 1316.0).abs() < 1e-9, "{boot}");
    }

    /// Empty, without numbers, with too few, without a line for each CPU, with words: an unknown share is no share of 0.
    #[test]
    fn what_is_not_proc_stat_is_not_zero() {
        for text in ["", "cpu\n", "cpu  1 2 3\ncpu0 1\n", "cpu  1 2 3 4 5 6 7 8\nctxt 1\n", "cpu  a b\ncpu0\n"] {
            assert_eq!(parsed(text), None, "{text}");
        }
        let seen = between(parsed(BEFORE), None, Nanos(1));
        assert!(seen.busy_fraction.reason().unwrap().contains("/proc/stat"));
    }
}
