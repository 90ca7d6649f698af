//! `iotoll ftq`: records a worker in quanta of time, saves the record while it grows, studies it and prints the finding.

use crate::arguments::{self, Output, SessionArguments};
use crate::failure::{BadInput, bad};
use crate::measure::{Asked, Earlier, Measurement, Services, measure};
use crate::series;
use clap::Args;
use lab::session::Settings;
use model::plan::parse::files_and_options;
use model::plan::{Access, Plan, Settings as PlanSettings, parse};
use model::probe::Probe;
use model::unit::Nanos;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use verbs::ftq::measure::Quanta;
use verbs::ftq::record::{MOST_QUANTA, Worker};
use verbs::ftq::{FtqPlan, FtqRecord, record};

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
    arguments::within(text, shortest, LONGEST_QUANTUM, "10us to 1s").map(nanos)
}

fn duration(text: &str) -> Result<Nanos, String> {
    arguments::within(text, SHORTEST, LONGEST, "10ms to 24h").map(nanos)
}

fn nanos(duration: Duration) -> Nanos {
    Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// Length of a recording of a worker of iotoll: that of the seed's figures.
const DURATION: Nanos = Nanos(27_000_000_000);
/// Longest recording of another process, unless `--duration` says more.
const FOREIGN_DURATION: Nanos = Nanos(3_600_000_000_000);
/// Probes that are read if the machine has them: with them, most stalls of a writer get a cause. No tracepoint, because
/// reading one interrupts every CPU, also the worker's.
const DEFAULT_PROBES: &str = "dirty,writeback,worker.sleeps,worker.off_cpu_time,worker.run_delay";
/// Size of a file that is made for a writer without `--size`.
const SIZE: &str = "1g";

pub fn ftq(arguments: &FtqArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    let asked = Asked::of(words, &arguments.output, &arguments.earlier, &arguments.session)?;
    let plan = plan(arguments, &asked.services)?;
    asked.inputs.note_command(&arguments.command);
    let access = direction(arguments, &plan.worker)?;
    let optional_probes = arguments.session.default_probes(DEFAULT_PROBES);
    let work = Quanta { plan: &plan, optional_probes, count: arguments.count.clone(), access };
    let ftq = Measurement {
        shown_plan: if arguments.parse_only { Some(&plan) } else { None },
        settings: Settings { probes: arguments.session.probes(), ..Settings::default() },
        write_beside: &|folder, record, _| series::write(folder, record),
        files: &format!(", {}", series::CSV),
        after_failure: &|record: &FtqRecord| {
            Some(if record.chunks.is_empty() { "; no reading is kept" } else { "; the series is kept up to there" })
        },
        ..Measurement::growing("ftq", &plan)
    };
    measure(ftq, asked, |settings, created, observer| work.measure(settings, created, observer))
}

fn plan(arguments: &FtqArguments, services: &Services) -> anyhow::Result<FtqPlan> {
    let foreign = arguments.is_foreign();
    let most = Nanos(arguments.quantum.0.saturating_mul(MOST_QUANTA));
    let duration = match arguments.duration {
        Some(duration) if duration > most => {
            let quanta = duration.0 / arguments.quantum.0.max(1);
            return Err(bad(format!(
                "--duration: {quanta} quanta are more than the {MOST_QUANTA} that a recording may have; use a longer --quantum, \
                 or record for at most {:.0} s",
                most.seconds().floor()
            )));
        }
        Some(duration) => duration,
        None if foreign => FOREIGN_DURATION.min(most),
        None => DURATION,
    };
    if duration < arguments.quantum {
        return Err(bad("--duration: is shorter than --quantum"));
    }
    let worker = match (arguments.pid, arguments.cpu) {
        (Some(process), _) => Worker::Process(process),
        (None, true) => Worker::Cpu,
        (None, false) if !arguments.command.is_empty() => {
            Worker::Command(services.names().fill_in_all(&arguments.command).map_err(BadInput)?)
        }
        (None, false) => Worker::Job(Box::new(job(arguments, services, duration)?)),
    };
    Ok(FtqPlan {
        worker,
        quantum: arguments.quantum,
        duration,
        recorder_cpu: arguments.recorder_cpu,
        worker_cpu: arguments.worker_cpu,
        seed: arguments.seed,
    })
}

/// The job of the worker: fio's options, on the target.
fn job(arguments: &FtqArguments, services: &Services, duration: Nanos) -> anyhow::Result<Plan> {
    let names = services.names();
    let words = names.fill_in_all(&arguments.job).map_err(BadInput)?;
    let (files, options) = files_and_options(&words);
    let target = arguments.target.as_ref().map(|text| names.fill_in(text)).transpose().map_err(BadInput)?;
    if let Some(file) = files.first() {
        return Err(bad(format!(
            "'{file}': ftq takes no job file; give --target {file}, or put -- before a command that it shall watch"
        )));
    }
    let given = |name: &str| options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
    let mut flags = vec!["--name=ftq".to_owned()];
    match &target {
        Some(uri) if ["nbd://", "nbd+unix://"].iter().any(|scheme| uri.starts_with(scheme)) => {
            flags.extend(["--ioengine=nbd".to_owned(), format!("--uri={uri}")]);
        }
        Some(file) => flags.push(format!("--filename={}", file.replace(':', "\\:"))),
        None if ["filename", "uri", "ioengine"].iter().any(|name| given(name).is_some()) => {}
        None => {
            return Err(bad("ftq: no worker; give --target FILE and --rw=write, --cpu, --pid PID, or -- COMMAND"));
        }
    }
    let writes = given("rw").or(given("readwrite")).is_some_and(|rw| rw.contains("write") || rw.contains("rw"));
    if let Some(file) = target.as_deref().filter(|_| writes && given("size").is_none())
        && !file.contains("://")
        && !Path::new(file).exists()
    {
        flags.push(format!("--size={SIZE}"));
    }
    flags.push(format!("--randseed={}", arguments.seed));
    flags.extend(options.iter().map(|option| format!("--{option}")));
    // The options of the recording come last: the recording ends the job.
    flags.extend(["--time_based=1".to_owned(), format!("--runtime={}us", duration.0.div_ceil(1000))]);
    let settings = PlanSettings { device_writes: arguments.allow_device_write, ..PlanSettings::default() };
    let plan = parse::flags(&flags, &settings)?;
    match plan.only_for_run() {
        Some(why) => Err(bad(format!("ftq: {why}"))),
        None => Ok(plan),
    }
}

/// The direction of a foreign process that counts. Other options of a job say nothing to a worker that has none.
fn direction(arguments: &FtqArguments, worker: &Worker) -> anyhow::Result<Access> {
    let mut access = Access::ReadWrite;
    if matches!(worker, Worker::Job(_)) {
        return Ok(access);
    }
    let no_job = |odd: &str| bad(format!("'{odd}': is an option of a job, and only --target has one; leave it out"));
    let (files, options) = files_and_options(&arguments.job);
    for option in &options {
        let value = option.strip_prefix("rw=").or(option.strip_prefix("readwrite="));
        match value.filter(|_| arguments.is_foreign()) {
            Some("rw" | "readwrite") => access = Access::ReadWrite,
            Some("read") => access = Access::Read,
            Some("write") => access = Access::Write,
            Some(other) => {
                return Err(bad(format!("--rw={other}: a process is counted by read, write or rw; give one of them")));
            }
            None => return Err(no_job(&format!("--{option}"))),
        }
    }
    files.first().map_or(Ok(access), |file| Err(no_job(file)))
}
