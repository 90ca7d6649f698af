//! What to measure: jobs in fio's language, resolved to values that an engine can run.
//!
//! A text and the caller's [`Settings`] enter, a [`Plan`] or one [`ParseError`] leaves. Nothing here
//! opens a file or asks the machine: the same text is the same plan everywhere.

mod draft;
pub mod job;
pub(crate) mod nearest;
pub mod options;
pub mod parse;
pub mod value;

pub use job::{
    Access, BlockSizes, Depth, Duration, EngineKind, Fallocate, InjectAt, JobPlan, MOST_PAYLOAD, MOST_SUBMITTERS,
    Medium, Order, PathCopy, PathCrc, PathFraming, PathInFlight, PathNull, PathPlan, PathReceive, PathSegment,
    PathSend, PathTxQueue, Phase, Plan, Queue, Rates, Size, Target, TxTaskCpus,
};
pub use parse::{DeviceWrites, ParseError, Settings, UnknownOptions};
