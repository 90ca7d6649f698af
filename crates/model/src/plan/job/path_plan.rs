//! How engine `nbd` and the server send and receive payloads.

use crate::plan::value::typed::list;
use crate::plan::value::{Wrong, cpus, integer_in};
use crate::unit::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter, Result as Formatted};

/// Maximum number of jobs that share a connection.
pub const MOST_SUBMITTERS: u32 = 64;
/// Maximum payload of a request in bytes: every server must accept this much unless it says otherwise (NBD,
/// `doc/proto.md`).
pub const MOST_PAYLOAD: u32 = 32 << 20;
/// Above the length of any payload: no limit.
const ANY: u32 = u32::MAX;

part! {
    /// The server, and all switches of the path to it.
    PathPlan {
        /// `uri`: the server and the export. Clients only.
        uri: Option<String> = None,
        /// `path_send`: how a payload is sent.
        send: PathSend = PathSend::default(),
        /// `path_receive`: how a payload is received.
        receive: PathReceive = PathReceive::default(),
        /// `path_framing`: how much one system call sends or receives.
        framing: PathFraming = PathFraming::default(),
        /// `path_segment`: segment size of payloads that are not copied.
        segment: PathSegment = PathSegment::default(),
        /// `path_max_payload`: larger I/Os are split into several requests, bytes.
        max_payload: u32 = MOST_PAYLOAD,
        /// `path_copy`: copy method.
        copy: PathCopy = PathCopy::default(),
        /// `path_crc`: whether a checksum follows each payload.
        crc: PathCrc = PathCrc::default(),
        /// `path_coalesce`: maximum time to wait for several messages; 0 waits for one.
        coalesce: Nanos = Nanos(500_000),
        /// `path_busy_poll`: busy-poll time before sleeping.
        busy_poll: Nanos = Nanos(0),
        /// `path_in_flight`: how requests in flight are counted. Clients only.
        in_flight: PathInFlight = PathInFlight::default(),
        /// `path_null`: what is skipped.
        null: PathNull = PathNull::default(),
        /// `path_tx_queue`: how the requests of several jobs reach one connection. Clients only.
        tx_queue: PathTxQueue = PathTxQueue::default(),
        /// `tx_task_cpus`: CPUs of the thread that drains the queue. Clients only.
        tx_task_cpus: TxTaskCpus = TxTaskCpus::default(),
        /// `submitters`: maximum number of jobs that share a connection. Clients only.
        submitters: u32 = MOST_SUBMITTERS,
    }
}

/// `path_send`: how a payload is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSend {
    /// Payloads of at most this many bytes are copied behind the header (pull-up); longer ones are sent from their
    /// buffer (gather).
    pub pull_up: u32,
    /// Of the longer payloads, those above this many bytes are sent as pages, without a copy (zero-copy).
    pub zero_copy: u32,
}

/// `path_receive`: how a payload is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathReceive {
    /// Payloads of at most this many bytes are received into a shared buffer and copied; longer ones are received in
    /// place.
    pub copy: u32,
}

words! {
    /// `path_framing`: how much one system call sends or receives.
    PathFraming {
        /// Everything available.
        #[default]
        OneGo: "one-go",
        /// Receives everything available, but sends one header or one segment at a time.
        SegmentAtATime: "segment-at-a-time",
        /// One header, or at most one page of a payload.
        PageAtATime: "page-at-a-time",
    }
}

/// `path_segment`: segment size of payloads that are not copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSegment {
    /// Maximum length of a segment.
    pub bytes: u32,
}

words! {
    /// `path_copy`: copy method.
    PathCopy {
        /// Sixteen bytes at a time, through the caches.
        Plain: "plain",
        /// `rep movsb`.
        #[default]
        RepMovsb: "rep-movsb",
        /// Non-temporal stores, which bypass the caches.
        NonTemporal: "non-temporal",
    }
}

