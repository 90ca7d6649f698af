//! Records on disk: saved before they are studied, so that a failing study cannot lose a record.

mod file;

use crate::calibration::Calibration;
use crate::error::{Error, Result};
use crate::watch::Step;
use model::kind::Envelope;
use model::record::lines::Windows;
use model::record::{Record, Snapshot};
use rustix::fs::Access;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use file::ENVELOPE;
pub(crate) use file::RecordFile;
pub use file::{envelope_at, load, load_earlier, load_to_show};

/// File name of a record in its folder.
pub const RECORD: &str = "record.jsonl";
/// Default folder of records.
pub const RUNS: &str = "iotoll-runs";

#[derive(Clone, Debug)]
pub struct RecordFolder {
    pub path: PathBuf,
    /// The folders that were made for it, the innermost first.
    made: Vec<PathBuf>,
}

impl RecordFolder {
    /// Removes the folders that were made, if nothing was measured and no other file is in them.
    pub fn abandon(&self) {
        // Another thread may be writing the record at this moment.
        let _ = fs::remove_file(partial(&self.path));
        for folder in &self.made {
            // A folder that is not empty stays, and so do its parents.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Makes a folder for a record: the one that the user asked for, or a new `iotoll-runs/TIME-NAME`.
///
/// # Errors
/// When it cannot be made or written to, or contains a record already.
pub fn folder(asked: Option<&Path>, name: &str) -> Result<RecordFolder> {
    let Some(path) = asked.map(Path::to_owned) else {
        return fresh_folder(Path::new(RUNS), name).map_err(|error| {
            Error::Refused(format!(
                "{RUNS}: cannot save a record there: {error}; choose another folder with --out, or use --no-save"
            ))
        });
    };
    if fs::symlink_metadata(path.join(RECORD)).is_ok() {
        let path = path.display();
        return Err(Error::Refused(format!("{path} already contains a record; choose another --out, or remove it")));
    }
    let folders = path.ancestors().filter(|folder| !folder.as_os_str().is_empty());
    let made = folders.take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
    let folder = RecordFolder { path, made };
    // Before the measurement, so that no result is lost.
    let usable = fs::create_dir_all(&folder.path).and_then(|()| Ok(rustix::fs::access(&folder.path, WRITABLE)?));
    usable.map_err(|error| {
        folder.abandon();
        let path = folder.path.display();
        Error::Refused(format!("{path}: cannot save a record there: {error}; choose another --out, or use --no-save"))
    })?;
    Ok(folder)
}

/// Makes a new folder in `around` with this time and name. Unique, even if other processes make one at the same time.
fn fresh_folder(around: &Path, name: &str) -> io::Result<RecordFolder> {
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string().replace(':', "");
    let new = !around.exists();
    for number in 0..1000 {
        let again = if number == 0 { String::new() } else { format!("-{number}") };
        let path = around.join(format!("{time}-{}{again}", file_name(name)));
        // Another run that measured nothing removes its folder, and `around` too if it is empty.
        fs::create_dir_all(around)?;
        match fs::create_dir(&path) {
            Ok(()) => {
                let made = [Some(path.clone()), new.then(|| around.to_owned())].into_iter().flatten().collect();
                return Ok(RecordFolder { path, made });
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("a thousand runs were started in one second"))
}

/// The folder in `runs` whose record was written last.
///
/// # Errors
/// When there is none.
pub fn latest(runs: &Path) -> Result<PathBuf> {
    let folders = fs::read_dir(runs).into_iter().flatten().flatten().map(|entry| entry.path());
    let written = folders.filter_map(|folder| {
        let time = fs::metadata(folder.join(RECORD)).and_then(|file| file.modified()).ok()?;
        // Copied records may all have one time; then the name decides, which begins with the time of the measurement.
        Some((time, folder))
    });
    let latest = written.max().map(|(_, folder)| folder);
    latest.ok_or_else(|| {
        let runs = runs.display();
        Error::Refused(format!("{runs}: no record is there; give the folder of a saved measurement"))
    })
}

/// All records at these paths: files, or folders with records at any depth. A folder that is a record stands for it.
///
/// # Errors
/// When a path does not exist or cannot be listed, or there is no record at all.
pub fn records_below(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        let about = fs::metadata(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                let path = path.display();
                Error::Refused(format!(
                    "{path}: is not there; give the folder of saved measurements (--out of run, cost, …)"
                ))
            }
            _ => Error::file(path, "looking for records", error),
        })?;
        if about.is_dir() { add_records(path, &mut found)? } else { found.push(path.clone()) }
    }
    if found.is_empty() {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(Error::Refused(format!(
            "{}: no record is there; give folders of saved measurements",
            names.join(", ")
        )));
    }
    Ok(found)
}

fn add_records(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    if folder.join(RECORD).is_file() {
        found.push(folder.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(folder).map_err(|error| Error::file(folder, "looking for records", error))?;
    // Links are not followed: one may lead back.
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
    folders.sort();
    folders.iter().try_for_each(|folder| add_records(folder, found))
}

/// Permissions for saving a file in a folder.
const WRITABLE: Access = Access::WRITE_OK.union(Access::EXEC_OK);

/// A name reduced to characters that suit a file name.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let name: String = name.chars().take(40).map(plain).collect();
    name.trim_matches('-').to_owned()
}

/// The file before the record is complete.
fn partial(folder: &Path) -> PathBuf {
    folder.join(format!("{RECORD}.{}.partial", std::process::id()))
}

/// Saves a record in place of the growing one; a reader finds either.
///
/// # Errors
/// When it cannot be written: no space, no folder. What was saved while it grew stays.
pub fn save(folder: &Path, record: &Record) -> Result<()> {
    let (path, partial) = (folder.join(RECORD), partial(folder));
    write(&partial, record).and_then(|()| fs::rename(&partial, &path)).map_err(|error| {
        // Half a record is none, and the disk may be full.
        let _ = fs::remove_file(&partial);
        Error::record(&path, "saving the record", error)
    })
}

/// Creates a file of iotoll's own. Whatever lies at its path is removed, and a symbolic link there is not followed.
///
/// # Errors
/// When it cannot be created.
pub fn create_afresh(path: &Path) -> io::Result<File> {
    match File::create_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            File::create_new(path)
        }
        created => created,
    }
}

fn write(path: &Path, record: &Record) -> io::Result<()> {
    let mut file = create_afresh(path)?;
    file.write_all(&file::line(file::ENVELOPE, &record.envelope)?)?;
    file.write_all(&file::line("measured", record)?)?;
    file.sync_all()
}

/// A record that grows while it is measured. Clones share it. The default saves nothing.
#[derive(Clone, Debug, Default)]
pub struct Saver(Option<Arc<Mutex<Growing>>>);

#[derive(Debug)]
struct Growing {
    file: RecordFile,
    /// It began, and every line so far was written. One of `run` or `cost` with a gap would give wrong answers.
    whole: bool,
}

impl Saver {
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

