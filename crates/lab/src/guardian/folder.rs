//! A folder that iotoll makes for itself, and that nobody finds after it, however it ends.

use super::file_identity::Identity;
use super::undo::{Made, Undo};
use super::{Guardian, Held};
use crate::error::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A folder of our own, removed with all that is in it when this is dropped or when we are killed.
#[derive(Debug)]
pub struct OwnFolder {
    path: PathBuf,
    held: Held,
}

impl OwnFolder {
    /// Makes one within `around` with a name that begins with `prefix`.
    ///
    /// # Errors
    /// When it cannot be made, or nobody would remove it.
    pub fn make(guardian: &Guardian, around: &Path, prefix: &str) -> Result<Self> {
        // Known before it is made, so that it can be handed over before.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let path = around.join(format!("{prefix}{}-{:09}", std::process::id(), now.subsec_nanos()));
        let path = std::path::absolute(&path).map_err(|error| Error::file(&path, "finding its place", error))?;
        let failed = |error| Error::file(&path, "making a folder", error);
        let held = guardian.add(Undo::RemoveFolder { path: path.clone(), made: Made::soon() })?;
        fs::create_dir(&path).map_err(failed)?;
        let made = fs::symlink_metadata(&path).map(|metadata| Made::Is(Identity::of(&metadata)));
        let folder = Self { path: path.clone(), held };
        folder.held.amend(Undo::RemoveFolder { path: path.clone(), made: made.map_err(failed)? })?;
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it.
    ///
    /// # Errors
    /// When it stays.
    pub fn close(self) -> Result<()> {
        fs::remove_dir_all(&self.path).map_err(|error| Error::file(&self.path, "removing the folder", error))
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // Whoever could be told has been told by then.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_with_all_that_is_in_it() {
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
