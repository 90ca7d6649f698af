//! Records on disk: saved before they are studied, so that no study that fails can lose one.

mod file;

pub use file::{RecordFile, kind_at, load, load_earlier};

use crate::error::{Error, Result};
use model::record::Record;
use rustix::fs::Access;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A record's file within its folder.
const RECORD: &str = "record.jsonl";
/// Where records go that nobody named a place for.
const RUNS: &str = "iotoll-runs";

/// A folder that a record will be saved in.
#[derive(Clone, Debug)]
pub struct RecordFolder {
    /// Where it is.
    pub path: PathBuf,
    /// The folders that were made for it, the innermost first.
    made: Vec<PathBuf>,
}

impl RecordFolder {
    /// Nothing was measured: takes away again what was made, except where somebody put something there.
    pub fn abandon(&self) {
        // It may be given up while the record is written.
        let _ = fs::remove_file(partial(&self.path));
        for folder in &self.made {
            // One that is not empty stays, and so do those around it.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// A folder for a record: the one that was asked for, or a new `iotoll-runs/TIME-NAME`.
///
/// # Errors
/// When it cannot be made or written to, or holds a record already.
pub fn folder(asked: Option<&Path>, name: &str) -> Result<RecordFolder> {
    let Some(path) = asked.map(Path::to_owned) else {
        return fresh_folder(Path::new(RUNS), name).map_err(|error| {
            Error::Refused(format!("{RUNS}: no record can be saved there: {error}; choose --out, or --no-save"))
        });
    };
    if path.join(RECORD).exists() {
        let path = path.display();
        return Err(Error::Refused(format!("{path} already holds a record; choose another --out, or remove it")));
    }
    let folders = path.ancestors().filter(|folder| !folder.as_os_str().is_empty());
    let made = folders.take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
    let folder = RecordFolder { path, made };
    // Before anything is measured, so that no measurement is lost.
    let usable = fs::create_dir_all(&folder.path).and_then(|()| Ok(rustix::fs::access(&folder.path, WRITABLE)?));
    usable.map_err(|error| {
        folder.abandon();
        let path = folder.path.display();
        Error::Refused(format!("{path}: no record can be saved there: {error}; choose another --out, or --no-save"))
    })?;
    Ok(folder)
}

/// A new folder within `around`, of this time and name. It is nobody else's, whoever else makes one at the same time.
fn fresh_folder(around: &Path, name: &str) -> io::Result<RecordFolder> {
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string().replace(':', "");
    let new = !around.exists();
    for number in 0..1000 {
        let again = if number == 0 { String::new() } else { format!("-{number}") };
        let path = around.join(format!("{time}-{}{again}", file_name(name)));
        // Somebody who has measured nothing takes his folder away again, and this one too if it is empty.
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
    Err(io::Error::other("a thousand runs in one second"))
}

/// What saving a file in a folder takes.
const WRITABLE: Access = Access::WRITE_OK.union(Access::EXEC_OK);

/// A name of which a file name can be made.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let name: String = name.chars().take(40).map(plain).collect();
    name.trim_matches('-').to_owned()
}

/// Where a record was saved.
#[derive(Debug)]
pub struct Saved {
    /// The folder.
    pub folder: PathBuf,
    /// Its file.
    pub path: PathBuf,
    /// Why it is not where it should be, if it is not.
    pub instead: Option<Error>,
}

/// Saves a record; the file is complete or not there. Where the folder has gone since it was made sure of, or takes nothing any more, it is
/// saved in a new one among temporary files: nobody can measure it again.
///
/// # Errors
/// When it cannot be written there either: no space, no permission.
pub fn save(folder: &Path, record: &Record) -> Result<Saved> {
    let failure = match save_in(folder, record) {
        Ok(path) => return Ok(Saved { folder: folder.to_owned(), path, instead: None }),
        Err(error) => Error::record(&folder.join(RECORD), "saving the record", error),
    };
    let Ok(another) = tempfile::Builder::new().prefix("iotoll-run-").tempdir() else { return Err(failure) };
    match save_in(another.path(), record) {
        Ok(path) => Ok(Saved { folder: another.keep(), path, instead: Some(failure) }),
        Err(_) => Err(failure),
    }
}

/// Where a record is written before it is whole. Two may have been given the same --out at the same time.
fn partial(folder: &Path) -> PathBuf {
    folder.join(format!("{RECORD}.{}.partial", std::process::id()))
}

fn save_in(folder: &Path, record: &Record) -> io::Result<PathBuf> {
    let path = folder.join(RECORD);
    let partial = partial(folder);
    let written = write(&partial, record).and_then(|()| rename_to_new(&partial, &path));
    written.inspect_err(|_| {
        // Half of a record is of no use, and takes space that there may be none of.
        let _ = fs::remove_file(&partial);
    })?;
    Ok(path)
}

/// Renames without replacing what is there, as far as the file system can.
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) if !to.exists() => fs::rename(from, to),
        outcome => Ok(outcome?),
    }
}

fn write(path: &Path, record: &Record) -> io::Result<()> {
    let mut writer = BufWriter::new(File::create(path)?);
    file::write_whole(&mut writer, &record.envelope, "measured", record)?;
    writer.into_inner()?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_a_record_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        folder(Some(directory.path()), "x").unwrap();
        fs::write(directory.path().join(RECORD), "x").unwrap();
        assert!(folder(Some(directory.path()), "x").unwrap_err().to_string().contains("already holds"));
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
    fn names_become_file_names() {
        assert_eq!(file_name("fio --name=a /dev/x"), "fio---name-a--dev-x");
        assert_eq!(file_name("../.."), "");
    }
}