words! {
    /// `path_crc`: whether a checksum follows each payload.
    PathCrc {
        /// No checksums.
        #[default]
        Off: "off",
        /// CRC-32C behind each payload, verified by the receiver.
        On: "on",
    }
}

words! {
    /// `path_in_flight`: how requests in flight are counted, in addition to the connection's own count.
    PathInFlight {
        /// Not counted.
        #[default]
        None: "none",
        /// One counter for each job.
        PerThread: "per-thread",
        /// One counter for all jobs.
        Shared: "shared",
    }
}

words! {
    /// `path_null`: what is skipped.
    PathNull {
        /// Nothing.
        #[default]
        None: "none",
        /// The network: requests complete without being sent.
        Wire: "wire",
        /// The storage is not touched. Servers only.
        Server: "server",
    }
}

words! {
    /// `path_tx_queue`: how the requests of several jobs reach one connection.
    PathTxQueue {
        /// Each job has its own connection.
        #[default]
        None: "none",
        /// Each job sends its own requests, under a lock.
        Lock: "lock",
        /// Through a ring that a dedicated thread drains.
        RingTask: "ring-task",
        /// Through a ring that is drained by the job that finds it idle.
        MpRing: "mp-ring",
        /// Through a list; the job that finds it idle takes all entries.
        SwapAll: "swap-all",
    }
}

/// `tx_task_cpus`: CPUs of the thread that drains the queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TxTaskCpus {
    /// Any CPU.
    #[default]
    Any,
    /// The CPUs of the job (`cpus_allowed`).
    Same,
    /// The CPUs that the job does not use.
    Other,
    /// These CPUs.
    List(Vec<u32>),
}

impl TxTaskCpus {
    /// # Errors
    /// If `text` is neither one of these words nor a list of CPUs.
    pub(crate) fn parse(text: &str) -> Result<Self, Wrong> {
        match text {
            "any" => Ok(Self::Any),
            "same" => Ok(Self::Same),
            "other" => Ok(Self::Other),
            list => cpus(list).map(Self::List),
        }
    }
}

impl Display for TxTaskCpus {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Formatted {
        match self {
            Self::Any => formatter.write_str("any"),
            Self::Same => formatter.write_str("same"),
            Self::Other => formatter.write_str("other"),
            Self::List(cpus) => formatter.write_str(&list(cpus, ",").unwrap_or_default()),
        }
    }
}

/// Measured: experiments/path-send.toml and path-receive.toml, docs/validation/switches.md.
impl Default for PathSend {
    fn default() -> Self {
        Self { pull_up: 2048, zero_copy: ANY }
    }
}

/// Measured like [`PathSend`].
impl Default for PathReceive {
    fn default() -> Self {
        Self { copy: 4096 }
    }
}

impl PathSend {
    /// The accepted values, in words.
    pub const FORM: &str =
        "pull-up, gather or zero-copy; pull-up:BYTES for payloads up to BYTES, zero-copy:BYTES for larger ones";

    /// # Errors
    /// If `text` is none of [`FORM`](Self::FORM).
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let pulled_up = |zero_copy| Self { pull_up: Self::default().pull_up.min(zero_copy), zero_copy };
        match text.split_once(':') {
            None if text == "pull-up" => Ok(Self { pull_up: ANY, zero_copy: ANY }),
            None if text == "gather" => Ok(Self { pull_up: 0, zero_copy: ANY }),
            None if text == "zero-copy" => Ok(pulled_up(0)),
            Some(("pull-up", most)) => Ok(Self { pull_up: bytes(most)?, zero_copy: ANY }),
            Some(("zero-copy", above)) => bytes(above).map(pulled_up),
            _ => Err(Wrong::because(text, "is not a send method")),
        }
    }
}

impl Display for PathSend {
    fn fmt(&self, formatter: &mut Formatter) -> Formatted {
        match *self {
            Self { pull_up: 0, zero_copy: ANY } => formatter.write_str("gather"),
            Self { pull_up: ANY, zero_copy: ANY } => formatter.write_str("pull-up"),
            Self { pull_up, zero_copy: ANY } => write!(formatter, "pull-up:{pull_up}"),
            Self { zero_copy, .. } => write!(formatter, "zero-copy:{zero_copy}"),
        }
    }
}

