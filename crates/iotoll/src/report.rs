//! `iotoll report`: a saved record is studied and printed again.

use crate::arguments::ReportArguments;
use crate::failure::{self, BadInput};
use crate::saving::series;
use crate::stdout;
use crate::stored;
use model::blast::BlastRecord;
use model::comparison::CompareRecord;
use model::envelope::Kind;
use model::ftq::FtqRecord;
use model::guest::GuestRecord;
use model::kind::Recorded;
use model::record::Record;
use report::Finding;
use std::path::Path;
use std::process::ExitCode;

/// Runs the verb.
pub fn report(arguments: &ReportArguments) -> anyhow::Result<ExitCode> {
    let path = match &arguments.record {
        Some(path) => path.clone(),
        None => {
            let latest = lab::store::latest()?;
            // Which one it is may surprise.
            failure::complain(&format!("the last record: {}", latest.display()));
            latest
        }
    };
    let kind = lab::store::kind_at(&path)?;
    if let Some(folder) = &arguments.series {
        return write_series(&path, kind, folder);
    }
    match kind {
        Kind::Cost => show::<Record>(&path, arguments)?,
        Kind::Compare => show::<CompareRecord>(&path, arguments)?,
        Kind::Guest => show::<GuestRecord>(&path, arguments)?,
        Kind::Ftq => show::<FtqRecord>(&path, arguments)?,
        Kind::Blast => show::<BlastRecord>(&path, arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the series of a recording.
fn write_series(path: &Path, kind: Kind, folder: &Path) -> anyhow::Result<ExitCode> {
    if kind != Kind::Ftq {
        let message = format!(
            "--series: {} is the record of {}; only a recording (iotoll ftq) has a series",
            path.display(),
            kind.noun()
        );
        return Err(BadInput(message).into());
    }
    let record: FtqRecord = lab::store::load(path)?;
    std::fs::create_dir_all(folder)
        .map_err(|error| lab::Error::file(folder, "making the folder of the series", error))?;
    series::write(folder, &record)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a record of one kind.
fn show<R: Recorded>(path: &Path, arguments: &ReportArguments) -> anyhow::Result<()>
where
    R::Finding: Finding,
{
    let (record, cut): (R, _) = lab::store::load_to_show(path)?;
    if let Some(why) = cut {
        failure::complain(&why);
    }
    let stored = stored::load(arguments.stored.as_deref(), record.plan())?;
    stdout::print(&record.study(stored.as_ref()), arguments.shown)
}
