//! Saves a comparison: a folder with `record.jsonl`, written round by round, and the report beside it.

use super::spare_page;
use lab::compare::RecordWriter;
use lab::store::{RecordFile, RecordFolder};
use model::comparison::record::{End, Header, RoundRecord};
use std::path::Path;

/// A record that is being written, and its folder.
pub struct OpenRecord {
    /// The folder.
    pub folder: RecordFolder,
    /// The record.
    pub file: RecordFile,
}

impl OpenRecord {
    /// Makes the folder of a record and its report, and begins the record.
    pub fn prepare(out: Option<&Path>, name: &str) -> anyhow::Result<Self> {
        let folder = lab::store::folder(out, name)?;
        spare_page(&folder.path).inspect_err(|_| folder.abandon())?;
        let file = RecordFile::create(&folder.path).inspect_err(|_| folder.abandon())?;
        Ok(Self { folder, file })
    }

    /// Removes what was made, if nothing was measured.
    pub fn abandon(&self) {
        // If the file cannot be removed, the folder stays too.
        let _ = std::fs::remove_file(self.file.path());
        self.folder.abandon();
    }
}

/// Where the record and its report are saved.
pub enum Saving {
    /// In this folder.
    In(OpenRecord),
    /// Nowhere.
    Not,
}

impl Saving {
    /// Makes the folder, unless `no_save` is set. Without `out` its name is the time and `name`.
    pub fn prepare(out: Option<&Path>, no_save: bool, name: &str) -> anyhow::Result<Self> {
        Ok(if no_save { Self::Not } else { Self::In(OpenRecord::prepare(out, name)?) })
    }

    /// Removes what was made, if nothing was measured.
    pub fn abandon(&self) {
        if let Self::In(place) = self {
            place.abandon();
        }
    }

    /// The folder, if there is one.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::In(place) => Some(&place.folder.path),
            Self::Not => None,
        }
    }

    pub(super) fn file(&mut self) -> Option<&mut RecordFile> {
        match self {
            Self::In(place) => Some(&mut place.file),
            Self::Not => None,
        }
    }
}

impl RecordWriter for Saving {
    fn header(&mut self, header: &Header) -> lab::Result<()> {
        self.file().map_or(Ok(()), |file| file.header(header))
    }

    fn round(&mut self, round: &RoundRecord) -> lab::Result<()> {
        self.file().map_or(Ok(()), |file| file.round(round))
    }

    fn end(&mut self, end: &End) -> lab::Result<()> {
        self.file().map_or(Ok(()), |file| file.end(end))
    }
}
