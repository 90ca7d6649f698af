//! `--probe list`: the probes that this machine has, a line each.

use crate::render;
use std::process::ExitCode;

/// Prints them.
pub fn list() -> anyhow::Result<ExitCode> {
    render::write(&report::probes::list(&lab::probe::list(), render::columns()))?;
    Ok(ExitCode::SUCCESS)
}
