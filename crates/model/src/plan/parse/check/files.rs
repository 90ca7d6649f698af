//! Checks what a job says about its files.

use super::caveat;
use crate::plan::job::{JobPlan, Medium};
use crate::warning::{Code, Warning};

/// What has no effect beside `filename`, as in fio.
pub(super) fn ignored(job: &JobPlan) -> impl Iterator<Item = Warning> {
    let given = [(job.files.count.is_some(), "nrfiles"), (job.files.name_format.is_some(), "filename_format")];
    let given = given.into_iter().filter(|(given, _)| *given && !job.target.files.is_empty());
    given.map(|(_, name)| caveat(Code::OptionIgnored, job, &format!("{name} has no effect beside filename, as in fio")))
}

/// Files stay open from pass to pass; fio closes and opens them again.
pub(super) fn closed_once(job: &JobPlan) -> Option<String> {
    let several = job.duration.loops > 1 || job.duration.io_size.is_some() || job.duration.time_based;
    let differs = job.files.sync_on_close && job.access.writes() && several && job.engine.medium() == Medium::Files;
    differs.then(|| {
        "fsync_on_close calls fsync once for each file, at the end; fio closes files after each pass".to_owned()
    })
}
