//! Saves records, each with `report.html` beside it.

mod comparison;
mod guests;
mod packets;
mod recording;
pub mod series;

pub use comparison::{OpenRecord, Saving};

use crate::arguments::Output;
use crate::failure::{self, BadInput};
use crate::stdout;
use lab::store::{RecordFolder, Saved, Unfinished};
use model::finding::RunFinding;
use model::kind::Recorded;
use model::record::Record;
use model::stored::Stored;
use report::{Finding, Format, Ink};
use std::io::Write;
use std::path::Path;

/// The HTML report beside each record.
pub const PAGE: &str = "report.html";

/// Where a record will be saved; checked before the measurement.
#[derive(Clone)]
pub enum Keeping {
    /// In this folder, which contains the unfinished record.
    In(RecordFolder, Unfinished),
    /// Nowhere.
    Not,
}

impl Keeping {
    /// What the command line asks for.
    pub fn prepare(output: &Output, name: &str) -> anyhow::Result<Self> {
        if output.no_save {
            return Ok(Self::Not);
        }
        let folder = lab::store::folder(output.out.as_deref(), name)?;
        let unfinished = spare_page(&folder.path).and_then(|()| Ok(Unfinished::create(&folder.path)?));
        let unfinished = unfinished.inspect_err(|_| folder.abandon())?;
        Ok(Self::In(folder, unfinished))
    }

    /// The record to add to while measuring.
    pub fn unfinished(&self) -> Unfinished {
        match self {
            Self::In(_, unfinished) => unfinished.clone(),
            Self::Not => Unfinished::default(),
        }
    }

    /// Saves the record. `None` with `--no-save`.
    fn save(&self, record: &Record) -> anyhow::Result<Option<Saved>> {
        let Self::In(folder, unfinished) = self else { return Ok(None) };
        Ok(Some(lab::store::save(&folder.path, unfinished, record)?))
    }

    /// Writes the report beside a saved record, and prints where both are.
    fn write_page(saved: Saved, finding: &RunFinding, note: bool) -> anyhow::Result<()> {
        let written = write_page(&saved.folder, finding);
        let beside = if written.is_ok() { format!(" and {PAGE} beside it") } else { String::new() };
        let (path, folder) = (saved.path.display(), saved.folder.display());
        // The record is not in the folder that the user named, so say where it is.
        let why = saved.instead.map(|why| format!("{why}; saved elsewhere: "));
        if note || why.is_some() {
            let why = why.unwrap_or_default();
            failure::complain(&format!("{why}record in {path}{beside}; to show it again: iotoll report {folder}"));
        }
        written
    }

    /// Removes the folder, if nothing was measured.
    pub fn abandon(&self) {
        if let Self::In(folder, unfinished) = self {
            unfinished.remove();
            folder.abandon();
        }
    }
}

/// Saves a record, studies it, and prints the finding, which it returns. The finding is printed even if saving failed: nothing
/// else is left of the measurement.
pub fn keep_and_print(
    record: &Record,
    stored: Option<&Stored<Record>>,
    keeping: &Keeping,
    output: &Output,
) -> anyhow::Result<RunFinding> {
    // First of all, so that no study that fails can lose it.
    let saved = keeping.save(record);
    let finding = record.study(stored);
    let kept =
        saved.and_then(|saved| saved.map_or(Ok(()), |saved| Keeping::write_page(saved, &finding, !output.quiet)));
    both(kept, stdout::print(&finding, output.shown))?;
    Ok(finding)
}

/// Combines the errors of saving and printing, so that neither hides the other.
pub fn both(kept: anyhow::Result<()>, printed: anyhow::Result<()>) -> anyhow::Result<()> {
    if let (Err(lost), Err(_)) = (&kept, &printed) {
        failure::complain(&failure::in_words(lost));
    }
    printed.and(kept)
}

/// Refuses a folder that already contains a report.
pub fn spare_page(folder: &Path) -> anyhow::Result<()> {
    let page = folder.join(PAGE);
    // A symbolic link that leads nowhere is one too.
    if std::fs::symlink_metadata(&page).is_ok() {
        let page = page.display();
        return Err(BadInput(format!("{page}: already exists; choose another --out, or remove it")).into());
    }
    Ok(())
}

/// Writes the report beside the record in `folder`.
pub fn write_page(folder: &Path, finding: &dyn Finding) -> anyhow::Result<()> {
    write_html(folder, &Format::Html.render(finding, Ink::Plain, 0))
}

/// Writes a rendered report beside the record in `folder`.
pub fn write_html(folder: &Path, page: &str) -> anyhow::Result<()> {
    let path = folder.join(PAGE);
    let written = lab::store::create_afresh(&path).and_then(|mut file| file.write_all(page.as_bytes()));
    Ok(written.map_err(|error| {
        // Half a page is none.
        let _ = std::fs::remove_file(&path);
        lab::Error::record(&path, "writing the report", error)
    })?)
}
