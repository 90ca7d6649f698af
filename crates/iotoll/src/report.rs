//! `iotoll report`: a saved record is studied and printed again.

use crate::arguments::ReportArguments;
use crate::failure::{self, BadInput};
use crate::kinds;
use crate::saving::series;
use crate::stdout;
use model::envelope::Kind;
use model::ftq::FtqRecord;
use std::path::Path;
use std::process::ExitCode;

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
    if let Some(folder) = &arguments.series {
        return write_series(&path, folder);
    }
    let studied = kinds::study_at(&path, &arguments.earlier)?;
    if let Some(why) = studied.cut_off {
        failure::complain(&why);
    }
    stdout::print(&*studied.finding, arguments.shown)?;
    Ok(studied.judged.unwrap_or(ExitCode::SUCCESS))
}

/// Writes the series of a recording.
fn write_series(path: &Path, folder: &Path) -> anyhow::Result<ExitCode> {
    let kind = lab::store::kind_at(path)?;
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
