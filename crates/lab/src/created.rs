//! What a run made: files, folders and lengths that are undone unless it ends well, and devices that it has claimed.

use crate::error::{Error, Result};
use crate::guardian::undo::{Identity, Lengthened, Made as How, Undo};
use crate::guardian::{Guardian, UndoGuard};
use model::plan::JobPlan;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// its duration.
#[derive(Debug, Default)]
pub struct Created {
    made: Mutex<Made>,
    /// Undoes it if iotoll is killed.
    guardian: Guardian,
}

#[derive(Debug, Default)]
struct Made {
    /// Files that did not exist.
    created: BTreeMap<PathBuf, (How, UndoGuard)>,
    /// Folders that did not exist, each behind the one that it is in.
    folders: Vec<(PathBuf, UndoGuard)>,
    /// Of those, files that a job wants removed (`unlink`).
    unlinked: BTreeSet<PathBuf>,
    /// Files that were shorter.
    lengthened: BTreeMap<PathBuf, (Lengthened, UndoGuard)>,
    /// Devices by number, opened so that no other process can mount or claim them.
    devices: BTreeMap<u64, File>,
}

impl Created {
    /// `guardian` undoes the changes if iotoll is killed.
    pub fn guarded(guardian: Guardian) -> Self {
        Self { guardian, made: Mutex::default() }
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the removal of a file before it is made.
    pub fn will_create(&self, path: &Path) -> Result<UndoGuard> {
        self.guardian.add(Undo::Remove { path: absolute(path)?, made: How::soon() })
    }

    pub fn note_created(&self, path: &Path, file: How, held: UndoGuard) -> Result<()> {
        let amended = held.amend(Undo::Remove { path: absolute(path)?, made: file });
        self.made().created.insert(path.to_owned(), (file, held));
        amended
    }

    /// The file is removed when the run ends, if the run made it.
    pub fn will_unlink(&self, path: &Path) {
        self.made().unlinked.insert(path.to_owned());
    }

    pub fn note_lengthened(&self, path: &Path, file: Identity, from: u64, to: u64) -> Result<()> {
        let mut made = self.made();
        if made.created.contains_key(path) {
            return Ok(());
        }
        let undo = |lengthened| Ok(Undo::Shorten { path: absolute(path)?, lengthened });
        match made.lengthened.entry(path.to_owned()) {
            // A later job may lengthen it again; the original length counts.
            Entry::Occupied(mut there) => {
                let (lengthened, held) = there.get_mut();
                lengthened.to = to;
                held.amend(undo(*lengthened)?)
            }
            Entry::Vacant(place) => {
                let lengthened = Lengthened { file, from, to };
                place.insert((lengthened, self.guardian.add(undo(lengthened)?)?));
                Ok(())
            }
        }
    }

    /// Claims a device that will be written to. For a job that trims, this only checks: the kernel claims the device itself for each discard,
    /// and where it cannot, it discards only what is not in the page cache.
    pub fn claim(&self, path: &Path, plan: &JobPlan) -> Result<()> {
        if plan.access.trims() {
            return claim(path, plan).map(drop);
        }
        let number =
            fs::metadata(path).map_err(|error| Error::file(path, "reading the device's metadata", error))?.rdev();
        let mut made = self.made();
        if let Entry::Vacant(place) = made.devices.entry(number) {
            place.insert(claim(path, plan)?);
        }
        Ok(())
    }

    /// Whether this run made the file.
    pub fn has_made(&self, path: &Path) -> bool {
        self.made().created.contains_key(path)
    }

    /// The run ended well: the files that it created stay, as fio's do, unless a job has `unlink`. Devices are released.
    pub fn keep(&self) {
        let mut made = self.made();
        made.devices.clear();
        made.lengthened.clear();
        let unlinked = std::mem::take(&mut made.unlinked);
        made.folders.clear();
        made.created.retain(|path, _| unlinked.contains(path));
        remove(std::mem::take(&mut made.created));
    }

    /// Undoes the changes, as on drop, except for files that belong to another process now. Devices are released.
    pub fn undo(&self) {
        // The run has failed already, so an error here is not reported.
        let mut made = self.made();
        made.devices.clear();
        for (path, (lengthened, _held)) in std::mem::take(&mut made.lengthened) {
            let _ = lengthened.undo(&path);
        }
        remove(std::mem::take(&mut made.created));
        for (path, _held) in std::mem::take(&mut made.folders).into_iter().rev() {
            // Only if nothing else is in it.
            let _ = fs::remove_dir(path);
        }
    }

    /// Makes the missing folders on the way to a file, as fio does.
    pub fn make_folders(&self, file: &Path) -> Result<()> {
        let missing: Vec<&Path> = file
            .ancestors()
            .skip(1)
            .take_while(|folder| !folder.as_os_str().is_empty() && fs::symlink_metadata(folder).is_err())
            .collect();
        for folder in missing.into_iter().rev() {
            let held = self.guardian.add(Undo::Remove { path: absolute(folder)?, made: How::soon() })?;
            match fs::create_dir(folder) {
                Ok(()) => self.made().folders.push((folder.to_owned(), held)),
                // `a/..` is there as soon as `a` is.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
                Err(error) => return Err(Error::file(folder, "making the folder of a file", error)),
            }
        }
        Ok(())
    }
}

/// Opens a device exclusively, so that no other process can mount or claim it meanwhile. The kernel also knows uses
/// that the files of /proc and /sys do not show (another mount namespace, a device-mapper table that is being made).
fn claim(path: &Path, plan: &JobPlan) -> Result<File> {
    let exclusive = rustix::fs::OFlags::EXCL.bits().cast_signed();
    let device = File::options().read(true).custom_flags(exclusive).open(path);
    device.map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => {
            let why = "is in use (mounted, or part of another device); iotoll never writes to a device in use";
            Error::refused_file(plan, path, why)
        }
        _ => Error::file(path, "claiming the device", error),
    })
}

/// The path from the root, because the guardian has another working directory.
///
/// # Errors
/// When the working folder is gone.
pub fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| Error::file(path, "resolving the path", error))
}

/// Removes files and empty folders that were made, but for what has become somebody else's.
fn remove(created: BTreeMap<PathBuf, (How, UndoGuard)>) {
    for (path, (file, _held)) in created {
        if file.lies_at(&path) {
            let _ = if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
        }
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        self.undo();
    }
}
