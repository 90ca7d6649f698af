//! `iotoll ftq`: the command line.

use super::{Earlier, Output, SessionArguments, value};
use clap::Args;
use model::ftq::record;
use model::probe::Probe;
use model::unit::Nanos;
use std::time::Duration;

/// `iotoll ftq`.
#[derive(Args, Clone, Debug)]
pub struct FtqArguments {
    /// Options of the worker's job as flags, as for run: --rw=write --bs=4k --direct=1 …
    #[arg(value_name = "--OPTION=VALUE")]
    pub job: Vec<String>,
    /// File or device that the worker reads or writes, or nbd://HOST/EXPORT; a file that --rw writes is made if it is missing
    /// (1 GiB, or --size)
    #[arg(long, help_heading = "Worker", value_name = "FILE|URI", conflicts_with_all = ["pid", "cpu", "command"])]
    pub target: Option<String>,
    /// Watch this process, without touching it; --rw=read or --rw=write counts one direction only
    #[arg(long, help_heading = "Worker", value_name = "PID", conflicts_with_all = ["cpu", "command"])]
    pub pid: Option<u32>,
    /// Compute instead of doing I/O: the noise of the machine itself, as FTQ measures it
    #[arg(long, help_heading = "Worker", conflicts_with = "command")]
    pub cpu: bool,
    /// Read the worker and all probes once per this time, 10us to 1s
    #[arg(long, help_heading = "Recording", value_name = "TIME", default_value = "440us", value_parser = quantum)]
    pub quantum: Nanos,
    /// Length of the recording [default: 27s; with --pid or a command until it ends, at most 1h]
    #[arg(long, help_heading = "Recording", value_name = "TIME", value_parser = duration)]
    pub duration: Option<Nanos>,
    /// Count what the worker does by this probe, a counter, instead of the bytes of its I/O
    #[arg(long, help_heading = "Recording", value_name = "PROBE", value_parser = Probe::parse)]
    pub count: Option<Probe>,
    /// CPU of the recorder [default: the last one that is allowed]
    #[arg(long, help_heading = "Recording", value_name = "CPU")]
    pub recorder_cpu: Option<u32>,
    /// CPU of the worker [default: the first one that is allowed; a command runs where the scheduler decides]
    #[arg(long, help_heading = "Recording", value_name = "CPU")]
    pub worker_cpu: Option<u32>,
    /// Parse everything, print the plan, and exit
    #[arg(long, help_heading = "Job")]
    pub parse_only: bool,
    /// Allow writes to a block device. Mounted or partitioned devices are always refused
    #[arg(long, help_heading = "Job")]
    pub allow_device_write: bool,
    /// Seed of the random offsets of the worker (fio's randseed)
    #[arg(long, help_heading = "Job", value_name = "N", default_value_t = 1, hide_default_value = true)]
    pub seed: u64,
    #[command(flatten)]
    pub session: SessionArguments,
    #[command(flatten)]
    pub earlier: Earlier,
    #[command(flatten)]
    pub output: Output,
    /// Start this command, watch it, and end it with the recording
    #[arg(value_name = "COMMAND", last = true)]
    pub command: Vec<String>,
}

impl FtqArguments {
    /// Whether the worker is a process that is not iotoll's.
    pub fn is_foreign(&self) -> bool {
        self.pid.is_some() || !self.command.is_empty()
    }
}

/// A quantum above this shows no more than a run's windows.
const LONGEST_QUANTUM: Duration = Duration::from_secs(1);
/// A recording of less shows nothing.
const SHORTEST: Duration = Duration::from_millis(10);
/// A day. The number of quanta is limited too.
const LONGEST: Duration = Duration::from_secs(86_400);

fn quantum(text: &str) -> Result<Nanos, String> {
    let shortest = Duration::from_nanos(record::SHORTEST_QUANTUM.0);
    value::within(text, shortest, LONGEST_QUANTUM, "10us to 1s").map(nanos)
}

fn duration(text: &str) -> Result<Nanos, String> {
    value::within(text, SHORTEST, LONGEST, "10ms to 24h").map(nanos)
}

fn nanos(duration: Duration) -> Nanos {
    Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