    /// Writes the envelope and the header to disk.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn begin(&self, envelope: &Envelope, header: &impl Serialize) -> Result<()> {
        if let Some(mut growing) = self.growing() {
            growing.file.append(ENVELOPE, envelope, true)?;
        }
        self.append("header", header)
    }

    /// Writes a line to disk.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&self, key: &str, line: &impl Serialize) -> Result<()> {
        self.growing().map_or(Ok(()), |mut growing| growing.file.append(key, line, true))
    }

    /// Writes a line. The kernel decides when it comes to the disk, because a sync would disturb what is measured.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append_unsynced(&self, key: &str, line: &impl Serialize) -> Result<()> {
        self.growing().map_or(Ok(()), |mut growing| growing.file.append(key, line, false))
    }

    /// Begins a record that the complete one will replace. Without space there is no growing record; saving the complete one
    /// reports the error.
    pub fn begin_growing(&self, record: &Record) {
        let Some(mut growing) = self.growing() else { return };
        let begun = growing.file.append(ENVELOPE, &record.envelope, false);
        growing.whole = begun.and_then(|()| growing.file.append("begun", record, false)).is_ok();
        if !growing.whole {
            growing.file.remove();
        }
    }

    /// Adds what was measured to such a record, if there is one.
    pub fn grow<L: Serialize>(&self, key: &str, line: impl FnOnce() -> L) {
        let Some(mut growing) = self.growing().filter(|growing| growing.whole) else { return };
        growing.whole = growing.file.append(key, &line(), false).is_ok();
    }

    fn growing(&self) -> Option<MutexGuard<'_, Growing>> {
        self.0.as_ref().map(|growing| growing.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Saves the windows of an execution while it runs.
#[derive(Debug)]
pub struct GrowingWindows {
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
    pub fn new(saver: &Saver, phase: usize, calibration: Calibration) -> Self {
        Self { saver: saver.clone(), phase, calibration, snapshots: Vec::new(), begun: false, written: Duration::ZERO }
    }

    /// Keeps a window that has ended. Not each is written at once: formatting them takes time on a CPU of the workload.
    pub fn keep(&mut self, step: &Step) {
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
    fn a_folder_with_a_record_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        folder(Some(directory.path()), "x").unwrap();
        fs::write(directory.path().join(RECORD), "x").unwrap();
        assert!(folder(Some(directory.path()), "x").unwrap_err().to_string().contains("already contains"));
    }

    #[test]
    fn runs_of_one_second_have_a_folder_each() {
        let directory = tempfile::tempdir().unwrap();
        let around = directory.path().join("runs");
        let make = || (0..20).map(|_| fresh_folder(&around, "x").unwrap().path).collect::<Vec<_>>();
        let made = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..4).map(|_| scope.spawn(make)).collect();
            makers.into_iter().flat_map(|maker| maker.join().unwrap()).collect::<std::collections::BTreeSet<_>>()
        });
        assert_eq!((made.len(), fs::read_dir(&around).unwrap().count()), (80, 80));
    }

    #[test]
    fn the_latest_record_is_the_one_written_last() {
        let directory = tempfile::tempdir().unwrap();
        assert!(latest(&directory.path().join("absent")).unwrap_err().to_string().contains("no record is there"));
        let begun = SystemTime::now();
        // The second began first and ended last; the last one was interrupted before anything was saved.
        for (name, seconds) in [("3-short", Some(5)), ("2-long", Some(9)), ("1-copied", Some(5)), ("4-empty", None)] {
            let folder = directory.path().join(name);
            fs::create_dir(&folder).unwrap();
            if let Some(seconds) = seconds {
                let file = File::create(folder.join(RECORD)).unwrap();
                file.set_modified(begun + std::time::Duration::from_secs(seconds)).unwrap();
            }
        }
        let latest = || super::latest(directory.path()).unwrap().file_name().unwrap().to_owned();
        assert_eq!(latest(), "2-long");
        fs::remove_dir_all(directory.path().join("2-long")).unwrap();
        assert_eq!(latest(), "3-short", "of one time, the name decides");
    }

    #[test]
    fn names_become_file_names() {
        assert_eq!(file_name("fio --name=a /dev/x"), "fio---name-a--dev-x");
        assert_eq!(file_name("../.."), "");
    }

    #[test]
    fn only_its_own_file_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.jsonl");
        let saver = Saver::create(folder.path()).unwrap();
        assert!(Saver::create(folder.path()).is_err());
        fs::rename(&path, folder.path().join("moved")).unwrap();
        fs::write(&path, "another").unwrap();
        saver.remove();
        assert!(path.exists());
        fs::rename(folder.path().join("moved"), &path).unwrap();
        saver.remove();
        assert!(!path.exists());
        Saver::default().remove();
    }
}
