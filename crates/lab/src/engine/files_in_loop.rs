//! Files that the measured loop opens and closes, as `openfiles`, `create_on_open` and `unlink_each_loop` ask for.
//!
//! The engine has a place for each file that may be open at the same time; the loop puts files there.

use crate::error::{Error, Result};
use crate::workload::target::{self, Target};
use model::plan::{JobPlan, Medium};
use std::fs::File;
use std::io;

/// Whether a job with this number of files opens them in its loop.
pub(crate) fn opens_in_loop(plan: &JobPlan, files: usize) -> bool {
    let making = plan.files.making;
    plan.engine.medium() == Medium::Files
        && (making.on_open || making.unlink_each_loop || open_at_once(plan, files) < files)
}

/// Files that may be open at the same time.
pub(crate) fn open_at_once(plan: &JobPlan, files: usize) -> usize {
    if plan.files.open == 0 { files } else { files.min(plan.files.open as usize) }
}

/// Places for files, each with a file that stands in until the loop puts one there.
pub(super) fn places(plan: &JobPlan, files: usize) -> Result<Vec<File>> {
    let stand_in = || {
        File::open("/dev/null").map_err(|error| match error.raw_os_error() {
            Some(24) => Error::Refused(format!(
                "job '{}': this process may not open more files; use a smaller openfiles=, or raise ulimit -n",
                plan.name
            )),
            _ => Error::job(&plan.name, "opening /dev/null", error),
        })
    };
    (0..open_at_once(plan, files)).map(|_| stand_in()).collect()
}

/// No file, or no place.
const NONE: u32 = u32::MAX;

/// A place of the engine.
#[derive(Clone, Copy)]
struct Place {
    /// The file in it.
    file: u32,
    /// It was opened in the pass that runs.
    current: bool,
}

/// Which files are open, and where.
pub(super) struct FilesInLoop {
    plan: JobPlan,
    targets: Vec<Target>,
    places: Vec<Place>,
    /// The place of each file.
    place_of: Vec<u32>,
    /// Where the search for a free place goes on.
    next: usize,
    /// System calls so far.
    pub calls: u64,
}

impl FilesInLoop {
    pub fn new(plan: &JobPlan, targets: Vec<Target>) -> Self {
        Self {
            places: vec![Place { file: NONE, current: false }; open_at_once(plan, targets.len())],
            place_of: vec![NONE; targets.len()],
            plan: plan.clone(),
            targets,
            next: 0,
            calls: 0,
        }
    }

    /// The place of an open file.
    pub fn place_of(&self, file: u32) -> Option<u32> {
        self.place_of.get(file as usize).copied().filter(|place| *place != NONE)
    }

    /// Whether an open file is synced before it is closed, so that nothing of it may be in flight.
    pub fn syncs_on_close(&self) -> bool {
        self.plan.files.syncing.on_close && self.plan.access.writes()
    }

    /// Opens a file in the place of one that is no longer in use, which is closed. Returns that one if it was synced.
    ///
    /// # Errors
    /// When it cannot be opened, or the other one not be synced.
    pub fn open(
        &mut self,
        file: u32,
        in_use: impl Fn(u32) -> bool,
        replace: impl FnOnce(u32, File) -> io::Result<File>,
    ) -> Result<Option<u32>> {
        let failed = |error| Error::job(&self.plan.name, "opening a file in the loop", error);
        let none = || failed(io::Error::other("no place is free; please report this"));
        let count = self.places.len();
        let is_free = |at: &usize| {
            self.places.get(*at).is_some_and(|place| !(place.current && place.file != NONE && in_use(place.file)))
        };
        let at = (self.next..count).chain(0..self.next).find(is_free).ok_or_else(none)?;
        let number = u32::try_from(at).map_err(|_| none())?;
        let target = self.targets.get(file as usize).ok_or_else(none)?;
        let closed = replace(number, target::open_anew(&self.plan, target)?).map_err(failed)?;
        let old = self.places.get(at).map(|place| place.file).filter(|old| *old != NONE);
        let synced = old.filter(|_| self.syncs_on_close());
        if synced.is_some() {
            closed.sync_all().map_err(failed)?;
        }
        drop(closed);
        // open, fadvise, close, and fsync.
        self.calls += 3 + u64::from(synced.is_some());
        if let Some(place) = old.and_then(|old| self.place_of.get_mut(old as usize))
            && *place == number
        {
            *place = NONE;
        }
        if let (Some(place), Some(of)) = (self.places.get_mut(at), self.place_of.get_mut(file as usize)) {
            *place = Place { file, current: true };
            *of = number;
        }
        self.next = (at + 1) % count;
        Ok(synced)
    }

    /// A pass over the files begins: as in fio, each is opened again, and with `unlink_each_loop` made again.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn begin_pass(&mut self) -> Result<()> {
        self.place_of.fill(NONE);
        self.places.iter_mut().for_each(|place| place.current = false);
        if self.plan.files.making.unlink_each_loop {
            for target in self.targets.iter().filter(|target| target.to_be_made) {
                let removed = std::fs::remove_file(&target.path);
                removed.map_err(|error| Error::file(&target.path, "removing the file after a pass", error))?;
                self.calls += 1;
            }
        }
        Ok(())
    }
}
