//! What to measure: jobs in fio's language, resolved to values that an engine can run.
//!
//! The parsers take a text and the caller's [`Settings`] and return a [`Plan`] or one [`ParseError`]. They do not open
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
    Access, AccessZone, BlockSizes, Depth, Distribution, Duration, ENGINES, Each, Engine, EngineKind, Fallocate,
    Generator, InjectAt, JobPlan, MOST_PAYLOAD, MOST_SUBMITTERS, Medium, Order, PathCopy, PathCrc, PathFraming,
    PathInFlight, PathNull, PathPlan, PathReceive, PathSegment, PathSend, PathTxQueue, Peer, Phase, Plan, Queue, Rates,
    RegionPlan, RequestPlan, Sequencer, Shape, Size, SizeRange, SizeShare, Sizes, Target, TxTaskCpus, Zones,
};
pub use parse::{DeviceWrites, ParseError, Settings, UnknownOptions};
