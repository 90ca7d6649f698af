//! The page cache in a comparison: chooses the condition, and restores it before each slice.
//!
//! By default files are read into memory before the first round and kept there, if they fit: a mixture of reads from
//! disk and from memory cannot be compared. fio's default (drop them once) gives that mixture.

use super::CaseTargets;
use crate::compare::record::{CacheCondition, CacheSetup};
use jobs::cached_files::{CachedFiles, ReadProgress};
use jobs::worker_pool::JobCopy;
use lab::error::{Error, Result};
use lab::sysroot::Sysroot;
use model::experiment::{Case, Experiment};
use model::page_cache::{CachedPages, is_buffered};
use model::plan::{Access, JobPlan};
use model::reading::Reading;
use std::path::Path;
use std::time::{Duration, Instant};

/// Files may fill this part of the available memory; the rest is for the machine.
const MEMORY_SHARE: f64 = 0.8;
/// A cold slice reads at most one part in this many of a job's files, so that few blocks are read twice.
const COLD_SHARE: u64 = 4;

/// If less than this part of the files is in memory right after reading them, they do not stay there.
const KEPT: f64 = 0.95;
/// If more than this part of the files is in memory right after dropping them, they cannot be dropped.
const DROPPED: f64 = 0.5;

/// Required state when a slice of a case starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Warm,
    Cold,
    Whatever,
}

/// Keeps the page cache in the chosen condition.
pub(super) struct CacheKeeper {
    cases: Vec<(Wanted, CachedFiles)>,
    /// Warm files may leave memory between two slices: another arm drops them, or writes with O_DIRECT.
    watchful: bool,
    pub setup: Option<CacheSetup>,
    /// Time spent on the page cache; it does not count against the budget.
    pub spent: Duration,
}

impl CacheKeeper {
    /// Chooses the condition and establishes it. `progress` receives the progress of reading files.
    ///
    /// # Errors
    /// When a file cannot be read or dropped, or does not stay in its state; an interruption.
    pub fn prepare(experiment: &Experiment, targets: &CaseTargets, progress: ReadProgress) -> Result<Self> {
        let files: Vec<CachedFiles> = experiment.cases.iter().zip(targets).map(|(case, of)| files(case, of)).collect();
        let mut all = CachedFiles::default();
        files.iter().for_each(|of| all.add(of));
        let (mut condition, mut reason) = condition(experiment, &all);
        let wanted = |case: &Case| match condition {
            CacheCondition::Warm => Wanted::Warm,
            CacheCondition::Cold => Wanted::Cold,
            CacheCondition::AsIs | CacheCondition::DroppedOnce => Wanted::Whatever,
            CacheCondition::ByArm if jobs(case).any(|job| is_buffered(job) && job.invalidates()) => Wanted::Cold,
            CacheCondition::ByArm => Wanted::Warm,
        };
        let cases: Vec<(Wanted, CachedFiles)> = experiment.cases.iter().map(wanted).zip(files).collect();
        let writes_past = experiment.cases.iter().flat_map(jobs).any(|job| job.direct && job.access != Access::Read);
        let mut keeper = Self {
            watchful: writes_past || cases.iter().any(|(wanted, _)| *wanted == Wanted::Cold),
            cases,
            setup: None,
            spent: Duration::ZERO,
        };
        if all.is_empty() {
            return Ok(keeper);
        }
        if condition == CacheCondition::DroppedOnce {
            all.drop_pages()?;
        }
        if condition == CacheCondition::Cold {
            all.drop_pages()?;
            refuse_what_cannot_be_dropped(&all.look())?;
        }
        match keeper.warm(progress, true) {
            // The user did not ask for warm files.
            Err(Error::Refused(_)) if condition == CacheCondition::Warm && experiment.cache.is_none() => {
                (condition, reason) = (CacheCondition::AsIs, "the files do not stay in memory".to_owned());
                keeper.cases.iter_mut().for_each(|(wanted, _)| *wanted = Wanted::Whatever);
            }
            warmed => warmed?,
        }
        keeper.setup = Some(CacheSetup { condition, reason, before: all.look() });
        Ok(keeper)
    }

    /// Before a round: reads warm files again that have left memory.
    ///
    /// # Errors
    /// As for [`CacheKeeper::prepare`].
    pub fn before_round(&mut self, progress: ReadProgress) -> Result<()> {
        let begun = Instant::now();
        let done = self.warm(progress, false);
        self.spent += begun.elapsed();
        done
    }

    /// Right before a slice of a case: after the warm-up I/O, before the clocks are read.
    ///
    /// # Errors
    /// When a file cannot be dropped or read.
    pub fn before_slice(&mut self, case: usize) -> Result<()> {
        let Some((wanted, files)) = self.cases.get(case).filter(|(_, files)| !files.is_empty()) else { return Ok(()) };
        let begun = Instant::now();
        match wanted {
            Wanted::Cold => files.drop_pages()?,
            Wanted::Warm if self.watchful && files.is_resident() == Some(false) => {
                files.read_in(&mut |_, _, _| true)?
            }
            Wanted::Warm | Wanted::Whatever => {}
        }
        self.spent += begun.elapsed();
        Ok(())
    }

