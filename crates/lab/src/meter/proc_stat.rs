//! /proc/stat: idle + iowait of all CPUs, up to date, in ticks of 10 ms; and steal and context switches, which every
//! snapshot includes.
//!
//! The busy columns give no cost: tick-less kernels sample them at the tick. Without a better source, they show how
//! much of steal lies in idle time.

use super::Opened;
use model::record::{Count, SystemCounts};
use model::unit::Nanos;
use std::fs::File;
use std::io::{self, Read, Seek};
use sys::clock::monotonic_nanos;

/// Every other clock needs its steal column, so it is read even if it is not chosen.
pub(super) fn open() -> Result<Opened, String> {
    ProcStatFile::open().map(|_| Opened::ReadAnyway).map_err(|error| format!("/proc/stat: {error}"))
}

/// The open file and a reusable buffer.
pub(super) struct ProcStatFile {
    file: File,
    text: String,
    tick_nanos: u64,
}

impl ProcStatFile {
    pub(super) fn open() -> io::Result<Self> {
        let file = File::open("/proc/stat")?;
        let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
        Ok(Self { file, text: String::new(), tick_nanos: 1_000_000_000 / ticks_per_second })
    }

    pub(super) fn read(&mut self) -> Option<(Count, SystemCounts)> {
        self.text.clear();
        self.file.rewind().ok()?;
        let at_nanos = Nanos(monotonic_nanos());
        self.file.read_to_string(&mut self.text).ok()?;
        parse(&self.text, at_nanos, self.tick_nanos)
    }
}

pub(crate) fn parse(text: &str, at_nanos: Nanos, tick_nanos: u64) -> Option<(Count, SystemCounts)> {
    let mut lines = text.lines();
    let cpus = text.lines().skip(1).take_while(|line| line.starts_with("cpu")).count();
    let columns = lines.next()?.strip_prefix("cpu ")?;
    let column = |index| columns.split_whitespace().nth(index)?.parse::<u64>().ok();
    // user nice system idle iowait irq softirq steal …, proc_stat(5). A kernel before 2.6.11 has no steal.
    let ticks = |count: u64| Nanos(count.saturating_mul(tick_nanos));
    let context_switches = lines.find_map(|line| line.strip_prefix("ctxt "))?.trim().parse().ok()?;
    let Nanos(total) = ticks(column(3)?.saturating_add(column(4)?));
    let idle = Count { at_nanos, cpus: u32::try_from(cpus).ok()?, total };
    let counts = SystemCounts {
        at_nanos,
        steal_nanos: ticks(column(7).unwrap_or(0)),
        busy_nanos: [0, 1, 2, 5, 6].into_iter().map(column).sum::<Option<u64>>().map(ticks),
        context_switches,
    };
    Some((idle, counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_proc_stat() {
        let text = "cpu  1 2 3 40 50 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5\nctxt 1234\nbtime 9\n";
        let idle = Count { at_nanos: Nanos(1), cpus: 1, total: 900 };
        let expected = SystemCounts {
            at_nanos: Nanos(1),
            steal_nanos: Nanos(80),
            busy_nanos: Some(Nanos(190)),
            context_switches: 1234,
        };
        assert_eq!(parse(text, Nanos(1), 10), Some((idle, expected)));
        assert_eq!(parse("", Nanos(1), 10), None);
    }
}
