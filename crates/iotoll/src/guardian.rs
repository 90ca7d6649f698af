//! `iotoll guardian`: undoes what iotoll changed if iotoll is killed. Also restores what remains if both were killed.

use crate::{failure, stdout};
use lab::guardian::Guardian;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::process::ExitCode;
use std::sync::Arc;

/// The verb; iotoll starts it itself.
pub fn serve() -> anyhow::Result<ExitCode> {
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        // Catch the signals and do nothing. Ignored signals would stay ignored in the commands that the guardian runs.
        signal_hook::flag::register(signal, Arc::default())?;
    }
    let ready = || stdout::write("\n").map_err(std::io::Error::other);
    lab::guardian::serve(std::io::stdin().lock(), ready)?;
    Ok(ExitCode::SUCCESS)
}

/// Restores what earlier runs left behind that were killed together with their guardians, and reports it.
pub fn put_back() {
    lab::guardian::put_back().iter().for_each(|line| failure::complain(line));
}

/// The same; then returns the guardian of this run.
pub fn guardian(words: &[String]) -> Guardian {
    put_back();
    // Not the path: another program may replace the file later.
    Guardian::of("/proc/self/exe".into(), words.to_vec())
}
