//! Idle clocks as /proc/timer_list shows them.

use super::CpuClock;
use std::fs::File;
use std::io::{Read, Seek};

/// The open file and a reusable buffer.
pub(super) struct TimerList {
    file: File,
    text: String,
}

impl TimerList {
    /// Opens the file and tries to parse it.
    pub(super) fn open() -> Result<Self, String> {
        let file = File::open("/proc/timer_list").map_err(|error| format!("/proc/timer_list: {error}; run as root"))?;
        let mut list = Self { file, text: String::new() };
        match list.read() {
            Some(_) => Ok(list),
            None => Err("/proc/timer_list has no idle_sleeptime for each CPU (a kernel without NO_HZ)".to_owned()),
        }
    }

    /// The kernel's time, and the clock of each CPU that is online.
    pub(super) fn read(&mut self) -> Option<(u64, Vec<CpuClock>)> {
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
mod tests {
    use super::*;

    fn part(cpu: u32, stopped: u8, [entered, woken, left]: [u64; 3]) -> String {
        format!(
            "cpu: {cpu}\n clock 0:\n  .tick_stopped   : {stopped}\n  .idle_entrytime : {entered} nsecs\n  .idle_waketime  : {woken} nsecs\n  \
             .idle_exittime  : {left} nsecs\n  .idle_sleeptime : 100 nsecs\n  .iowait_sleeptime: 5 nsecs\n"
        )
    }

    #[test]
    fn both_idle_clocks_of_each_cpu_are_added_and_a_sleep_that_lasts() {
        let list = |parts: String| {
            parse(&format!("Timer List Version: v0.10\nnow at 900 nsecs\n\n{parts}Tick Device: mode: 1\n"))
        };
        let asleep = CpuClock { slept: 105, since: Some(700) };
        let awake = CpuClock { since: None, ..asleep };
        // Asleep; in the interrupt that ends a sleep; awake again; before the tick stops, nobody knows.
        let parts = [
            part(0, 1, [700, 600, 500]),
            part(1, 1, [700, 700, 500]),
            part(2, 1, [700, 600, 700]),
            part(3, 0, [700, 600, 500]),
        ];
        assert_eq!(list(parts.concat()), Some((900, vec![asleep, awake, awake, awake])));
        assert_eq!((asleep.at(900), awake.at(900)), (305, 105));
        assert_eq!(list("cpu: 0\n nothing\n".to_owned()), None);
        assert_eq!(list(String::new()), None);
    }
}
