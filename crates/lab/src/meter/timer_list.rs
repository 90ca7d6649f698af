//! The kernel's tick-less idle clock, in nanoseconds, from /proc/timer_list (root only).
//!
//! Idle entry and exit count as idle here, interrupts taken while idle do not. The definition differs from cpuidle's,
//! so the two bracket the cost of a load that sleeps.

use super::{Cpus, MachineMeter, Opened};
use model::record::Clocks;
use model::unit::Nanos;
use std::fs::File;
use std::io::{Read, Seek};
use sys::clock::monotonic_nanos;

/// Opens the file and tries to parse it.
pub(super) fn open(cpus: &Cpus) -> Result<Opened, String> {
    cpus.in_reach()?;
    let file = File::open("/proc/timer_list").map_err(|error| format!("/proc/timer_list: {error}; run as root"))?;
    let mut list = TimerList { file, text: String::new(), cpus: cpus.online.len() };
    match list.read() {
        Some(_) => Ok(Opened::Once(Box::new(list))),
        None => Err("/proc/timer_list has no idle_sleeptime for each CPU (a kernel without NO_HZ)".to_owned()),
    }
}

/// The open file and a reusable buffer.
struct TimerList {
    file: File,
    text: String,
    cpus: usize,
}

impl MachineMeter for TimerList {
    fn read(&mut self) -> Option<Clocks> {
        self.text.clear();
        self.file.rewind().ok()?;
        let at_nanos = Nanos(monotonic_nanos());
        self.file.read_to_string(&mut self.text).ok()?;
        let nanos = parse(&self.text);
        (nanos.len() == self.cpus).then_some(Clocks { at_nanos, nanos })
    }
}

/// Sum of the two idle clocks of each CPU: the kernel separates idle time with and without a task that waits for I/O.
fn parse(text: &str) -> Vec<Nanos> {
    let mut idle = Vec::new();
    for line in text.lines() {
        let line = line.trim_start();
        if line.starts_with("cpu: ") {
            idle.push(None);
        } else if line.starts_with(".idle_sleeptime") || line.starts_with(".iowait_sleeptime") {
            let nanos = line.split_once(':').and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
            if let (Some(sum), Some(nanos)) = (idle.last_mut(), nanos) {
                *sum = Some(sum.unwrap_or(Nanos(0)) + Nanos(nanos));
            }
        }
    }
    idle.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_idle_clocks_of_each_cpu_are_added() {
        let text = "Timer List Version: v0.10\n\ncpu: 0\n clock 0:\n  .idle_sleeptime : 100 nsecs\n  \
                    .iowait_sleeptime: 5 nsecs\ncpu: 1\n  .idle_sleeptime : 7 nsecs\n  .iowait_sleeptime: 1 nsecs\n\
                    Tick Device: mode:     1\n";
        assert_eq!(parse(text), [Nanos(105), Nanos(8)]);
        assert_eq!(parse("cpu: 0\n nothing\n"), []);
    }
}
