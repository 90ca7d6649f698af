//! Saves records, each with `report.html` beside it.

use crate::arguments::Output;
use crate::failure::{self, bad};
use lab::store::{RecordFolder, Saver};
use model::finding::RunFinding;
use model::record::Record;
use report::Ink;
use std::io::Write;
use std::path::Path;
use verbs::format::PAGE;
use verbs::{Finding, Format};

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

    /// Removes what was made, if nothing was measured.
    pub fn abandon(&self) {
        if let Some((folder, saver)) = &self.0 {
            saver.remove();
            folder.abandon();
        }
    }

    /// The folder, if there is one.
    pub fn folder(&self) -> Option<&Path> {
        self.0.as_ref().map(|(folder, _)| folder.path.as_path())
    }

    /// Saves a complete record in place of the growing one.
    pub fn save(&self, record: &Record) -> anyhow::Result<()> {
        Ok(self.folder().map_or(Ok(()), |folder| lab::store::save(folder, record))?)
    }
}

/// Writes a profile, if there is one, for programs that draw and compare profiles.
pub fn write_profile(folder: &Path, finding: &RunFinding) -> anyhow::Result<()> {
    report::folded(finding)
        .map_or(Ok(()), |stacks| write_file(&folder.join("profile.folded"), "writing the profile", stacks.as_bytes()))
}

/// Writes a file beside a record; `doing` says what that is.
pub fn write_file(path: &Path, doing: &'static str, contents: &[u8]) -> anyhow::Result<()> {
    let written = lab::store::create_afresh(path).and_then(|mut file| file.write_all(contents));
    Ok(written.map_err(|error| lab::Error::file(path, doing, error))?)
}

/// Says where the record and its page are, and other `files` beside them.
pub fn note(folder: &Path, files: &str, has_page: bool) {
    let folder = folder.display();
    let page = if has_page { format!(" and {PAGE}") } else { String::new() };
    failure::complain(&format!("record{files}{page} in {folder}; to show it again: iotoll report {folder}"));
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
        return Err(bad(format!("{page}: already exists; choose another --out, or remove it")));
    }
    Ok(())
}

/// Writes the report beside the record in `folder`.
pub fn write_page(folder: &Path, finding: &dyn Finding) -> anyhow::Result<()> {
    let (path, page) = (folder.join(PAGE), Format::Html.render(finding, Ink::Plain, 0));
    let written = lab::store::create_afresh(&path).and_then(|mut file| file.write_all(page.as_bytes()));
    Ok(written.map_err(|error| {
        // Half a page is none.
        let _ = std::fs::remove_file(&path);
        lab::Error::record(&path, "writing the report", error)
    })?)
}
