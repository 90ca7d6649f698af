//! What to measure: jobs in fio's language, resolved to values that an engine can run.
//!
//! The parsers take a text and the caller's [`Settings`] and return a [`Plan`], or all that is wrong ([`Refused`]). They do not open
//! files or query the machine: the same text gives the same plan everywhere.

pub mod job;
pub mod options;
pub mod parse;
pub mod service;
pub(crate) mod shell_text;
pub mod value;

pub use job::{
    Access, Buffers, CallPlan, Content, Depth, Distribution, Duration, ENGINES, Each, Ends, Engine, EngineKind,
    Fallocate, FilePlan, HEADER_BYTES, Inject, JobPlan, LogKind, LogPlan, MOST_PAYLOAD, MOST_SUBMITTERS, Making,
    Medium, Opening, Order, OwnPlan, Pace, PathCopy, PathCrc, PathFraming, PathInFlight, PathNull, PathPlan,
    PathReceive, PathSegment, PathSend, PathTxQueue, Pattern, Peer, Phase, Plan, Queue, ReplayPlan, Reporting,
    RequestPlan, Size, SizeRange, SizeShare, Sizes, SyncPlan, Target, ThreadPlan, Together, TxTaskCpus, Verify,
    VerifyMethod, WriteSync,
};
pub use parse::{ParseError, Refused, Settings};
