//! What a job does to its files and in which order, how it asks the kernel, what slows it down, and how others depend on it.

use super::{Choice, Each, PathCopy, PathInFlight};
use crate::plan::value::Wrong;
use crate::unit::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::fmt;

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
    /// Whether it reads, writes, and trims.
    pub fn directions(self) -> [bool; 3] {
        match self {
            Self::Read => [true, false, false],
            Self::Write => [false, true, false],
            Self::Trim => [false, false, true],
            Self::ReadWrite => [true, true, false],
            Self::TrimWrite => [false, true, true],
        }
    }

    /// Whether it reads data.
    pub fn reads(self) -> bool {
        self.directions()[0]
    }

    /// Whether it changes the files.
    pub fn changes(self) -> bool {
        self != Self::Read
    }

    /// Whether it writes data.
    pub fn writes(self) -> bool {
        self.directions()[1]
    }

    /// Whether it trims blocks.
    pub fn trims(self) -> bool {
        self.directions()[2]
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

impl Choice for (Access, Order) {
    fn words() -> Vec<(&'static str, Self)> {
        vec![
            ("read", (Access::Read, Order::Sequential)),
            ("write", (Access::Write, Order::Sequential)),
            ("trim", (Access::Trim, Order::Sequential)),
            ("randread", (Access::Read, Order::Random)),
            ("randwrite", (Access::Write, Order::Random)),
            ("randtrim", (Access::Trim, Order::Random)),
            ("rw", (Access::ReadWrite, Order::Sequential)),
            ("readwrite", (Access::ReadWrite, Order::Sequential)),
            ("randrw", (Access::ReadWrite, Order::Random)),
            ("trimwrite", (Access::TrimWrite, Order::Sequential)),
            ("randtrimwrite", (Access::TrimWrite, Order::Random)),
        ]
    }
}

part! {
    /// What slows a job down.
    #[derive(Copy)]
    Pace {
        /// `rate_iops`: I/Os per second of each direction; 0 means no limit.
        ios: Each<u64> = Each::default(),
        /// `rate`: bytes per second of each direction; 0 means no limit.
        bytes: Each<Bytes> = Each::default(),
        /// `thinktime`: sleep between I/Os.
        think_time: Nanos = Nanos(0),
        /// `thinktime_blocks`: I/Os between pauses.
        think_blocks: u32 = 1,
    }
}

part! {
    /// When files are synced.
    #[derive(Copy)]
    SyncPlan {
        /// `fsync=N`: call fsync after every N writes; 0 means never.
        every: u32 = 0,
        /// `fdatasync=N`: call fdatasync after every N writes; 0 means never.
        data_every: u32 = 0,
        /// `end_fsync`: call fsync once when the job has written everything.
        at_end: bool = false,
        /// `fsync_on_close`: each file that the job may write to is synced when it is closed.
        on_close: bool = false,
    }
}

part! {
    /// Options of single engines about their system calls.
    #[derive(Copy)]
    CallPlan {
        /// `fixedbufs`: registered buffers of io_uring. `None` means the engine's default.
        fixed_buffers: Option<bool> = None,
        /// `registerfiles`: registered files of io_uring. `None` means the engine's default.
        registered_files: Option<bool> = None,
        /// `hipri`: the device is polled instead of waiting for its interrupt.
        polled: bool = false,
        /// `nowait`: an I/O that would have to wait fails.
        nowait: bool = false,
        /// `uncached`: pages leave the page cache after the I/O (RWF_DONTCACHE).
        uncached: bool = false,
        /// `sqthread_poll`: a kernel thread takes submissions.
        submission_thread: bool = false,
        /// `force_async`: this many I/Os at least are handed to a worker of the kernel; 0 means none.
        force_async: u32 = 0,
    }
}

part! {
    /// Options of single engines about what they do.
    OwnPlan {
        /// `spin_cycles`: TSC cycles that engine `spin` burns for each I/O.
        spin_cycles: u64 = 0,
        /// `work_steps`: dependent multiply-adds that engine `work` executes for each I/O.
        work_steps: u64 = 0,
        /// `mem_copy`: how engine `mem` copies.
        mem_copy: PathCopy = PathCopy::default(),
        /// `mem_in_flight`: where engine `mem` counts I/Os in flight.
        mem_in_flight: PathInFlight = PathInFlight::default(),
        /// `rr_peer`: the echo server of engine `rr`.
        rr_peer: Option<Peer> = None,
        /// `rr_connect`: engine `rr` connects anew for each exchange.
        rr_connect: bool = false,
    }
}

part! {
    /// Busy work that is added.
    #[derive(Copy)]
    Inject {
        /// `inject_ns`: to each I/O.
        time: Nanos = Nanos(0),
        /// `inject_every`: add it once per this time instead of to each I/O; 0 means to each.
        every: Nanos = Nanos(0),
    }
}

part! {
    /// The threads of a job's copies.
    ThreadPlan {
        /// `cpus_allowed`: the CPUs that they may use. Empty means all.
        cpus_allowed: Vec<u32> = Vec::new(),
        /// `lockmem`: bytes of memory that each takes away from the machine.
        locked_memory: Bytes = Bytes(0),
    }
}

part! {
    /// How a job is reported.
    Reporting {
        /// `group_reporting`: the copies as one job.
        group: bool = false,
        /// `percentile_list`, in percent, ascending. The default is fio's, so that the numbers can be compared.
        percentiles: Vec<f64> = vec![
            1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99,
        ],
    }
}

part! {
    /// When a job runs among others, and what ends with it.
    Together {
        /// `startdelay`.
        start_delay: Nanos = Nanos(0),
        /// Its group, counted within its phase: `new_group` begins another one.
        group: u32 = 0,
        /// `exitall`: others end with the job.
        exit_all: bool = false,
        /// `exit_what`: which they are.
        exit_what: Ends = Ends::default(),
    }
}

impl Together {
    /// The option by which others depend on the job, if it has one: a comparison, a recording or a guest decides when a job runs.
    pub fn first_option(&self) -> Option<&'static str> {
        self.exit_all.then_some("exitall")
    }
}

