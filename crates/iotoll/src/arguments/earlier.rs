//! `--stored` and `--fail-on`: what a result is judged by.

use clap::Args;
use std::path::PathBuf;

/// What a result is judged by: an earlier record of the same kind, and limits.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Result")]
pub struct Earlier {
    /// Compare with an earlier record (its folder, or record.jsonl), and report what differs between then and now
    #[arg(long, value_name = "DIR")]
    pub stored: Option<PathBuf>,
    /// Exit with 3 if this limit is exceeded for sure, with 4 if that is undecided: 'METRIC > 30k' on a value, 'METRIC > +3%' on its
    /// change since --stored (of guests, else against the first arm); an unknown METRIC lists all
    #[arg(long, value_name = "LIMIT")]
    pub fail_on: Vec<String>,
}
