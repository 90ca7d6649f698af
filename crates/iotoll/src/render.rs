//! Keeping a record, studying it, and printing what was found.

use crate::arguments::{Output, ReportArguments};
use crate::failure::{self, BadInput};
use crate::stored;
use anyhow::Context;
use lab::store::RecordFolder;
use model::comparison::CompareRecord;
use model::finding::RunFinding;
use model::kind::{Kind, Recorded};
use model::record::Record;
use model::stored::Stored;
use report::{Finding, Format, Ink};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

/// The page beside each record.
pub const PAGE: &str = "report.html";

/// Where a record is going to be kept, made sure of before anything is measured.
#[derive(Clone)]
pub enum Keeping {
    /// In this folder.
    In(RecordFolder),
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
        spare_page(&folder.path)?;
        Ok(Self::In(folder))
    }

    /// Saves the record and the page beside it.
    pub fn keep(&self, record: &Record, finding: &RunFinding, note: bool) -> anyhow::Result<()> {
        let Self::In(folder) = self else { return Ok(()) };
        let saved = lab::store::save(&folder.path, record)?;
        let written = write_page(&saved.folder, finding);
        let beside = if written.is_ok() { format!(" and {PAGE} beside it") } else { String::new() };
        let (path, folder) = (saved.path.display(), saved.folder.display());
        // Whoever looks for it where he asked for it would not find it.
        let why = saved.instead.map(|why| format!("{why}; it is elsewhere: "));
        if note || why.is_some() {
            let why = why.unwrap_or_default();
            failure::complain(&format!("{why}record in {path}{beside}; show it again: iotoll report {folder}"));
        }
        written
    }

    /// Nothing was measured: takes the folder away again.
    pub fn abandon(&self) {
        if let Self::In(folder) = self {
            folder.abandon();
        }
    }
}

/// Saves a record, studies it, and prints what was found. A record that could not be saved is printed all the
/// same: it is all that is left of the measurement.
pub fn keep_and_print(
    record: &Record,
    stored: Option<&Stored<Record>>,
    keeping: &Keeping,
    output: &Output,
) -> anyhow::Result<()> {
    let finding = record.study(stored);
    let kept = keeping.keep(record, &finding, !output.quiet);
    both(kept, print(&finding, output.format))
}

/// A record could not be kept, or what was found could not be printed, or both: neither hides the other.
pub fn both(kept: anyhow::Result<()>, printed: anyhow::Result<()>) -> anyhow::Result<()> {
    if let (Err(lost), Err(_)) = (&kept, &printed) {
        failure::complain(&failure::in_words(lost));
    }
    printed.and(kept)
}

/// `iotoll report`.
pub fn report(arguments: &ReportArguments) -> anyhow::Result<ExitCode> {
    match lab::store::kind_at(&arguments.record)? {
        Kind::Cost => show::<Record>(arguments)?,
        Kind::Compare => show::<CompareRecord>(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows a record of one kind.
fn show<R: Recorded>(arguments: &ReportArguments) -> anyhow::Result<()>
where
    R::Finding: Finding,
{
    let record: R = lab::store::load(&arguments.record)?;
    let stored = stored::load(arguments.stored.as_deref(), record.plan())?;
    print(&record.study(stored.as_ref()), arguments.format)
}

/// Refuses a folder that holds somebody's page.
pub fn spare_page(folder: &Path) -> anyhow::Result<()> {
    let page = folder.join(PAGE);
    if page.exists() {
        let page = page.display();
        return Err(BadInput(format!("{page}: is there already; choose another --out, or remove it")).into());
    }
    Ok(())
}

/// Writes the page beside the record in `folder`.
pub fn write_page(folder: &Path, finding: &impl Finding) -> anyhow::Result<()> {
    let path = folder.join(PAGE);
    let page = Format::Html.render(finding, Ink::Plain, 0);
    Ok(std::fs::write(&path, page).map_err(|error| lab::Error::file(&path, "writing the report", error))?)
}

/// Prints a finding on standard output.
pub fn print(finding: &impl Finding, format: Format) -> anyhow::Result<()> {
    write(&format.render(finding, ink(), columns()))
}

/// Writes text to standard output. A reader that went away (`iotoll … | head`) has read enough; how the
/// measurement ended is not changed by it.
pub fn write(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("writing to standard output; give it a place that takes it"))
        }
        _ => Ok(()),
    }
}

/// Colour on a terminal, unless NO_COLOR is set (no-color.org).
pub fn ink() -> Ink {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if std::io::stdout().is_terminal() && !plain { Ink::Colour } else { Ink::Plain }
}

/// Width of the terminal; 100 columns where there is none.
pub fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(100)
}

/// Text of a job file named on the command line.
pub fn read(path: &Path) -> anyhow::Result<String> {
    read_text(path, "the job file", "JOB.fio")
}

/// Text of a file named on the command line: what it is, and what to give in its place.
pub fn read_text(path: &Path, what: &str, place: &str) -> anyhow::Result<String> {
    let unreadable = |error| BadInput(format!("{}: reading {what}: {error}; give {place}", path.display()));
    let bytes = std::fs::read(path).map_err(unreadable)?;
    String::from_utf8(bytes)
        .ok()
        .with_context(|| BadInput(format!("{}: not UTF-8 text; save it as UTF-8", path.display())))
}