words! {
    /// What ends when a job with `exitall` ends.
    Ends {
        /// All jobs of its group.
        #[default]
        Group: "group",
        /// All jobs of its phase.
        Phase: "stonewall",
        /// The run: no phase follows.
        Run: "all",
    }
}

part! {
    /// What a job replays, and how.
    ReplayPlan {
        /// `read_iolog`: copies of the job take turns among these traces.
        traces: Vec<String> = Vec::new(),
        /// `replay_no_stall`: without the times of the trace.
        no_stall: bool = false,
        /// `replay_redirect`: the file of all requests.
        redirect: Option<String> = None,
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

/// An echo server, which returns what it receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Peer {
    /// Host and port, over TCP.
    Tcp(String),
    /// Host and port, over UDP.
    Udp(String),
    /// Path of a stream socket.
    Unix(String),
}

impl Peer {
    /// The accepted values.
    pub const FORM: &'static str = "tcp://HOST:PORT, udp://HOST:PORT or unix:PATH";

    /// Parses `rr_peer`, and the address of `iotoll serve --echo`.
    ///
    /// # Errors
    /// The accepted values, in words.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let wrong =
            || Wrong::because(text, format_args!("is not the address of an echo server: expected {}", Self::FORM));
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(wrong()) } else { Ok(Self::Unix(path.to_owned())) };
        }
        let (scheme, address) = text.split_once("://").ok_or_else(wrong)?;
        let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
        if !matches!(port, Some(Ok(_))) {
            return Err(wrong());
        }
        match scheme {
            "tcp" => Ok(Self::Tcp(address.to_owned())),
            "udp" => Ok(Self::Udp(address.to_owned())),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(formatter, "tcp://{address}"),
            Self::Udp(address) => write!(formatter, "udp://{address}"),
            Self::Unix(path) => write!(formatter, "unix:{path}"),
        }
    }
}

impl From<Peer> for String {
    fn from(peer: Peer) -> Self {
        peer.to_string()
    }
}

impl TryFrom<String> for Peer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).map_err(|wrong| wrong.to_string())
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

    #[test]
    fn addresses_are_parsed_and_printed() {
        for text in ["tcp://127.0.0.1:7", "udp://[::1]:5001", "tcp://a.host:65535", "unix:/run/echo"] {
            assert_eq!(Peer::parse(text).map(|peer| peer.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "tcp://", "tcp://host", "tcp://:7", "tcp://host:70000", "sctp://a:1", "unix:", "127.0.0.1:7"] {
            assert!(Peer::parse(text).is_err(), "{text}");
        }
    }
}
