//! One of the `numjobs` copies of a job.

use super::target::Target;
use model::plan::JobPlan;

/// One copy of a job with its files.
#[derive(Clone, Debug)]
pub struct JobCopy<'a> {
    pub plan: &'a JobPlan,
    /// Number of the copy.
    pub number: u32,
    pub targets: Vec<Target>,
}
