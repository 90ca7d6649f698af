//! What the kernel's own clocks say about a load: the scheduler's CPU time, ticks in softirqs, idle time, and counts of interrupts.

use super::argument;
use anyhow::Context;
use serde::Serialize;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use sys::clock::{monotonic_nanos, process_nanos};

/// Nanoseconds of a unit of /proc/stat.
const UNIT_NANOS: u64 = 10_000_000;

/// Readings at an instant.
pub(super) struct Clocks {
    softirq_nanos: u64,
    local_timers: u64,
    /// Of each CPU, read on it: the time, and the time that it was idle.
    idle: Vec<(u64, u64)>,
}

/// What happened between two instants.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Truth {
    /// CPU time of the process and its threads since they began.
    pub(super) own_nanos: u64,
    /// Time in softirqs of the whole machine, by samples at ticks.
    pub(super) softirq_nanos: u64,
    /// Local timer interrupts of all CPUs.
    pub(super) local_timers: u64,
    /// Time that the CPUs were not idle, by the clock of the tickless kernel.
    pub(super) busy_nanos: u64,
    /// CPU time of workers.
    pub(super) workers_nanos: u64,
    /// Expirations of the timer.
    pub(super) expired: u64,
}

impl Clocks {
    pub(super) fn now() -> anyhow::Result<Self> {
        Ok(Self { softirq_nanos: softirq_nanos()?, local_timers: local_timers()?, idle: idle()? })
    }
}

impl Truth {
    pub(super) fn since(before: &Clocks) -> anyhow::Result<Self> {
        let now = Clocks::now()?;
        let busy = now.idle.iter().zip(&before.idle).map(|((at, idle), (at_before, idle_before))| {
            at.saturating_sub(*at_before).saturating_sub(idle.saturating_sub(*idle_before))
        });
        Ok(Self {
            own_nanos: process_nanos(std::process::id()).context("the clock of this process")?,
            softirq_nanos: now.softirq_nanos.saturating_sub(before.softirq_nanos),
            local_timers: now.local_timers.saturating_sub(before.local_timers),
            busy_nanos: busy.sum(),
            ..Self::default()
        })
    }

    /// To the file that the second argument of a load names.
    pub(super) fn write(self, arguments: &[&str]) -> anyhow::Result<()> {
        let path: PathBuf = argument(arguments, 1)?;
        let text = serde_json::to_string(&self)?;
        fs::write(&path, text).with_context(|| path.display().to_string())
    }
}

fn softirq_nanos() -> anyhow::Result<u64> {
    let text = fs::read_to_string("/proc/stat")?;
    // user nice system idle iowait irq softirq
    let softirq = text.lines().next().and_then(|line| line.split_ascii_whitespace().nth(7)?.parse::<u64>().ok());
    Ok(softirq.context("/proc/stat has no softirqs")? * UNIT_NANOS)
}

fn local_timers() -> anyhow::Result<u64> {
    let text = fs::read_to_string("/proc/interrupts")?;
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("LOC:"));
    let counts = line.context("/proc/interrupts has no local timers")?.split_ascii_whitespace();
    Ok(counts.map_while(|count| count.parse::<u64>().ok()).sum())
}

/// The kernel brings a CPU's idle time up to date when the CPU stops being idle, so each is read by a thread on it.
fn idle() -> anyhow::Result<Vec<(u64, u64)>> {
    let reading = std::thread::spawn(|| {
        let mut readings = Vec::new();
        for (place, cpu) in sys::schedule::online_cpus()?.into_iter().enumerate() {
            sys::schedule::pin_to(&[cpu])?;
            let at = monotonic_nanos();
            let text = fs::read_to_string("/proc/timer_list").context("/proc/timer_list needs root")?;
            readings.push((at, *idle_nanos(&text).get(place).context("/proc/timer_list has no idle times")?));
        }
        Ok(readings)
    });
    reading.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the reader panicked")))
}

/// Of each CPU, with and without a task that waits for I/O.
fn idle_nanos(text: &str) -> Vec<u64> {
    let mut idle = Vec::new();
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("cpu: ") {
            idle.push(0);
        } else if line.starts_with(".idle_sleeptime") || line.starts_with(".iowait_sleeptime") {
            let nanos = line.split_once(':').and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<u64>().ok());
            if let (Some(sum), Some(nanos)) = (idle.last_mut(), nanos) {
                *sum += nanos;
            }
        }
    }
    idle
}

/// CPU time of threads by the scheduler, at their last reading.
#[derive(Default)]
pub(super) struct Threads(HashMap<u64, u64>);

impl Threads {
    /// Of a process.
    pub(super) fn read_of(&mut self, process: u32, fits: impl Fn(&str) -> bool) {
        self.read_in(&PathBuf::from(format!("/proc/{process}/task")), fits);
    }

    /// First threads of all processes.
    pub(super) fn read_all(&mut self, fits: impl Fn(&str) -> bool) {
        self.read_in(Path::new("/proc"), fits);
    }

    fn read_in(&mut self, folder: &Path, fits: impl Fn(&str) -> bool) {
        // What has ended meanwhile keeps its last reading.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Some(thread) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            if !fits(read("comm").trim_end()) {
                continue;
            }
            if let Some(nanos) = read("schedstat").split_ascii_whitespace().next().and_then(|it| it.parse().ok()) {
                self.0.insert(thread, nanos);
            }
        }
    }

    pub(super) fn nanos(&self) -> u64 {
        self.0.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_idle_times_of_a_cpu_are_added() {
        let text = "cpu: 0\n  .idle_sleeptime : 100 nsecs\n  .iowait_sleeptime: 5 nsecs\ncpu: 1\n  .idle_sleeptime : 7 nsecs\n";
        assert_eq!(idle_nanos(text), [105, 7]);
    }

    #[test]
    fn this_thread_has_a_time() {
        let mut threads = Threads::default();
        threads.read_of(std::process::id(), |_| true);
        assert!(threads.nanos() > 0);
    }
}
