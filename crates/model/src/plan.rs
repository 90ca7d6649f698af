//! What to measure: jobs in fio's language, resolved to values that an engine can run.
//!
//! The parsers take a text and the caller's [`Settings`] and return a [`Plan`], or all that is wrong ([`Refused`]). They do not open
//! files or query the machine: the same text gives the same plan everywhere.

mod draft;
pub mod job;
pub(crate) mod nearest;
pub mod options;
pub mod parse;
pub mod service;
pub(crate) mod shell_text;
pub mod value;

pub use job::{
    Access, AccessZone, BlockSizes, CallPlan, Content, CpuPlan, DedupeMode, Depth, Distribution, Duration, ENGINES,
    Each, Ends, Engine, EngineKind, Errors, Fallocate, FileAdvice, FilePlan, FileSize, Generator, GoesOn, HEADER_BYTES,
    IgnoredErrors, InjectAt, JobPlan, LONGEST_PATTERN, LatencyPlan, LogKind, LogName, LogPlan, MOST_PAYLOAD,
    MOST_SUBMITTERS, Making, Medium, MemoryPolicy, Order, Pace, PathCopy, PathCrc, PathFraming, PathInFlight, PathNull,
    PathPlan, PathReceive, PathSegment, PathSend, PathTxQueue, Pattern, PatternPiece, Peer, Phase, Plan, Queue,
    RangeSync, RateProcess, Rates, RegionPlan, ReplayPlan, RequestPlan, Sequencer, Service, Shape, Size, SizeRange,
    SizeShare, Sizes, Skipped, SteadyMetric, SteadyState, Syncing, Target, ThreadPlan, Together, TxTaskCpus,
    VERIFY_METHODS, Verify, VerifyMethod, VerifyRow, WRONG_BLOCK, WithoutLogs, WriteHint, WriteSync,
};
pub use parse::{DeviceWrites, ParseError, Refused, Settings, UnknownOptions};
