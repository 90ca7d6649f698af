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

/// All switches of the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathPlan {
    /// `path_send`: how a payload is sent.
    #[serde(rename = "path_send")]
    pub send: PathSend,
    /// `path_receive`: how a payload is received.
    #[serde(rename = "path_receive")]
    pub receive: PathReceive,
    /// `path_framing`: how much one system call sends or receives.
    #[serde(rename = "path_framing")]
    pub framing: PathFraming,
    /// `path_segment`: segment size of payloads that are not copied.
    #[serde(rename = "path_segment")]
    pub segment: PathSegment,
    /// `path_max_payload`: larger I/Os are split into several requests, bytes. Clients only.
    #[serde(rename = "path_max_payload")]
    pub max_payload: u32,
    /// `path_copy`: copy method.
    #[serde(rename = "path_copy")]
    pub copy: PathCopy,
    /// `path_crc`: whether a checksum follows each payload.
    #[serde(rename = "path_crc")]
    pub crc: PathCrc,
    /// `path_coalesce`: maximum time to wait for several messages; 0 waits for one.
    #[serde(rename = "path_coalesce")]
    pub coalesce: Nanos,
    /// `path_busy_poll`: busy-poll time before sleeping.
    #[serde(rename = "path_busy_poll")]
    pub busy_poll: Nanos,
    /// `path_in_flight`: how requests in flight are counted. Clients only.
    #[serde(rename = "path_in_flight")]
    pub in_flight: PathInFlight,
    /// `path_null`: what is skipped.
    #[serde(rename = "path_null")]
    pub null: PathNull,
    /// `path_tx_queue`: how the requests of several jobs reach one connection. Clients only.
    #[serde(rename = "path_tx_queue")]
    pub tx_queue: PathTxQueue,
    /// `tx_task_cpus`: CPUs of the thread that drains the queue. Clients only.
    #[serde(rename = "tx_task_cpus")]
    pub tx_task_cpus: TxTaskCpus,
    /// `submitters`: maximum number of jobs that share a connection. Clients only.
    pub submitters: u32,
}

impl Default for PathPlan {
    fn default() -> Self {
        Self {
            send: PathSend::default(),
            receive: PathReceive::default(),
            framing: PathFraming::default(),
            segment: PathSegment::default(),
            max_payload: MOST_PAYLOAD,
            copy: PathCopy::default(),
            crc: PathCrc::default(),
            coalesce: Nanos(500_000),
            busy_poll: Nanos(0),
            in_flight: PathInFlight::default(),
            null: PathNull::default(),
            tx_queue: PathTxQueue::default(),
            tx_task_cpus: TxTaskCpus::default(),
            submitters: MOST_SUBMITTERS,
        }
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

/// `path_framing`: how much one system call sends or receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PathFraming {
    /// Everything available.
    #[default]
    OneGo,
    /// Receives everything available, but sends one header or one segment at a time.
    SegmentAtATime,
    /// One header, or at most one page of a payload.
    PageAtATime,
}

/// `path_segment`: segment size of payloads that are not copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSegment {
    /// Maximum length of a segment.
    pub bytes: u32,
}

/// `path_copy`: copy method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PathCopy {
    /// Sixteen bytes at a time, through the caches.
    Plain,
    /// `rep movsb`.
    #[default]
    RepMovsb,
    /// Non-temporal stores, which bypass the caches.
    NonTemporal,
}

/// `path_crc`: whether a checksum follows each payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PathCrc {
    /// No checksums.
    #[default]
    Off,
    /// CRC-32C behind each payload, verified by the receiver.
    On,
}

/// `path_in_flight`: how requests in flight are counted, in addition to the connection's own count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PathInFlight {
    /// Not counted.
    #[default]
    None,
    /// One counter for each job.
    PerThread,
    /// One counter for all jobs.
    Shared,
}

/// `path_null`: what is skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PathNull {
    /// Nothing.
    #[default]
    None,
    /// The network: requests complete without being sent.
    Wire,
    /// The storage is not touched. Servers only.
    Server,
}

/// `path_tx_queue`: how the requests of several jobs reach one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PathTxQueue {
    /// Each job has its own connection.
    #[default]
    None,
    /// Each job sends its own requests, under a lock.
    Lock,
    /// Through a ring that a dedicated thread drains.
    RingTask,
    /// Through a ring that is drained by the job that finds it idle.
    MpRing,
    /// Through a list; the job that finds it idle takes all entries.
    SwapAll,
}

/// `inject_at`: where busy work is added, and so which layer is charged. Work that [`PathNull`] skips adds none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum InjectAt {
    /// Where any engine issues I/O.
    #[default]
    Submit,
    /// Where engine `nbd` parses a reply.
    Wire,
    /// Where the server parses a request.
    Server,
    /// Where the server accesses its storage.
    Storage,
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

    #[test]
    fn defaults_can_be_written() {
        assert_eq!(PathSend::parse(&PathSend::default().to_string()), Ok(PathSend::default()));
        assert_eq!(PathReceive::parse(&PathReceive::default().to_string()), Ok(PathReceive::default()));
    }
}
