//! The verbs that only read: `iotoll report` studies a saved record and prints it again, `iotoll history` says what stored records of one
//! experiment say over time, `iotoll doctor` what this machine can measure.

use crate::arguments::{HistoryArguments, ONLY_RUNS, ReportArguments, Shown};
use crate::failure::{self, BadInput, bad};
use crate::kinds;
use crate::series;
use crate::stdout;
use lab::calibration::Calibration;
use model::envelope::Kind;
use model::ftq::FtqRecord;
use model::kind::Recorded;
use model::record::Record;
use report::Annotation;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

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
    if let Some(function) = &arguments.annotate {
        return annotate(&path, function, arguments);
    }
    let studied = kinds::study_at(&path, &arguments.earlier)?;
    if let Some(why) = studied.cut_off {
        failure::complain(&why);
    }
    let format = arguments.shown.format;
    if format.is_of_fio() && studied.finding.own_run().is_none() {
        return Err(bad(format!("--format {}: {}: {ONLY_RUNS}", format.name(), path.display())));
    }
    stdout::print(&*studied.finding, arguments.shown, Some(folder_of(&path)))?;
    Ok(studied.judged.unwrap_or(ExitCode::SUCCESS))
}

/// The folder of a record, which its user may have named by its file.
fn folder_of(path: &Path) -> &Path {
    let is_record = path.file_name().is_some_and(|name| name == lab::store::RECORD);
    let folder = path.parent().filter(|folder| is_record && !folder.as_os_str().is_empty());
    folder.unwrap_or(path)
}

/// Prints the instructions of a function.
fn annotate(path: &Path, function: &str, arguments: &ReportArguments) -> anyhow::Result<ExitCode> {
    let kind = lab::store::kind_at(path)?;
    if kind != Kind::Cost {
        let (path, noun) = (path.display(), kind.noun());
        return Err(bad(format!(
            "--annotate: {path} is the record of {noun}; only run and cost sample functions (--profile)"
        )));
    }
    let (record, cut_off): (Record, _) = lab::store::load_to_show(path)?;
    if let Some(why) = cut_off {
        failure::complain(&why);
    }
    let finding = record.study(None);
    let annotation = Annotation::of(finding, function).map_err(|why| BadInput(format!("--annotate: {why}")))?;
    stdout::print(&annotation, arguments.shown.in_full(), None)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the series of a recording.
fn write_series(path: &Path, folder: &Path) -> anyhow::Result<ExitCode> {
    let kind = lab::store::kind_at(path)?;
    if kind != Kind::Ftq {
        return Err(bad(format!(
            "--series: {} is the record of {}; only a recording (iotoll ftq) has a series",
            path.display(),
            kind.noun()
        )));
    }
    let record: FtqRecord = lab::store::load(path)?;
    std::fs::create_dir_all(folder)
        .map_err(|error| lab::Error::file(folder, "making the folder of the series", error))?;
    series::write(folder, &record)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the verb. A record that cannot be read is named and left out.
pub fn history(arguments: &HistoryArguments) -> anyhow::Result<ExitCode> {
    let paths = match arguments.paths.as_slice() {
        [] => vec![PathBuf::from(lab::store::RUNS)],
        paths => paths.to_vec(),
    };
    let records = lab::store::records_below(&paths)?;
    let mut observations = Vec::new();
    for path in &records {
        match kinds::observe_at(path) {
            Ok(observation) => observations.push(observation),
            Err(error) => failure::complain(&format!("left out: {error}")),
        }
    }
    let finding = model::history::study(observations);
    if finding.experiments.is_empty() {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(bad(format!(
            "history: no two of the {} records in {} were made by the same command line; measure again, or give other folders",
            records.len(),
            names.join(", ")
        )));
    }
    stdout::print(&finding, arguments.shown, None)?;
    Ok(ExitCode::SUCCESS)
}

/// `iotoll doctor`.
pub fn doctor(shown: Shown) -> anyhow::Result<ExitCode> {
    let root = Path::new("/");
    let calibration = Calibration::begin();
    std::thread::sleep(Duration::from_millis(50));
    let (hertz, source) = calibration.end();
    let host = lab::host::read(root, hertz, &source);
    let diagnosis = lab::doctor::examine(root, host)?;
    stdout::print(&diagnosis, shown, None)?;
    Ok(ExitCode::SUCCESS)
}
