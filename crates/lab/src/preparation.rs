//! Before anything is measured: every file is found or laid out, so that nothing of it falls into a window.

use crate::engine;
use crate::error::{Error, Result};
use crate::interruption::Interruption;
use crate::page_cache;
use crate::progress::{Observer, Progress};
use crate::workload::job_copy::JobCopy;
use crate::workload::target::{self, Created};
use model::plan::{Access, Phase};
use model::warning::{Code, Warning, add_once};
use std::fs::File;
use std::path::Path;

/// Finds or makes every file of a phase.
///
/// # Errors
/// A file that cannot be found, made or used as the job wants; an interruption.
pub(crate) fn prepare<'a>(
    phase: &'a Phase,
    created: &Created,
    interruption: &Interruption,
    observer: Observer,
) -> Result<Vec<JobCopy<'a>>> {
    let mut progress = |path: &Path, done, total| {
        observer(Progress::LayingOut { path, done, total });
        !interruption.is_requested()
    };
    let mut copies = Vec::new();
    for job in &phase.jobs {
        for number in 0..job.copies.max(1) {
            let targets = engine::prepare(job, number, created, &mut progress)?;
            copies.push(JobCopy { plan: job, number, targets });
        }
    }
    Ok(copies)
}

/// The smallest blocks, in bytes, that a new file in a folder takes with `direct=1`; `None` where it takes none, or nobody can say.
pub fn least_direct_block(folder: &Path) -> Option<u64> {
    let file = tempfile::NamedTempFile::new_in(folder).ok()?;
    rustix::fs::open(file.path(), rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECT, rustix::fs::Mode::empty())
        .ok()?;
    sys::device::direct_alignment(file.as_file()).ok().flatten()
}

/// Applies a job's `invalidate` to its files, as fio does when a job begins: dirty pages stay. Not earlier than that: another
/// phase may use the same file from memory before.
pub(crate) fn invalidate(copy: &JobCopy) -> Result<()> {
    let files = copy.targets.iter().filter(|target| copy.plan.invalidates() && !target.path.as_os_str().is_empty());
    for target in files {
        let file = File::open(&target.path).map_err(|error| Error::file(&target.path, "opening", error))?;
        page_cache::drop_span(&file, &target.path, target.span)?;
    }
    Ok(())
}

/// Says of every file that is read whether parts of it were never written.
pub(crate) fn warn_of_holes<'a>(copies: impl IntoIterator<Item = &'a JobCopy<'a>>, warnings: &mut Vec<Warning>) {
    let readers = copies.into_iter().filter(|copy| copy.plan.access == Access::Read);
    for target in readers.flat_map(|copy| &copy.targets) {
        if !target.path.as_os_str().is_empty() && target::has_holes(target) {
            let message = format!(
                "{} has holes or blocks that were never written; reading them costs less than reading data. \
                 Remove it, and it is written before it is read",
                target.path.display()
            );
            add_once(warnings, Warning::new(Code::UnwrittenBlocks, message));
        }
    }
}
