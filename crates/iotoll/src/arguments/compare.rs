//! `iotoll compare`: the command line.

use super::value::{self, List, by};
use super::{EventArguments, MeterArguments, Output, PlaceArguments, ProfileArguments, SessionArguments};
use clap::Args;
use model::experiment::{Axis, Cache, EndSignal, Metric, Rules, Setting, Slices, work_counter};
use model::limit::Limit;
use std::path::PathBuf;

/// `iotoll compare`.
#[derive(Args, Clone, Debug)]
pub struct CompareArguments {
    /// The job of all arms, as for run: fio's options as flags, or a job file and options that override it; or an
    /// experiment file
    #[arg(value_name = "JOB.fio | EXPERIMENT.toml | --OPTION=VALUE")]
    pub job: Vec<String>,
    /// Options of the baseline only: 'bs=4k iodepth=8' [default: the job unchanged]
    #[arg(long, help_heading = "Arms", value_name = "OPTIONS", value_parser = value::options, allow_hyphen_values = true)]
    pub baseline: Option<List<String>>,
    /// Options of a candidate; repeat the flag for more candidates
    #[arg(long, help_heading = "Arms", value_name = "OPTIONS", value_parser = value::options, allow_hyphen_values = true)]
    pub candidate: Vec<List<String>>,
    /// Command of the baseline; a shell runs it if |, >, ; or && stand between its words
    #[arg(long, help_heading = "Arms", value_name = "COMMAND", value_parser = value::command)]
    pub baseline_cmd: Option<List<String>>,
    /// Command of a candidate; repeat the flag for more candidates
    #[arg(long, help_heading = "Arms", value_name = "COMMAND", value_parser = value::command)]
    pub candidate_cmd: Vec<List<String>>,
    /// Measure the candidate under this setting: sysctl:NAME=VALUE or file:/sys/…=VALUE; the previous value is restored (net.* is that of iotoll's own network namespace)
    #[arg(long, help_heading = "Arms", value_name = "SETTING", value_parser = by(Setting::parse))]
    pub candidate_set: Vec<Setting>,
    /// Run this shell command to switch something on for the candidate
    #[arg(long, help_heading = "Arms", value_name = "COMMAND", requires = "candidate_cleanup")]
    pub candidate_setup: Option<String>,
    /// Run this shell command to switch it off again; it runs even after a failure
    #[arg(long, help_heading = "Arms", value_name = "COMMAND", requires = "candidate_setup")]
    pub candidate_cleanup: Option<String>,
    /// Page cache state of the jobs' files at the start of each slice: warm (read in first and kept), cold (dropped
    /// before each slice), as-is [default: warm where the files fit into memory; a job's own invalidate= takes
    /// precedence]
    #[arg(long, help_heading = "Measurement", value_name = "warm|cold|as-is", value_parser = by(Cache::parse))]
    pub cache: Option<Cache>,
    #[command(flatten)]
    pub meters: MeterArguments,
    #[command(flatten)]
    pub profile: ProfileArguments,
    #[command(flatten)]
    pub events: EventArguments,
    #[command(flatten)]
    pub place: PlaceArguments,
    #[command(flatten)]
    pub session: SessionArguments,
    /// Continue the experiment in this folder, whose arms are boots: measure the arm that is booted now
    #[arg(long, help_heading = "Boots", value_name = "DIR", conflicts_with_all = ["job", "ios", "bytes", "baseline", "candidate", "baseline_cmd", "candidate_cmd",
        "candidate_set", "candidate_setup", "candidate_cleanup", "cache", "setup", "prepare", "cleanup", "place", "service", "probe", "aa", "sweep", "target", "margin", "precision", "budget",
        "hang_timeout", "slice", "slices", "count", "end_signal", "candidate_fresh", "stored", "fail_on", "seed", "ignore_unknown", "allow_device_write", "parse_only", "meters", "profile", "events", "out",
        "no_save", "command"])]
    pub resume: Option<PathBuf>,
    /// Measure an arm again even if the machine was not rebooted in between; a warning reports it
    #[arg(long, help_heading = "Boots")]
    pub same_boot: bool,
    /// Compare the baseline with itself, to see how small a change this machine can detect, and how fast
    #[arg(long, help_heading = "Arms")]
    pub aa: bool,
    /// Vary an option of the job, or a {NAME} in the command and in --prepare: bs=4k,64k,1m; repeat the flag for a grid
    #[arg(long, help_heading = "Arms", value_name = "NAME=A,B,…", value_parser = value::axis)]
    pub sweep: Vec<Axis>,
    /// Stop when the intervals of these metrics are narrow enough [default: cycles_per_io,iops]
    #[arg(long, help_heading = "Rules", value_name = "METRICS", value_delimiter = ',', value_parser = value::metric)]
    pub target: Vec<Metric>,
    /// Ignore changes smaller than this [default: 3%]
    #[arg(long, help_heading = "Rules", value_name = "PERCENT", value_parser = by(Rules::parse_percent))]
    pub margin: Option<f64>,
    /// Stop when every interval is at most this wide to either side [default: a third of the margin]
    #[arg(long, help_heading = "Rules", value_name = "PERCENT", value_parser = by(Rules::parse_percent))]
    pub precision: Option<f64>,
    /// Stop after this time, but measure at least two rounds [default: 60s]
    #[arg(long, help_heading = "Rules", value_name = "TIME", value_parser = by(Rules::parse_time))]
    pub budget: Option<f64>,
    /// Treat a command, worker or toggle as hung after this time [default: twice the budget and 60s]
    #[arg(long, help_heading = "Rules", value_name = "TIME", value_parser = by(Rules::parse_time))]
    pub hang_timeout: Option<f64>,
    /// Length of a slice of a job, 1ms to 60s; use longer slices for a setting that takes a while to have its effect
    /// [default: by the load]
    #[arg(long, help_heading = "Turns", value_name = "TIME", value_parser = by(Rules::parse_slice))]
    pub slice: Option<f64>,
    /// Let commands take turns, one thawed and all others frozen: auto (if every command lives for some seconds), off (each
    /// slice is a whole execution), or the length of a slice, as 50ms [default: auto, with slices of 50ms]
    #[arg(long, help_heading = "Turns", value_name = "auto|off|TIME", value_parser = by(Slices::parse))]
    pub slices: Option<Slices>,
    /// What counts the I/Os of commands (of whole executions, only a counter of the machine: the last three): auto, io_uring, task:both, task:read, task:write, task:storage,
    /// tcp, syscalls, block:DEVICE, net:INTERFACE, or a probe [default: auto, by a rehearsal]
    #[arg(long, help_heading = "Turns", value_name = "COUNTER", value_parser = by(work_counter::parse))]
    pub count: Option<String>,
    /// I/Os that every command does in a whole execution; each slice is one
    #[arg(long, help_heading = "Turns", value_name = "N", value_parser = value::amount, conflicts_with = "count")]
    pub ios: Option<u64>,
    /// Bytes that every command moves in a whole execution; suffixes as in fio: 4k, 1g
    #[arg(long, help_heading = "Turns", value_name = "N", value_parser = value::amount, conflicts_with = "count")]
    pub bytes: Option<u64>,
    /// End a command that takes turns with this signal, so that it reports what it did: INT, TERM, HUP, QUIT, USR1, USR2 or KILL
    /// [default: INT]
    #[arg(long, help_heading = "Turns", value_name = "SIGNAL", value_parser = by(EndSignal::parse))]
    pub end_signal: Option<EndSignal>,
    /// Compare whole executions, because the candidate's setting takes effect only in a fresh process
    #[arg(long, help_heading = "Arms", requires = "candidate_set")]
    pub candidate_fresh: bool,
    /// Compare with an earlier comparison that has the same baseline (its folder, or record.jsonl), to separate the
    /// change from the machine
    #[arg(long, help_heading = "Result", value_name = "DIR")]
    pub stored: Option<PathBuf>,
    /// Exit with 3 if a change exceeds this limit, with 4 if that is undecided: 'cycles_per_io > +3%'
    #[arg(long, help_heading = "Rules", value_name = "LIMIT", value_parser = by(Metric::limit))]
    pub fail_on: Vec<Limit>,
    /// Seed of the order of slices [default: a new one each time; --full shows it]
    #[arg(long, help_heading = "Rules", value_name = "N")]
    pub seed: Option<u64>,
    /// Warn about unknown options of the job instead of refusing them
    #[arg(long, help_heading = "Job")]
    pub ignore_unknown: bool,
    /// Allow writes to a block device. Mounted or partitioned devices are always refused
    #[arg(long, help_heading = "Job")]
    pub allow_device_write: bool,
    /// Print what would be measured, and exit; with --format json as data
    #[arg(long, help_heading = "Job")]
    pub parse_only: bool,
    #[command(flatten)]
    pub output: Output,
    /// The command of all arms; {NAME} in it is replaced by the value of a sweep
    #[arg(value_name = "COMMAND", last = true)]
    pub command: Vec<String>,
}
