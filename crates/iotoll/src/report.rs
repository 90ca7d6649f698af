//! The verbs that only read: `iotoll report` studies a saved record and prints it again, `iotoll history` says what stored records of one
//! experiment say over time, `iotoll doctor` what this machine can measure.

use crate::arguments::{ONLY_RUNS, Shown};
use crate::failure::{self, bad};
use crate::measure::{self, Earlier};
use crate::series;
use clap::Args;
use lab::calibration::Calibration;
use model::kind::{Envelope, Recorded};
use model::limit::judge;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use verbs::Finding;
use verbs::ftq::FtqRecord;
use verbs::history::Observation;

/// `iotoll report`.
#[derive(Args, Clone, Debug)]
pub struct ReportArguments {
    /// Folder of a saved measurement, or its record.jsonl [default: the last one in iotoll-runs]
    pub record: Option<PathBuf>,
    #[command(flatten)]
    pub earlier: Earlier,
    /// Write the series of a recording into this folder instead of printing it: series.csv, and FTQ's two text files
    #[arg(long, help_heading = "Result", value_name = "DIR", conflicts_with_all = ["stored", "fail_on", "format"])]
    pub series: Option<PathBuf>,
    #[command(flatten)]
    pub shown: Shown,
}

pub fn report(arguments: &ReportArguments) -> anyhow::Result<ExitCode> {
    let path = match &arguments.record {
        Some(path) => path.clone(),
        None => {
            let latest = lab::store::latest(Path::new(lab::store::RUNS))?;
            // Which one it is may surprise.
            failure::complain(&format!("the last record: {}", latest.display()));
            latest
        }
    };
    if let Some(folder) = &arguments.series {
        return write_series(&path, folder);
    }
    (of(&path)?.show)(&path, arguments)
}

/// What can be done with the records of a kind.
struct Row {
    kind: &'static str,
    show: fn(&Path, &ReportArguments) -> anyhow::Result<ExitCode>,
    observe: fn(&Path) -> anyhow::Result<Observation>,
}

/// Every kind of record.
static KINDS: &[Row] = &verbs::kinds!(row);

const fn row<R: Recorded<Finding: Finding>>() -> Row {
    Row { kind: R::KIND.name, show: show::<R>, observe: observe::<R> }
}

/// The row of the kind of the record at `path`.
fn of(path: &Path) -> anyhow::Result<&'static Row> {
    let Envelope { kind, iotoll_version: version, .. } = lab::store::envelope_at(path)?;
    KINDS.iter().find(|row| row.kind == kind).ok_or_else(|| {
        let path = path.display();
        bad(format!("{path}: is of kind '{kind}', which iotoll {version} wrote and this version does not know"))
    })
}

/// Studies a record as far as it goes, compared with an earlier one if there is one, and prints the finding. Limits replace those of the record, and decide how
/// the program ends.
fn show<R: Recorded<Finding: Finding>>(path: &Path, arguments: &ReportArguments) -> anyhow::Result<ExitCode> {
    let (record, cut_off): (R, Option<String>) = lab::store::load_to_show(path)?;
    cut_off.iter().for_each(|why| failure::complain(why));
    let limits = measure::limits::<R>(&arguments.earlier, record.plan())?;
    let stored = measure::stored(arguments.earlier.stored.as_deref(), record.plan())?;
    let is_judged = !limits.is_empty();
    let mut finding = record.study(stored.as_ref());
    let limits = if is_judged { &limits } else { &record.envelope().typed.limits };
    finding.as_mut().limits = judge(limits, |metric| record.at_places(&finding, stored.as_ref(), metric));
    let format = arguments.shown.format;
    if format.is_of_fio() && finding.own_run().is_none() {
        return Err(bad(format!("--format {}: {}: {ONLY_RUNS}", format.name(), path.display())));
    }
    let judged = is_judged.then(|| failure::of_finding(finding.as_ref()));
    measure::print(&finding, arguments.shown, Some(folder_of(path)))?;
    Ok(judged.unwrap_or(ExitCode::SUCCESS))
}

/// What the record at `path` says of each metric, of whatever version of the method it is.
fn observe<R: Recorded>(path: &Path) -> anyhow::Result<Observation> {
    let record: R = lab::store::load_earlier(path)?;
    Ok(verbs::history::observe(path.display().to_string(), &record))
}

/// The folder of a record, which its user may have named by its file.
fn folder_of(path: &Path) -> &Path {
    let is_record = path.file_name().is_some_and(|name| name == lab::store::RECORD);
    let folder = path.parent().filter(|folder| is_record && !folder.as_os_str().is_empty());
    folder.unwrap_or(path)
}

/// Writes the series of a recording.
fn write_series(path: &Path, folder: &Path) -> anyhow::Result<ExitCode> {
    let record: FtqRecord = lab::store::load(path)?;
    std::fs::create_dir_all(folder)
        .map_err(|error| lab::Error::file(folder, "making the folder of the series", error))?;
    series::write(folder, &record)?;
    Ok(ExitCode::SUCCESS)
}

/// `iotoll history`.
#[derive(Args, Clone, Debug)]
pub struct HistoryArguments {
    /// Records, or folders with records at any depth; those of a path come before those of the next [default: iotoll-runs]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub shown: Shown,
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
        match of(path).and_then(|row| (row.observe)(path)) {
            Ok(mut observation) => {
                observation.place = paths.iter().position(|given| path.starts_with(given)).unwrap_or(0);
                observations.push(observation);
            }
            Err(error) => failure::complain(&format!("left out: {error}")),
        }
    }
    let finding = verbs::history::study(observations);
    if finding.experiments.is_empty() {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(bad(format!(
            "history: no two of the {} records in {} were made by the same command line; measure again, or give other folders",
            records.len(),
            names.join(", ")
        )));
    }
    measure::print(&finding, arguments.shown, None)?;
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
    measure::print(&diagnosis, shown, None)?;
    Ok(ExitCode::SUCCESS)
}
