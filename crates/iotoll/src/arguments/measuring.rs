//! What several verbs that measure on this machine take: meters, probes, a place, services, shell commands around. Each flag has its
//! one text here.

use super::{List, value};
use clap::Args;
use lab::meter::Selection;
use lab::session::Settings;
use model::events::Wanted;
use model::experiment::Around;
use model::placement::Place;
use model::plan::service::ServicePlan;
use model::probe::Probe;
use std::time::Duration;

/// Meters, and events per I/O.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Measurement")]
pub struct MeterArguments {
    /// Use only these meters, comma-separated: idle (all idle clocks), timer_list, proc_stat, soaker, sampler, accounts, thread,
    /// pmu, all [default: the meters that do not disturb the workload, and the accounts of run and cost]
    #[arg(long, value_name = "METERS", default_value = "default", hide_default_value = true, value_parser = value::selection)]
    pub meters: Selection,
    /// Count these events of the kernel per I/O, in windows or rounds of their own: tracepoints (sched:sched_waking, block:*), system calls
    /// (syscalls:pread64), or groups of them: default, syscalls, sched, ipi, timer, mm, alloc, block, fs, io_uring, net, dma, hw (counters
    /// of the hardware), none; needs the right to load BPF programs [default: default, if --meters is not given]
    #[arg(long, value_name = "EVENTS", value_parser = Wanted::parse_list)]
    pub events: Option<List<Wanted>>,
}

/// What every verb that measures on this machine takes: what is read beside the measurement, and what surrounds it.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Measurement")]
pub struct SessionArguments {
    /// Read these kernel counters and gauges too, and report their rates and their increase per I/O: dirty,
    /// net.eth0.rx_bytes, vmstat.NAME, counter:file:PATH:PATTERN…; NAME=PROBE gives one a name of yours; 'list' prints the
    /// names that this machine has; 'none' leaves out those that are read by default (ftq: dirty, writeback, worker.sleeps,
    /// worker.off_cpu_time, worker.run_delay; blast: softirqs.net_rx, softirqs.net_tx)
    #[arg(long = "probe", value_name = "[NAME=]PROBE,…", value_parser = value::probes)]
    probe: Vec<value::Probes>,
    /// Start a server for the measurement, and end it after: 'server=iotoll serve --listen 127.0.0.1:{port}'; options, commands
    /// and jobs refer to it as {server.uri}, {server.port}, {server.socket} and {server.dir}
    #[arg(long, value_name = "NAME=COMMAND", value_parser = ServicePlan::parse)]
    pub service: Vec<ServicePlan>,
    /// Run this shell command once, before anything else
    #[arg(long, help_heading = "Shell", value_name = "COMMAND")]
    pub setup: Option<String>,
    /// Run this shell command, unmeasured, before each phase (run), execution of a command (cost, compare), recording (ftq) or
    /// round (blast)
    #[arg(long, help_heading = "Shell", value_name = "COMMAND")]
    pub prepare: Option<String>,
    /// Run this shell command once, after everything else, also after a failure or an interruption
    #[arg(long, help_heading = "Shell", value_name = "COMMAND")]
    pub cleanup: Option<String>,
}

impl SessionArguments {
    /// The probes of all flags.
    pub fn probes(&self) -> Vec<Probe> {
        let of = |probes: &value::Probes| match probes {
            value::Probes::List | value::Probes::None => Vec::new(),
            value::Probes::Of(probes) => probes.clone(),
        };
        self.probe.iter().flat_map(of).collect()
    }

    /// The probes that a verb reads by default, but for names that the user gave; none with 'none'.
    pub fn default_probes(&self, names: &str) -> Vec<Probe> {
        if self.probe.iter().any(|probes| matches!(probes, value::Probes::None)) {
            return Vec::new();
        }
        let asked = self.probes();
        let taken = |probe: &Probe| asked.iter().any(|asked| asked.descriptor.name == probe.descriptor.name);
        let defaults = Probe::parse_list(names).unwrap_or_default();
        defaults.into_iter().filter(|probe| !taken(probe)).collect()
    }

    /// The shell commands as a part of the plan.
    pub fn around(&self) -> Around {
        Around { setup: self.setup.clone(), prepare: self.prepare.clone(), cleanup: self.cleanup.clone() }
    }
}

/// What `run`, `cost` and `compare` take.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Measurement")]
pub struct Observed {
    #[command(flatten)]
    pub meters: MeterArguments,
    /// Sample the stacks of what runs, in windows or rounds of their own: cycles per I/O by function of the kernel and of programs, and
    /// a flame graph in report.html; needs root, CAP_PERFMON, or kernel.perf_event_paranoid below 1
    #[arg(long)]
    pub profile: bool,
    /// Pin the workload, of all arms alike: same (all of it to one CPU), apart (each thread of a job to a CPU of its own), or a
    /// CPU list (0,2-3) for all of it; running servers are not moved [default: the scheduler decides]
    #[arg(long, value_name = "same|apart|CPUS", value_parser = value::by(Place::parse))]
    pub place: Option<Place>,
    #[command(flatten)]
    pub session: SessionArguments,
}

impl Observed {
    /// The same as settings of the lab, without the place.
    pub fn settings(&self) -> Settings {
        let chosen = self.meters.meters.clone();
        Settings {
            meters: if self.profile { chosen.with_profile() } else { chosen },
            events: self.meters.events.clone(),
            probes: self.session.probes(),
            ..Settings::default()
        }
    }
}

/// What `run` and `cost` take.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Measurement")]
pub struct Measuring {
    #[command(flatten)]
    pub observed: Observed,
    /// Measure the machine without the workload for this long, before and again after
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = value::background)]
    pub background: Duration,
}

impl Measuring {
    /// The same as settings of the lab.
    pub fn settings(&self) -> Settings {
        let Self { observed, background } = self;
        Settings { background: *background, place: observed.place.clone(), ..observed.settings() }
    }
}

/// What `run` and `compare` take about jobs.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Job")]
pub struct JobArguments {
    /// Print what would be measured, and exit; with --format json as data
    #[arg(long)]
    pub parse_only: bool,
    /// Warn about unknown options instead of refusing them
    #[arg(long)]
    pub ignore_unknown: bool,
    /// Allow writes to a block device. Mounted or partitioned devices are always refused
    #[arg(long)]
    pub allow_device_write: bool,
}
