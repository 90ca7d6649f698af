//! `--probe list`: the probes that this machine has, one per line.

use crate::stdout;
use std::process::ExitCode;

pub fn list() -> anyhow::Result<ExitCode> {
    stdout::write(&report::probes::list(&lab::probe::list(), stdout::columns()))?;
    Ok(ExitCode::SUCCESS)
}