    /// Longest slice of a case that reads nothing twice, if it moves `bytes` in `time`.
    pub fn longest_slice(&self, case: usize, bytes: u64, time: Duration) -> Option<Duration> {
        let (_, files) = self.cases.get(case).filter(|(wanted, _)| *wanted == Wanted::Cold)?;
        let least = files.bytes() / COLD_SHARE;
        (bytes > 0 && least > 0).then(|| time.mul_f64(least as f64 / bytes as f64))
    }

    /// Whether the files of any case are dropped before its slices.
    pub fn is_cold(&self) -> bool {
        self.cases.iter().any(|(wanted, files)| *wanted == Wanted::Cold && !files.is_empty())
    }

    /// Reads files that are not in memory; `in_doubt` also those of which the kernel does not show this user which pages are.
    fn warm(&self, progress: ReadProgress, in_doubt: bool) -> Result<()> {
        for (wanted, files) in &self.cases {
            let absent = files.is_resident().map_or(in_doubt, |resident| !resident);
            if *wanted == Wanted::Warm && absent {
                files.read_in(progress)?;
                refuse_what_does_not_stay(&files.look())?;
            }
        }
        Ok(())
    }
}

/// Files that do not stay in memory would be read again before each round.
fn refuse_what_does_not_stay(after: &Reading<CachedPages>) -> Result<()> {
    match after.taken().and_then(CachedPages::fraction) {
        Some(part) if part < KEPT => Err(Error::Refused(format!(
            "page cache: only {:.0} % of the files are in memory right after reading them: memory, or the limit of the \
             control group, is too small for them, or another program drops them; use a smaller size=, or --cache as-is",
            part * 100.0
        ))),
        _ => Ok(()),
    }
}

fn refuse_what_cannot_be_dropped(after: &Reading<CachedPages>) -> Result<()> {
    match after.taken().and_then(CachedPages::fraction) {
        Some(part) if part > DROPPED => Err(Error::Refused(format!(
            "--cache cold: {:.0} % of the files are still in memory right after dropping them: they are in a file system in \
             memory (tmpfs), or another program has locked them; use files on a disk, or --cache as-is",
            part * 100.0
        ))),
        _ => Ok(()),
    }
}

fn jobs(case: &Case) -> impl Iterator<Item = &JobPlan> {
    case.work.phase().into_iter().flat_map(|phase| &phase.jobs)
}

/// The files of a case that use the page cache.
fn files(case: &Case, targets: &[Vec<jobs::workload::target::Target>]) -> CachedFiles {
    let plans = jobs(case).flat_map(|job| std::iter::repeat_n(job, job.copies.max(1) as usize));
    let copies: Vec<JobCopy> = plans
        .zip(targets)
        .map(|(plan, targets)| JobCopy { plan, number: 0, targets: targets.clone(), replay: None })
        .collect();
    CachedFiles::of(&copies)
}

/// The condition, and the reason for it.
fn condition(experiment: &Experiment, all: &CachedFiles) -> (CacheCondition, String) {
    if let Some(asked) = experiment.cache {
        return (asked, "--cache".to_owned());
    }
    let buffered = || experiment.cases.iter().flat_map(jobs).filter(|job| is_buffered(job));
    if buffered().next().is_some() && buffered().all(|job| job.files.opening.pre_read) {
        return (CacheCondition::Warm, "pre_read=1".to_owned());
    }
    let explicit = buffered().map(|job| job.files.invalidate.or(job.files.opening.pre_read.then_some(false)));
    let explicit: Vec<Option<bool>> = explicit.collect();
    if explicit.iter().any(Option::is_some) {
        // If any job has fio's option, fio's default applies to the others.
        let mut bits = buffered().map(JobPlan::invalidates);
        let first = bits.next();
        return match first {
            _ if bits.any(|bit| Some(bit) != first) => {
                (CacheCondition::ByArm, "invalidate= differs between arms".to_owned())
            }
            Some(true) => (CacheCondition::DroppedOnce, "invalidate=1".to_owned()),
            _ => (CacheCondition::AsIs, "invalidate=0".to_owned()),
        };
    }
    let available = lab::memory::available(&Sysroot::at(Path::new("/")));
    // Their cached pages are reclaimable, so they are part of the available memory.
    match available {
        Some(available) if all.bytes() as f64 > available as f64 * MEMORY_SHARE => {
            let reason = "the files do not fit into memory; --cache cold drops them before each slice".to_owned();
            (CacheCondition::AsIs, reason)
        }
        _ => (CacheCondition::Warm, "the files fit into memory; run starts cold, as --cache cold does".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::unit::Bytes;

    #[test]
    fn files_that_do_not_stay_warm_or_cold_are_refused() {
        let pages = |percent| Reading::Taken(CachedPages { of: Bytes(100), resident: Bytes(percent), dirty: None });
        let said = |refused: Result<()>| refused.unwrap_err().to_string();
        assert!(said(refuse_what_does_not_stay(&pages(40))).contains("40 % of the files are in memory right after"));
        assert!(said(refuse_what_cannot_be_dropped(&pages(100))).contains("tmpfs"));
        for kept in [pages(99), Reading::unavailable("the kernel does not tell")] {
            refuse_what_does_not_stay(&kept).unwrap();
        }
        refuse_what_cannot_be_dropped(&pages(2)).unwrap();
    }
}
