//! Files that the measured loop opens, as `create_on_open` asks for: when their turn comes, and again in each pass.

use crate::error::{Error, Result};
use crate::workload::target::{self, Target};
use model::plan::{JobPlan, Medium};
use std::fs::File;
use std::io;

/// Whether a job opens its files in its loop.
pub(crate) fn opens_in_loop(plan: &JobPlan) -> bool {
    plan.engine.medium() == Medium::Files && plan.files.making.on_open
}

/// As many files as the job has, which stand in until the loop opens these.
pub(super) fn stand_ins(plan: &JobPlan, files: usize) -> Result<Vec<File>> {
    let stand_in = || {
        File::open("/dev/null").map_err(|error| match error.raw_os_error() {
            Some(24) => Error::Refused(format!(
                "job '{}': this process may not open more files; use fewer, or raise ulimit -n",
                plan.name
            )),
            _ => Error::job(&plan.name, "opening /dev/null", error),
        })
    };
    (0..files).map(|_| stand_in()).collect()
}

/// Which files are open.
pub(super) struct FilesInLoop {
    plan: JobPlan,
    targets: Vec<Target>,
    /// Per file, whether it was opened in the pass that runs, and whether it was opened at all.
    open: Vec<(bool, bool)>,
    /// System calls so far.
    pub calls: u64,
}

impl FilesInLoop {
    pub fn new(plan: &JobPlan, targets: Vec<Target>) -> Self {
        Self { open: vec![(false, false); targets.len()], plan: plan.clone(), targets, calls: 0 }
    }

    /// Whether a file is open.
    pub fn is_open(&self, file: u32) -> bool {
        self.open.get(file as usize).is_some_and(|(now, _)| *now)
    }

    /// Whether an open file is synced before it is closed, so that nothing of it may be in flight.
    pub fn syncs_on_close(&self) -> bool {
        self.plan.sync.on_close && self.plan.access.writes()
    }

    /// Opens a file; the one of the last pass is closed. Returns whether that one was synced.
    ///
    /// # Errors
    /// When it cannot be opened, or the other one not be synced.
    pub fn open(&mut self, file: u32, replace: impl FnOnce(u32, File) -> io::Result<File>) -> Result<bool> {
        let failed = |error| Error::job(&self.plan.name, "opening a file in the loop", error);
        let (Some(target), Some((now, before))) = (self.targets.get(file as usize), self.open.get_mut(file as usize))
        else {
            return Ok(false);
        };
        let closed = replace(file, target::open_anew(&self.plan, target)?).map_err(failed)?;
        let synced = *before && self.plan.sync.on_close && self.plan.access.writes();
        if synced {
            closed.sync_all().map_err(failed)?;
        }
        (*now, *before) = (true, true);
        // open, fadvise, close, and fsync.
        self.calls += 3 + u64::from(synced);
        Ok(synced)
    }

    /// A pass over the files begins: as in fio, each is opened again.
    pub fn begin_pass(&mut self) {
        self.open.iter_mut().for_each(|(now, _)| *now = false);
    }
}
