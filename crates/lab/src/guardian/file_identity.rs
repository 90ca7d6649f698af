//! Identifies the files that iotoll made or lengthened, so that only these are removed or cut.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Identity of a file, independent of its name: device and inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Identity(u64, u64);

impl Identity {
    pub fn of(metadata: &fs::Metadata) -> Self {
        Self(metadata.dev(), metadata.ino())
    }
}

/// A file that iotoll lengthened.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Lengthened {
    pub file: Identity,
    /// Its length before.
    pub from: u64,
    /// Its length after. Bytes behind that belong to another process.
    pub to: u64,
}

impl Lengthened {
    /// Restores its length, unless it is a different file, or another process lengthened it too.
    pub fn undo(&self, path: &Path) -> io::Result<()> {
        // A pipe that is there now would wait for its reader.
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().write(true).custom_flags(nonblocking).open(path)?;
        if self.is(&file.metadata()?) { file.set_len(self.from) } else { Ok(()) }
    }

    fn is(&self, metadata: &fs::Metadata) -> bool {
        Identity::of(metadata) == self.file && (self.from..=self.to).contains(&metadata.len())
    }

    /// Whether `path` is this file and still longer than before.
    pub fn lies_at(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|metadata| self.is(&metadata) && metadata.len() > self.from)
    }
}
