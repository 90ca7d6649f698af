//! Finds or lays out every file before the measurement, so that no window includes that.

use crate::cached_files::{self, CachedFiles};
use crate::engine;
use crate::replaying;
use crate::workload::JobCopy;
use crate::workload::replay::Replay;
use crate::workload::target;
use lab::created::Created;
use lab::error::{Error, Result};
use lab::interruption::Interruption;
use lab::progress::{Observer, Progress};
use model::plan::{Access, Phase};
use model::warning::{Code, Warning, add_once};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Finds or makes every file of a phase; `replay` has the traces of jobs, by the number of the job and of the copy.
///
/// # Errors
/// A file that cannot be found, made or used as the job requires; an interruption.
pub fn prepare<'a>(
    phase: &'a Phase,
    replay: &dyn Fn(usize, u32) -> Option<Arc<Replay>>,
    created: &Created,
    interruption: &Interruption,
    observer: Observer,
) -> Result<Vec<JobCopy<'a>>> {
    let mut progress = |path: &Path, done, total| {
        observer(Progress::LayingOut { path, done, total });
        !interruption.is_requested()
    };
    let mut copies = Vec::new();
    for (of_phase, job) in phase.jobs.iter().enumerate() {
        for number in 0..job.copies.max(1) {
            let replay = replay(of_phase, number);
            let targets = match &replay {
                Some(replay) => replaying::targets(job, replay, created, &mut progress)?,
                None => engine::prepare(job, number, created, &mut progress)?,
            };
            copies.push(JobCopy { plan: job, number, targets, replay });
        }
    }
    Ok(copies)
}

/// The smallest block size, in bytes, of `direct=1` for a new file in a folder; `None` if there is none, or it is
/// unknown.
pub fn least_direct_block(folder: &Path) -> Option<u64> {
    let file = tempfile::NamedTempFile::new_in(folder).ok()?;
    rustix::fs::open(file.path(), rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECT, rustix::fs::Mode::empty())
        .ok()?;
    sys::device::direct_alignment(file.as_file()).ok().flatten()
}

/// Applies a job's `invalidate` to its files, as fio does when a job starts: dirty pages stay. Not earlier, because an
/// earlier phase may use the same file from memory.
/// `pre_read` reads them in instead.
pub fn set_cache(copy: &JobCopy, interruption: &Interruption) -> Result<()> {
    if copy.plan.files.opening.pre_read {
        return CachedFiles::of([copy]).read_in(&mut |_, _, _| !interruption.is_requested());
    }
    let invalidates = copy.plan.invalidates();
    let files = copy.targets.iter().filter(|target| invalidates && !target.path.as_os_str().is_empty());
    for target in files {
        let file = File::open(&target.path).map_err(|error| Error::file(&target.path, "opening", error))?;
        cached_files::drop_span(&file, &target.path, target.span)?;
    }
    Ok(())
}

/// Says where `unlink` does otherwise than fio: with files that were there before, and with files that another job may
/// still use.
pub fn warn_of_unlinking<'a>(
    phases: impl IntoIterator<Item = &'a [JobCopy<'a>]>,
    created: &Created,
    warnings: &mut Vec<Warning>,
) {
    let mut phases = phases.into_iter().peekable();
    while let Some(copies) = phases.next() {
        for copy in copies.iter().filter(|copy| copy.plan.files.unlink) {
            for path in copy.targets.iter().map(|target| &target.path).filter(|path| path.is_file()) {
                let users = copies.iter().filter(|copy| copy.targets.iter().any(|target| target.path == *path)).count();
                let (job, made) = (&copy.plan.name, created.has_made(path));
                let path = path.display();
                let what = match (made, users > 1 || phases.peek().is_some()) {
                    (false, _) => "keeps {path}, because iotoll did not make it; fio removes it",
                    (true, true) => "removes {path} when the measurement ends; fio removes it when the job ends",
                    (true, false) => continue,
                };
                let message = format!("job '{job}': unlink=1 {}", what.replace("{path}", &path.to_string()));
                add_once(warnings, Warning::new(Code::OptionDiffers, message));
            }
        }
    }
}

/// Warns about every file that is read and has parts that were never written.
pub fn warn_of_holes<'a>(copies: impl IntoIterator<Item = &'a JobCopy<'a>>, warnings: &mut Vec<Warning>) {
    let readers = copies.into_iter().filter(|copy| copy.plan.access == Access::Read);
    for target in readers.flat_map(|copy| &copy.targets) {
        if !target.path.as_os_str().is_empty() && target::has_holes(target) {
            let message = format!(
                "{} has holes or blocks that were never written; reading them costs less than reading data. \
                 Remove it, and iotoll lays it out anew",
                target.path.display()
            );
            add_once(warnings, Warning::new(Code::UnwrittenBlocks, message));
        }
    }
}
