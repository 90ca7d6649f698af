//! `iotoll guardian`, which undoes what iotoll did when that is killed; and what is put back of those that were killed with it.

use crate::{failure, render};
use lab::guardian::Guardian;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::process::ExitCode;
use std::sync::Arc;

/// The verb, which iotoll starts for itself.
pub fn serve() -> anyhow::Result<ExitCode> {
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        // Caught and forgotten. Ignored, they would be ignored too by the commands that are run here.
        signal_hook::flag::register(signal, Arc::default())?;
    }
    let ready = || render::write("\n").map_err(std::io::Error::other);
    lab::guardian::serve(std::io::stdin().lock(), ready)?;
    Ok(ExitCode::SUCCESS)
}

/// Puts back what those left behind that were killed together with their guardians, and says so.
pub fn put_back() {
    lab::guardian::put_back().iter().for_each(|line| failure::complain(line));
}

/// The same; then whom to hand over what this one is going to do.
pub fn guardian(words: &[String]) -> Guardian {
    put_back();
    // Not its path: what lies there may be another program by then.
    Guardian::of("/proc/self/exe".into(), words.to_vec())
}
