//! Checks of a job that verifies what it writes, or says what it writes.

use super::Complaint;
use crate::plan::job::{Access, EngineKind, JobPlan, is_default};
use crate::plan::value::Short;
use crate::unit::Bytes;

/// Each header, and each place of one, fits into what it covers.
pub(super) fn header(job: &JobPlan) -> Option<Complaint> {
    let method = job.verify.method?;
    let header = u64::from(method.header()?);
    let offset = job.verify.offset.0;
    // Of several sizes, the smallest decides.
    let mut sizes = job.used_sizes().map(|sizes| Bytes(sizes.least()));
    sizes.find_map(|block| {
        let interval = job.verify.interval.map_or(block.0, |interval| interval.0);
        let covers = if interval > 0 && block.0.is_multiple_of(interval) { interval } else { block.0 };
        let word = method.word();
        if covers < header {
            let why = format!(
                "verify={word} needs {header} bytes for each header, more than {}; use a larger bs or verify_interval",
                Short(covers)
            );
            return Some(("verify", why));
        }
        let fits = offset == 0 || offset >= header && offset.saturating_add(header) <= covers;
        (!fits).then(|| {
            let most = covers.saturating_sub(header);
            let rest = if most < header {
                format!("have no other place in {} bytes; leave it out", Short(covers))
            } else {
                format!("fit at {header} to {most} of {} bytes; use one of these", Short(covers))
            };
            ("verify_offset", format!("the {header} bytes of a header of {word} {rest}"))
        })
    })
}

/// A job that only verifies reads what it would have written.
pub(super) fn without_writing(job: &mut JobPlan) {
    if job.verify.method.is_some() && job.verify.only && job.access == Access::Write {
        job.access = Access::Read;
        job.block_sizes.read = job.block_sizes.write;
        job.requests.ranges.read = job.requests.ranges.write;
        job.requests.splits.read.clone_from(&job.requests.splits.write);
    }
}

/// Where it does otherwise than fio 3.33. `passes`: the job writes its blocks more than once.
pub(super) fn unlike_fio(job: &JobPlan, (passes, exceeds): (bool, bool)) -> impl Iterator<Item = String> {
    let verify = &job.verify;
    let checks = verify.method.is_some();
    let threads = (checks && verify.threads > 0)
        .then(|| format!("verify_async={}: the job's own thread checks the blocks", verify.threads));
    let what = if exceeds {
        "io_size bytes are written, and verify reads the blocks back once, at the end; fio counts what it reads back as part of io_size"
    } else {
        "verify reads the blocks back once, at the end; fio after each pass over the files"
    };
    let once =
        (checks && verify.after && verify.backlog == 0 && job.access.writes() && passes).then(|| what.to_owned());
    let idle = matches!(job.engine, EngineKind::Null | EngineKind::Spin | EngineKind::Work | EngineKind::Cpuio);
    let unused = (idle && !is_default(&job.content))
        .then(|| format!("ioengine={} writes nothing whose content could be chosen", job.engine.name()));
    [threads, once, unused].into_iter().flatten()
}
