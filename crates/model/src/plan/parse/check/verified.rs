//! Checks of a job that verifies what it writes, or says what it writes.

use super::Complaint;
use crate::plan::job::{EngineKind, JobPlan, is_default};
use crate::plan::value::Short;

/// A block has room for its header.
pub(super) fn header(job: &JobPlan) -> Option<Complaint> {
    let method = job.verify.method?;
    let header = u64::from(method.header()?);
    let block = job.used_sizes().map(|sizes| sizes.least()).min().unwrap_or(0);
    let why = || {
        let word = method.word();
        format!("verify={word} needs {header} bytes for each header, more than {}; use a larger bs", Short(block))
    };
    (block < header).then(|| ("verify", why()))
}

/// Where it does otherwise than fio 3.33. `passes`: the job writes its blocks more than once.
pub(super) fn unlike_fio(job: &JobPlan, (passes, exceeds): (bool, bool)) -> impl Iterator<Item = String> {
    let verify = &job.verify;
    let checks = verify.method.is_some();
    let what = if exceeds {
        "io_size bytes are written, and verify reads the blocks back once, at the end; fio counts what it reads back as part of io_size"
    } else {
        "verify reads the blocks back once, at the end; fio after each pass over the files"
    };
    let once =
        (checks && verify.after && verify.backlog == 0 && job.access.writes() && passes).then(|| what.to_owned());
    let idle = matches!(job.engine, EngineKind::Null | EngineKind::Spin | EngineKind::Work);
    let unused = (idle && !is_default(&job.content))
        .then(|| format!("ioengine={} writes nothing whose content could be chosen", job.engine.name()));
    [once, unused].into_iter().flatten()
}
