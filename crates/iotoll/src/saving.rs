//! Saves records, each with `report.html` beside it.

pub mod series;

use crate::arguments::Output;
use crate::failure::{self, BadInput};
use lab::store::{RecordFolder, Saved, Saver};
use model::finding::RunFinding;
use model::kind::Recorded;
use model::record::Record;
use model::stored::Stored;
use report::{Finding, Format, Ink, PAGE, ProfileFile, profile_files};
use std::io::Write;
use std::path::Path;

/// Where a record and its report are saved; checked before the measurement. Nowhere with `--no-save`.
#[derive(Clone)]
pub struct Saving(Option<(RecordFolder, Saver)>);

impl Saving {
    /// Makes the folder that the command line asks for, and begins the record. Without `--out` its name is the time and `name`.
    pub fn prepare(output: &Output, name: &str) -> anyhow::Result<Self> {
        if output.no_save {
            return Ok(Self(None));
        }
        let folder = lab::store::folder(output.out.as_deref(), name)?;
        let saver = spare_page(&folder.path).and_then(|()| Ok(Saver::create(&folder.path)?));
        let saver = saver.inspect_err(|_| folder.abandon())?;
        Ok(Self(Some((folder, saver))))
    }

    /// What saves the record while it grows.
    pub fn saver(&self) -> Saver {
        self.0.as_ref().map(|(_, saver)| saver.clone()).unwrap_or_default()
    }

    /// The folder, if there is one.
    pub fn folder(&self) -> Option<&Path> {
        self.0.as_ref().map(|(folder, _)| folder.path.as_path())
    }

    /// Removes what was made, if nothing was measured.
    pub fn abandon(&self) {
        if let Some((folder, saver)) = &self.0 {
            saver.remove();
            folder.abandon();
        }
    }

    /// Saves a complete record in place of the growing one. `None` with `--no-save`.
    fn save(&self, record: &Record) -> anyhow::Result<Option<Saved>> {
        let Some((folder, saver)) = &self.0 else { return Ok(None) };
        Ok(Some(lab::store::save(&folder.path, saver, record)?))
    }
}

/// Writes the report beside a record that may be saved elsewhere, and prints where both are.
fn write_page_of(saved: Saved, finding: &RunFinding, note: bool) -> anyhow::Result<()> {
    let written = write_page(&saved.folder, finding).and_then(|()| write_profile(&saved.folder, finding));
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

/// Writes a profile, if there is one, for programs that draw and compare profiles.
fn write_profile(folder: &Path, finding: &RunFinding) -> anyhow::Result<()> {
    for ProfileFile { name, contents } in profile_files(finding) {
        let path = folder.join(name);
        let written = lab::store::create_afresh(&path).and_then(|mut file| file.write_all(&contents));
        written.map_err(|error| lab::Error::file(&path, "writing the profile", error))?;
    }
    Ok(())
}

/// Says where the record and its report are, and other `files` beside them, unless the user wants no notes or the result says it.
pub fn note_folder(folder: &Path, files: &str, output: &Output) {
    if !output.quiet && !output.shown.is_glance() {
        let folder = folder.display();
        failure::complain(&format!("record{files} and {PAGE} in {folder}; to show it again: iotoll report {folder}"));
    }
}

/// Saves a record, studies it, and prints the finding, which it returns; with a note where the record is. The finding is printed even if saving failed: nothing
/// else is left of the measurement.
pub fn keep_and_print(
    record: &Record,
    stored: Option<&Stored<Record>>,
    saving: &Saving,
    note: bool,
    print: &dyn Fn(&RunFinding, Option<&Path>) -> anyhow::Result<()>,
) -> anyhow::Result<RunFinding> {
    // First of all, so that no study that fails can lose it.
    let saved = saving.save(record);
    let finding = record.study(stored);
    let folder = saved.as_ref().ok().and_then(Option::as_ref).map(|saved| saved.folder.clone());
    let kept = saved.and_then(|saved| saved.map_or(Ok(()), |saved| write_page_of(saved, &finding, note)));
    both(kept, print(&finding, folder.as_deref()))?;
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
fn spare_page(folder: &Path) -> anyhow::Result<()> {
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
