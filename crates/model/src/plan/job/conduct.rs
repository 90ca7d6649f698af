//! What a job does to its files and in which order, how it asks the kernel, what slows it down, and how others depend on it.

use super::Rates;
use serde::{Deserialize, Serialize};

/// Which directions a job uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Trims (discards) only.
    Trim,
    /// Reads and writes; `read_percent` of the I/Os are reads.
    ReadWrite,
    /// Each block is trimmed, then written.
    TrimWrite,
}

impl Access {
    /// Whether it changes the files.
    pub fn changes(self) -> bool {
        self != Self::Read
    }

    /// Whether it writes data.
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::ReadWrite | Self::TrimWrite)
    }
}

/// The order in which blocks are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// In ascending order.
    Sequential,
    /// In random order. Each block is used once before any is used again, unless `no_random_map` is set.
    Random,
}

/// The values of `rw=`. Of two with the same meaning, the first is shown.
pub const PATTERNS: [(&str, Access, Order); 11] = [
    ("read", Access::Read, Order::Sequential),
    ("write", Access::Write, Order::Sequential),
    ("trim", Access::Trim, Order::Sequential),
    ("randread", Access::Read, Order::Random),
    ("randwrite", Access::Write, Order::Random),
    ("randtrim", Access::Trim, Order::Random),
    ("rw", Access::ReadWrite, Order::Sequential),
    ("readwrite", Access::ReadWrite, Order::Sequential),
    ("randrw", Access::ReadWrite, Order::Random),
    ("trimwrite", Access::TrimWrite, Order::Sequential),
    ("randtrimwrite", Access::TrimWrite, Order::Random),
];

/// Rates in bytes, and how often a job pauses. With fio's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pace {
    /// `rate`: bytes per second of each direction; 0 means no limit.
    pub bytes: Rates,
    /// `thinktime_blocks`: I/Os between pauses.
    pub think_blocks: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { bytes: Rates::default(), think_blocks: 1 }
    }
}

/// Options of single engines about their system calls. With fio's defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallPlan {
    /// `hipri`: the device is polled instead of waiting for its interrupt.
    pub polled: bool,
    /// `nowait`: an I/O that would have to wait fails.
    pub nowait: bool,
    /// `uncached`: pages leave the page cache after the I/O (RWF_DONTCACHE).
    pub uncached: bool,
    /// `sqthread_poll`: a kernel thread takes submissions.
    pub submission_thread: bool,
    /// `force_async`: this many I/Os at least are handed to a worker of the kernel; 0 means none.
    pub force_async: u32,
}

/// What ends with a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Together {
    /// Its group, counted within its phase: `new_group` begins another one.
    pub group: u32,
    /// `exitall`: others end with the job.
    pub exit_all: bool,
    /// `exit_what`: which they are.
    pub exit_what: Ends,
}

impl Together {
    /// The option by which others depend on the job, if it has one: a comparison, a recording or a guest decides when a job runs.
    pub fn first_option(&self) -> Option<&'static str> {
        self.exit_all.then_some("exitall")
    }
}

/// What ends when a job with `exitall` ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ends {
    /// All jobs of its group.
    #[default]
    Group,
    /// All jobs of its phase.
    Phase,
    /// The run: no phase follows.
    Run,
}

/// What a job replays, and how. With fio's defaults: nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplayPlan {
    /// `read_iolog`: copies of the job take turns among these traces.
    pub traces: Vec<String>,
    /// `replay_no_stall`: without the times of the trace.
    pub no_stall: bool,
    /// `replay_time_scale`: the rate, in percent of that of the trace.
    pub time_scale: u32,
    /// `replay_redirect`: the file of all requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<String>,
}

impl Default for ReplayPlan {
    fn default() -> Self {
        Self { traces: Vec::new(), no_stall: false, time_scale: 100, redirect: None }
    }
}

impl ReplayPlan {
    /// Whether a job replays a trace.
    pub fn is_in_force(&self) -> bool {
        !self.traces.is_empty()
    }

    /// The trace of a copy.
    pub fn trace_of(&self, copy: u32) -> Option<&str> {
        let turn = (copy as usize).checked_rem(self.traces.len())?;
        self.traces.get(turn).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_take_turns_among_traces() {
        let replay = ReplayPlan { traces: vec!["a".to_owned(), "b".to_owned()], ..ReplayPlan::default() };
        assert_eq!([0, 1, 2].map(|copy| replay.trace_of(copy)), [Some("a"), Some("b"), Some("a")]);
        assert_eq!(ReplayPlan::default().trace_of(0), None);
    }
}
