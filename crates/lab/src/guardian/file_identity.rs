//! Which file iotoll made or lengthened, so that only this file is removed or cut.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Which file it is, whatever its name: device and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Identity(u64, u64);

impl Identity {
    pub fn of(metadata: &fs::Metadata) -> Self {
        Self(metadata.dev(), metadata.ino())
    }
}

/// A file that was made longer.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Lengthened {
    pub file: Identity,
    /// Its length before.
    pub from: u64,
    /// And after. What is behind that is somebody else's.
    pub to: u64,
}

impl Lengthened {
    /// Makes it as long as it was, unless it is another one, or somebody else made it longer too.
    pub fn undo(&self, path: &Path) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(path)?;
        if self.is(&file.metadata()?) { file.set_len(self.from) } else { Ok(()) }
    }

    fn is(&self, metadata: &fs::Metadata) -> bool {
        Identity::of(metadata) == self.file && (self.from..=self.to).contains(&metadata.len())
    }

    /// Whether what lies at `path` is it, and is longer than it was.
    pub fn lies_at(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|metadata| self.is(&metadata) && metadata.len() > self.from)
    }
}
