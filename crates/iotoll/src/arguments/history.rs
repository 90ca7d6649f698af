//! `iotoll history`.

use super::Shown;
use clap::Args;
use std::path::PathBuf;

/// `iotoll history`.
#[derive(Args, Clone, Debug)]
pub struct HistoryArguments {
    /// Records, or folders with records at any depth [default: iotoll-runs]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub shown: Shown,
}
