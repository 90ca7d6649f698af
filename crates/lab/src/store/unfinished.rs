//! The record of `run` or `cost` while it is measured, so that a kill does not lose what was measured before.

use super::RecordFile;
use crate::calibration::Calibration;
use crate::error::Result;
use crate::watch::Step;
use model::kind::cost::{Part, Windows};
use model::record::{Record, Snapshot};
use serde::Serialize;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A record that grows while it is measured, and that the complete one replaces. Clones share it. The default is not saved.
#[derive(Clone, Debug, Default)]
pub struct Unfinished(Option<Arc<Mutex<Growing>>>);

#[derive(Debug)]
struct Growing {
    file: RecordFile,
    /// It began, and every part so far was written: a record with a gap would give wrong answers.
    whole: bool,
}

impl Unfinished {
    /// Makes its file in `folder`, which must not contain a record.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(folder: &Path) -> Result<Self> {
        let file = RecordFile::create(folder)?;
        Ok(Self(Some(Arc::new(Mutex::new(Growing { file, whole: false })))))
    }

    /// Removes it: nothing was measured.
    pub fn remove(&self) {
        if let Some(growing) = self.growing() {
            growing.file.remove();
        }
    }

    /// Writes what is known at the beginning. Without space there is no unfinished record; saving the complete one
    /// reports the error. The kernel decides when to write it to disk, because a sync would disturb what is measured.
    pub(crate) fn begin(&self, record: &Record) {
        let Some(mut growing) = self.growing() else { return };
        let begun = growing.file.begin_unsynced(&record.envelope);
        growing.whole = begun.and_then(|()| growing.file.append_unsynced("begun", record)).is_ok();
        if !growing.whole {
            growing.file.remove();
        }
    }

    /// Adds what was measured, if there is a record to add it to.
    pub(crate) fn add(&self, part: impl FnOnce() -> Part) {
        self.append("part", part);
    }

    fn append<L: Serialize>(&self, key: &str, line: impl FnOnce() -> L) {
        let Some(mut growing) = self.growing().filter(|growing| growing.whole) else { return };
        growing.whole = growing.file.append_unsynced(key, &line()).is_ok();
    }

    /// Whether this very file lies at `path`.
    pub(super) fn lies_at(&self, path: &Path) -> bool {
        self.growing().is_some_and(|growing| growing.file.lies_at(path))
    }

    fn growing(&self) -> Option<MutexGuard<'_, Growing>> {
        self.0.as_ref().map(|growing| growing.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Saves the windows of an execution while it runs.
#[derive(Debug)]
pub(crate) struct UnfinishedWindows {
    unfinished: Unfinished,
    phase: usize,
    calibration: Calibration,
    /// Not written yet.
    snapshots: Vec<Snapshot>,
    begun: bool,
    /// When the last ones were written, from the beginning of the execution.
    written: Duration,
}

impl UnfinishedWindows {
    /// Those of a phase.
    pub(crate) fn new(unfinished: &Unfinished, phase: usize, calibration: Calibration) -> Self {
        let unfinished = unfinished.clone();
        Self { unfinished, phase, calibration, snapshots: Vec::new(), begun: false, written: Duration::ZERO }
    }

    /// Keeps a window that has ended. Not each is written at once: formatting them takes time on a CPU of the workload.
    pub(crate) fn keep(&mut self, step: &Step) {
        const PAUSE: Duration = Duration::from_secs(1);
        if self.unfinished.0.is_none() {
            return;
        }
        let (before, after) = step.window;
        if !self.begun {
            self.begun = true;
            self.snapshots.push(before.clone());
        }
        self.snapshots.push(after.clone());
        if step.elapsed.saturating_sub(self.written) >= PAUSE {
            self.written = step.elapsed;
            let (phase, snapshots) = (self.phase, std::mem::take(&mut self.snapshots));
            self.unfinished.append("windows", || Windows { phase, snapshots, tsc_hertz: self.calibration.end().0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_its_own_file_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.jsonl");
        let unfinished = Unfinished::create(folder.path()).unwrap();
        assert!(unfinished.lies_at(&path) && Unfinished::create(folder.path()).is_err());
        fs::rename(&path, folder.path().join("moved")).unwrap();
        fs::write(&path, "another").unwrap();
        unfinished.remove();
        assert!(!unfinished.lies_at(&path) && path.exists());
        fs::rename(folder.path().join("moved"), &path).unwrap();
        unfinished.remove();
        assert!(!path.exists());
        Unfinished::default().remove();
    }
}
