//! The workload: the requests of a job, and the files and spans that they go to.

pub mod amount;
pub mod payload;
pub mod permutation;
pub(crate) mod replay;
pub mod request_source;
pub mod target;
mod turn;

use model::plan::JobPlan;
use replay::Replay;
use std::sync::Arc;
use target::Target;

/// Lists of requests that a job keeps while it runs have room for this number before its first I/O: more would take memory by a number that
/// the user writes. Longer lists grow in the loop.
pub(crate) const ROOM_AT_FIRST: usize = 1 << 20;

/// One copy of a job with its files.
#[derive(Clone, Debug)]
pub struct JobCopy<'a> {
    pub plan: &'a JobPlan,
    /// Number of the copy.
    pub number: u32,
    pub targets: Vec<Target>,
    /// The trace that it replays, if it does.
    pub replay: Option<Arc<Replay>>,
}
