//! Flags: groups that several verbs take, those of verbs that have few, and what the help says of all.

pub mod fio_flags;
pub mod help;
mod measuring;
mod shown;
pub mod value;

pub use fio_flags::{FioFlags, ONLY_RUNS};
pub use measuring::{JobArguments, Measuring, MeterArguments, Observed, SessionArguments};
pub use shown::{Earlier, Output, Shown, ink, is_dumb};
pub use value::{List, SHELLS};

use clap::{Args, ValueEnum};
use lab::command::Counter;
use std::path::PathBuf;
use std::str::FromStr;

/// The exit statuses of all verbs.
pub const AFTER_HELP: &str = "Exit status: 0 done, 1 failed, 2 bad usage or bad input, 3 a limit of --fail-on was \
                          exceeded, 4 that is undecided, 130 interrupted; `cost` exits with the status of its \
                          command.";

/// `iotoll run`. As in fio, a flag may be repeated.
#[derive(Args, Clone, Debug)]
#[command(args_override_self = true)]
pub struct RunArguments {
    /// fio's options as flags (--rw=randread --filename=f …), a job file and options that override it, or an experiment file of any kind
    #[arg(
        value_name = "JOB.fio … | - | EXPERIMENT.toml | --OPTION=VALUE",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub job: Vec<String>,
    #[command(flatten)]
    pub choices: JobArguments,
    /// Run only the job of this section of the job file; repeat the flag for more
    #[arg(long, help_heading = "Job", value_name = "NAME")]
    pub section: Vec<String>,
    /// Refuse jobs that write or trim
    #[arg(long, help_heading = "Job")]
    pub readonly: bool,
    /// Seed of the random offsets of every job (fio's randseed)
    #[arg(long, help_heading = "Job", value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub measuring: Measuring,
    #[command(flatten)]
    pub earlier: Earlier,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub fio: FioFlags,
}

/// `iotoll cost`.
#[derive(Args, Clone, Debug)]
pub struct CostArguments {
    /// I/Os that the command does in each execution
    #[arg(long, help_heading = "Count", value_name = "N", value_parser = value::amount)]
    pub ios: Option<u64>,
    /// Bytes that the command moves in each execution; suffixes as in fio: 4k, 1g
    #[arg(long, help_heading = "Count", value_name = "N", value_parser = value::amount)]
    pub bytes: Option<u64>,
    /// Count I/Os with a counter of the machine: block:vda, net:eth0, or a probe that increases
    #[arg(long, help_heading = "Count", value_name = "COUNTER", value_parser = value::by(Counter::from_str), conflicts_with_all = ["ios", "bytes"])]
    pub count: Option<Counter>,
    /// Execute the command N times and derive the interval from the spread
    #[arg(long, help_heading = "Command", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeat: u32,
    /// Do not show what the command prints on standard output
    #[arg(long, help_heading = "Command")]
    pub no_output: bool,
    #[command(flatten)]
    pub measuring: Measuring,
    #[command(flatten)]
    pub earlier: Earlier,
    #[command(flatten)]
    pub output: Output,
    /// The command and its arguments; fio and iperf3 report their I/O count themselves
    #[arg(value_name = "COMMAND", last = true)]
    pub command: Vec<String>,
}

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

/// `iotoll history`.
#[derive(Args, Clone, Debug)]
pub struct HistoryArguments {
    /// Records, or folders with records at any depth; those of a path come before those of the next [default: iotoll-runs]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub shown: Shown,
}

/// What `iotoll generate` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Generated {
    /// A man page for each verb
    Man,
    /// A completion script for each shell
    Completions,
    /// The reference, as Markdown
    Reference,
}

/// Verbs that take a job.
pub const JOB_VERBS: [&[&str]; 4] = [&["run"], &["compare"], &["ftq"], &["guest", "run"]];
