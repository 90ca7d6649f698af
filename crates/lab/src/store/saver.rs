//! Saves a record line by line while it is measured, so that a kill does not lose what was measured before.

use super::RecordFile;
use crate::calibration::Calibration;
use crate::error::Result;
use crate::watch::Step;
use model::envelope::Envelope;
use model::kind::cost::{Part, Windows};
use model::record::{Record, Snapshot};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A record that grows while it is measured. Clones share it. The default saves nothing.
#[derive(Clone, Debug, Default)]
pub struct Saver(Option<Arc<Mutex<Growing>>>);

#[derive(Debug)]
struct Growing {
    file: RecordFile,
    /// It began, and every line so far was written. One of `run` or `cost` with a gap would give wrong answers.
    whole: bool,
}

impl From<RecordFile> for Saver {
    fn from(file: RecordFile) -> Self {
        Self(Some(Arc::new(Mutex::new(Growing { file, whole: false }))))
    }
}

impl Saver {
    /// Makes its file in `folder`, which must not contain a record.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(folder: &Path) -> Result<Self> {
        RecordFile::create(folder).map(Self::from)
    }

    /// Removes it: nothing was measured.
    pub fn remove(&self) {
        if let Some(growing) = self.growing() {
            growing.file.remove();
        }
    }

    /// The path of its file, if it saves.
    pub fn path(&self) -> Option<PathBuf> {
        self.growing().map(|growing| growing.file.path().to_owned())
    }

    /// Writes the envelope and the header to disk.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn begin(&self, envelope: &Envelope, header: &impl Serialize) -> Result<()> {
        if let Some(mut growing) = self.growing() {
            growing.file.begin(envelope)?;
        }
        self.append("header", header)
    }

    /// Writes a line to disk.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&self, key: &str, line: &impl Serialize) -> Result<()> {
        self.growing().map_or(Ok(()), |mut growing| growing.file.append(key, line))
    }

    /// Writes a line. The kernel decides when it comes to the disk, because a sync would disturb what is measured.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn append_unsynced(&self, key: &str, line: &impl Serialize) -> Result<()> {
        self.growing().map_or(Ok(()), |mut growing| growing.file.append_unsynced(key, line))
    }

    /// Begins a record that the complete one will replace. Without space there is no growing record; saving the complete one
    /// reports the error.
    pub(crate) fn begin_growing(&self, record: &Record) {
        let Some(mut growing) = self.growing() else { return };
        let begun = growing.file.begin_unsynced(&record.envelope);
        growing.whole = begun.and_then(|()| growing.file.append_unsynced("begun", record)).is_ok();
        if !growing.whole {
            growing.file.remove();
        }
    }

    /// Adds what was measured to such a record, if there is one.
    pub(crate) fn add_part(&self, part: impl FnOnce() -> Part) {
        self.grow("part", part);
    }

    fn grow<L: Serialize>(&self, key: &str, line: impl FnOnce() -> L) {
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
pub(crate) struct GrowingWindows {
    saver: Saver,
    phase: usize,
    calibration: Calibration,
    /// Not written yet.
    snapshots: Vec<Snapshot>,
    begun: bool,
    /// When the last ones were written, from the beginning of the execution.
    written: Duration,
}

impl GrowingWindows {
    /// Those of a phase.
    pub(crate) fn new(saver: &Saver, phase: usize, calibration: Calibration) -> Self {
        Self { saver: saver.clone(), phase, calibration, snapshots: Vec::new(), begun: false, written: Duration::ZERO }
    }

    /// Keeps a window that has ended. Not each is written at once: formatting them takes time on a CPU of the workload.
    pub(crate) fn keep(&mut self, step: &Step) {
        const PAUSE: Duration = Duration::from_secs(1);
        if self.saver.0.is_none() {
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
            self.saver.grow("windows", || Windows { phase, snapshots, tsc_hertz: self.calibration.end().0 });
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
        let saver = Saver::create(folder.path()).unwrap();
        assert!(saver.lies_at(&path) && Saver::create(folder.path()).is_err());
        fs::rename(&path, folder.path().join("moved")).unwrap();
        fs::write(&path, "another").unwrap();
        saver.remove();
        assert!(!saver.lies_at(&path) && path.exists());
        fs::rename(folder.path().join("moved"), &path).unwrap();
        saver.remove();
        assert!(!path.exists());
        Saver::default().remove();
    }
}
