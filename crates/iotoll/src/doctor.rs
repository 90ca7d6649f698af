//! `iotoll doctor`.

use crate::arguments::Shown;
use crate::stdout;
use lab::calibration::Calibration;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

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
