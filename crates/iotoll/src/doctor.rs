//! `iotoll doctor`.

use crate::arguments::DoctorArguments;
use crate::render;
use lab::meter::{MeterSet, Selection};
use lab::run::Calibration;
use report::Format;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Runs the verb.
pub fn doctor(arguments: &DoctorArguments) -> anyhow::Result<ExitCode> {
    let root = Path::new("/");
    let calibration = Calibration::begin();
    let meters = MeterSet::open(Selection::All)?;
    std::thread::sleep(Duration::from_millis(50));
    let (hertz, source) = calibration.end();
    let host = lab::host::read(root, hertz, &source);
    let diagnosis = lab::doctor::examine(root, host, meters.statuses().to_vec());
    render::write(&match arguments.format {
        Format::Json => report::doctor::json(&diagnosis),
        // The command line lets no other through than the table.
        _ => report::doctor::terminal(&diagnosis, render::ink(), render::columns()),
    })?;
    Ok(ExitCode::SUCCESS)
}
