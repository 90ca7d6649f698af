//! A folder that iotoll makes for itself, and that is removed however iotoll ends.

use super::undo::{Identity, Made, Undo};
use super::{Guardian, UndoGuard};
use crate::error::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A folder of iotoll, removed with its contents on drop or when iotoll is killed.
#[derive(Debug)]
pub struct OwnFolder {
    path: PathBuf,
    held: UndoGuard,
}

impl OwnFolder {
    /// Makes one in `around` with a name that begins with `prefix`.
    ///
    /// # Errors
    /// When it cannot be made, or no guardian runs that would remove it.
    pub fn make(guardian: &Guardian, around: &Path, prefix: &str) -> Result<Self> {
        Self::make_at(guardian, Self::path_in(around, prefix)?)
    }

    /// A path for one in `around` with a name that begins with `prefix`.
    ///
    /// # Errors
    /// When `around` is relative and the working folder does not exist any more.
    pub(crate) fn path_in(around: &Path, prefix: &str) -> Result<PathBuf> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let path = around.join(format!("{prefix}{}-{:09}", std::process::id(), now.subsec_nanos()));
        std::path::absolute(&path).map_err(|error| Error::file(&path, "resolving the path", error))
    }

    /// Makes one at this absolute path in a folder for temporary files. The guardian knows the path before the folder is made.
    ///
    /// # Errors
    /// As above.
    pub fn make_at(guardian: &Guardian, path: PathBuf) -> Result<Self> {
        let failed = |source| Error::File {
            path: path.clone(),
            what: "making a temporary folder".to_owned(),
            source,
            mend: "; set TMPDIR to a folder that exists, is writable and has space".to_owned(),
        };
        let held = guardian.add(Undo::Remove { path: path.clone(), made: Made::soon() })?;
        fs::create_dir(&path).map_err(failed)?;
        let made = fs::symlink_metadata(&path).map(|metadata| Made::Is(Identity::of(&metadata)));
        let folder = Self { path: path.clone(), held };
        folder.held.amend(Undo::Remove { path: path.clone(), made: made.map_err(failed)? })?;
        Ok(folder)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn close(self) -> Result<()> {
        fs::remove_dir_all(&self.path).map_err(|error| Error::file(&self.path, "removing the folder", error))
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // An error cannot be reported from here.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_removed_with_its_contents() {
        let around = tempfile::tempdir().unwrap();
        let folder = OwnFolder::make(&Guardian::default(), around.path(), "own-").unwrap();
        fs::write(folder.path().join("scratch"), "data").unwrap();
        assert_eq!(fs::read_dir(around.path()).unwrap().count(), 1);
        drop(folder);
        OwnFolder::make(&Guardian::default(), around.path(), "own-").unwrap().close().unwrap();
        assert_eq!(fs::read_dir(around.path()).unwrap().count(), 0);
        assert!(OwnFolder::make(&Guardian::default(), &around.path().join("missing"), "own-").is_err());
    }
}