impl PathReceive {
    /// The accepted values, in words.
    pub const FORM: &str = "copy, in-place, or copy:BYTES for payloads up to BYTES";

    /// # Errors
    /// If `text` is none of [`FORM`](Self::FORM).
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        match text.split_once(':') {
            None if text == "copy" => Ok(Self { copy: ANY }),
            None if text == "in-place" => Ok(Self { copy: 0 }),
            Some(("copy", most)) => bytes(most).map(|copy| Self { copy }),
            _ => Err(Wrong::because(text, "is not a receive method")),
        }
    }
}

impl Display for PathReceive {
    fn fmt(&self, formatter: &mut Formatter) -> Formatted {
        match self.copy {
            0 => formatter.write_str("in-place"),
            ANY => formatter.write_str("copy"),
            most => write!(formatter, "copy:{most}"),
        }
    }
}

impl Default for PathSegment {
    fn default() -> Self {
        Self { bytes: ANY }
    }
}

impl PathSegment {
    /// The accepted values, in words.
    pub const FORM: &str = "whole, or at least 512 bytes";
    /// Shorter segments are not worth the memory of their list.
    const LEAST: u32 = 512;

    /// # Errors
    /// If `text` is none of [`FORM`](Self::FORM).
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        match text {
            "whole" => Ok(Self::default()),
            length => integer_in(length, &(u64::from(Self::LEAST)..=u64::from(ANY)))
                .map(|bytes| Self { bytes: u32::try_from(bytes).unwrap_or(ANY) }),
        }
    }
}

impl Display for PathSegment {
    fn fmt(&self, formatter: &mut Formatter) -> Formatted {
        match self.bytes {
            ANY => formatter.write_str("whole"),
            bytes => write!(formatter, "{bytes}"),
        }
    }
}

fn bytes(text: &str) -> Result<u32, Wrong> {
    integer_in(text, &(0..=u64::from(ANY))).map(|bytes| u32::try_from(bytes).unwrap_or(ANY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_printing_and_parsing() {
        for (text, pull_up, zero_copy) in [
            ("pull-up", ANY, ANY),
            ("gather", 0, ANY),
            ("pull-up:16384", 16_384, ANY),
            ("zero-copy:32768", 2048, 32_768),
            ("zero-copy:512", 512, 512),
        ] {
            let send = PathSend::parse(text).unwrap();
            assert_eq!((send, send.to_string().as_str()), (PathSend { pull_up, zero_copy }, text));
        }
        assert_eq!(PathSend::parse("zero-copy").unwrap(), PathSend { pull_up: 0, zero_copy: 0 });
        assert_eq!(PathSend::parse("pull-up:16k").unwrap(), PathSend::parse("pull-up:16384").unwrap());
        for (text, copy) in [("copy", ANY), ("in-place", 0), ("copy:4096", 4096)] {
            let receive = PathReceive::parse(text).unwrap();
            assert_eq!((receive, receive.to_string().as_str()), (PathReceive { copy }, text));
        }
        for (text, bytes) in [("whole", ANY), ("512", 512), ("65536", 65_536)] {
            let segment = PathSegment::parse(text).unwrap();
            assert_eq!((segment, segment.to_string().as_str()), (PathSegment { bytes }, text));
        }
        assert!(["", "511", "0", "all"].iter().all(|wrong| PathSegment::parse(wrong).is_err()));
        for wrong in ["", "fast", "gather:4", "pull-up:", "pull-up:x", "pull-up:-1", "zero-copy:1.5", "pull-up:5g"] {
            assert!(PathSend::parse(wrong).is_err(), "{wrong}");
            assert!(PathReceive::parse(wrong).is_err(), "{wrong}");
        }
    }
}
