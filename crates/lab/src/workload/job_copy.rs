//! One of the `numjobs` copies of a job.

use super::replay::Replay;
use super::target::Target;
use model::plan::JobPlan;
use std::sync::Arc;

/// One copy of a job with its files.
#[derive(Clone, Debug)]
pub struct JobCopy<'a> {
    pub plan: &'a JobPlan,
    /// Number of the copy.
    pub number: u32,
    pub targets: Vec<Target>,
    /// The trace that it replays, if it does.
    pub(crate) replay: Option<Arc<Replay>>,
}
