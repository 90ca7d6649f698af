//! The kernel's tick-less idle clock, in nanoseconds (root only).
//!
//! Idle entry and exit count as idle here, interrupts taken while idle do not. The definition differs from cpuidle's,
//! so the two bracket the cost of a load that sleeps.
//!
//! The clock of a CPU advances at the end of each sleep. A sleep that lasts is added, so no CPU is woken to bring it up to date. A program
//! in the kernel reads the clocks of all CPUs in some microseconds ([`kernel_memory`]); where it cannot, they are in /proc/timer_list,
//! which takes 22 µs a CPU to read, and says only of a CPU whose tick is stopped that it sleeps.

mod kernel_memory;

use super::Online;
use super::{Cpus, Opened};
use kernel_memory::KernelMemory;
use model::record::{Count, Mode};
use model::unit::Nanos;
use std::fs::File;
use std::io::{Read, Seek};
use std::time::Duration;
use sys::clock::monotonic_nanos;

/// Reading takes at most one part in this many of the time of a window.
const SHARE: u64 = 50;

/// Opens it, and says how it is read.
pub(super) fn open(cpus: &Cpus) -> Result<Opened, String> {
    IdleClock::open(&cpus.online).map(|clock| Opened::IdleClock(Box::new(clock)))
}

/// The clocks of all CPUs.
pub(super) struct IdleClock {
    list: TimerList,
    /// Why it is read from there if it is not read from memory.
    memory: Result<KernelMemory, String>,
    online: Online,
    /// Duration of a reading: the fastest of several, because slower ones were delayed.
    cost: Nanos,
    latest: Option<(Mode, Nanos)>,
    /// A CPU came or went since this was asked last.
    changed: bool,
}

/// The idle clock of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuClock {
    /// The sleeps that have ended. The kernel separates those with and without a task that waits for I/O.
    slept: u64,
    /// When the present one began.
    since: Option<u64>,
}

impl CpuClock {
    fn at(self, now: u64) -> u64 {
        self.slept.saturating_add(self.since.map_or(0, |since| now.saturating_sub(since)))
    }
}

impl IdleClock {
    fn open(online: &[u32]) -> Result<Self, String> {
        let mut list = TimerList::open()?;
        let memory = KernelMemory::open(online, &mut list);
        let mut clock = Self {
            list,
            memory,
            online: Online::open().map_err(|error| format!("listing CPUs: {error}"))?,
            cost: Nanos(0),
            latest: None,
            changed: false,
        };
        clock.cost = clock.time().ok_or("/proc/timer_list ended early")?;
        Ok(clock)
    }

    /// How long a reading takes.
    fn time(&mut self) -> Option<Nanos> {
        const READINGS: usize = 5;
        let took = |_| {
            let began = Nanos(monotonic_nanos());
            self.read_all().map(|_| Nanos(monotonic_nanos()).since(began))
        };
        (0..READINGS).filter_map(took).min()
    }

    /// How it is read.
    pub(super) fn way(&self) -> String {
        let micros = self.cost.as_f64() / 1e3;
        match &self.memory {
            Ok(_) => format!("read in {micros:.0} µs by a program in the kernel"),
            Err(why) => format!("read in {micros:.0} µs from /proc/timer_list ({why})"),
        }
    }

    /// The shortest window in which reading does not dominate.
    pub(super) fn shortest_window(&self) -> Duration {
        Duration::from_nanos(self.cost.0.saturating_mul(SHARE))
    }

    /// Whether a CPU came or went since the last call.
    pub(super) fn has_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Reads it at a snapshot now, which time in `mode` follows, if it is due.
    pub(super) fn read_if_due(&mut self, mode: Mode) -> Option<Count> {
        let now = Nanos(monotonic_nanos());
        let shortest = self.shortest_window();
        let is_early = |(before, at): &(Mode, Nanos)| *before == mode && now.since(*at).duration() < shortest;
        if self.latest.as_ref().is_some_and(is_early) {
            return None;
        }
        self.latest = Some((mode, now));
        self.read()
    }

    /// Reads it. If a CPU came or went since the last reading, no CPU is counted, which ends a window.
    pub(super) fn read(&mut self) -> Option<Count> {
        if let Some(online) = self.online.changed() {
            self.changed = true;
            if self.memory.is_ok() {
                self.memory = KernelMemory::open(&online, &mut self.list);
                self.cost = self.time().unwrap_or(self.cost);
            }
            return Some(Count::default());
        }
        self.read_all()
    }

    fn read_all(&mut self) -> Option<Count> {
        let (now, clocks) = match &self.memory {
            Ok(memory) => memory.read()?,
            Err(_) => self.list.read()?,
        };
        let total = clocks.iter().fold(0_u64, |sum, clock| sum.wrapping_add(clock.at(now)));
        Some(Count { at_nanos: Nanos(now), cpus: u32::try_from(clocks.len()).ok()?, total })
    }
}

/// The open file and a reusable buffer.
struct TimerList {
    file: File,
    text: String,
}

impl TimerList {
    /// Opens the file and tries to parse it.
    fn open() -> Result<Self, String> {
        let file = File::open("/proc/timer_list").map_err(|error| format!("/proc/timer_list: {error}; run as root"))?;
        let mut list = Self { file, text: String::new() };
        match list.read() {
            Some(_) => Ok(list),
            None => Err("/proc/timer_list has no idle_sleeptime for each CPU (a kernel without NO_HZ)".to_owned()),
        }
    }

    /// The kernel's time, and the clock of each CPU that is online.
    fn read(&mut self) -> Option<(u64, Vec<CpuClock>)> {
        self.text.clear();
        self.file.rewind().ok()?;
        self.file.read_to_string(&mut self.text).ok()?;
        parse(&self.text)
    }
}

/// What a CPU's part says.
#[derive(Default)]
struct Part {
    slept: Option<u64>,
    tick_is_stopped: bool,
    entered: u64,
    woken: u64,
    left: u64,
}

fn parse(text: &str) -> Option<(u64, Vec<CpuClock>)> {
    let mut now = None;
    let mut parts: Vec<Part> = Vec::new();
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("cpu: ") {
            parts.push(Part::default());
        }
        now = now.or_else(|| line.strip_prefix("now at ")?.split(' ').next()?.parse().ok());
        let Some(part) = parts.last_mut() else { continue };
        let value = || line.split_once(':')?.1.split_whitespace().next()?.parse::<u64>().ok();
        // The names end with spaces or the colon.
        match line.split([' ', ':']).next() {
            Some(".idle_sleeptime" | ".iowait_sleeptime") => {
                part.slept = part.slept.unwrap_or(0).checked_add(value()?);
            }
            Some(".tick_stopped") => part.tick_is_stopped = value()? == 1,
            Some(".idle_entrytime") => part.entered = value()?,
            Some(".idle_waketime") => part.woken = value()?,
            Some(".idle_exittime") => part.left = value()?,
            _ => {}
        }
    }
    // The time of an entry is also set at the end of a sleep, to that of the interrupt or the exit.
    let since = |part: &Part| {
        (part.tick_is_stopped && part.entered > part.woken && part.entered > part.left).then_some(part.entered)
    };
    let clocks = parts.iter().map(|part| Some(CpuClock { slept: part.slept?, since: since(part) }));
    Some((now?, clocks.collect::<Option<Vec<_>>>()?)).filter(|(_, clocks)| !clocks.is_empty())
}

#[cfg(test)]
mod tests;
