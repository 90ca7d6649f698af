//! What was read from the machine, before anything is computed from it.
//!
//! A record is cumulative counters at instants ([`Snapshot`]): what a window held is worked out by the
//! study, and can be worked out again. One exception: [`TaskTimes`] is a difference between two scans,
//! because two scans of every task would be most of a record. It is saved before it is studied.

use crate::envelope::Envelope;
use crate::histogram::Histogram;
use crate::injected::Injected;
pub use crate::meter::{ByMeter, Clocks, Count, CpuModes, Meter, MeterStatus, Selection};
use crate::page_cache::CacheRecord;
use crate::placement::{Place, Whereabouts};
use crate::plan::Plan;
use crate::probe;
use crate::reading::Reading;
use crate::unit::{Bytes, Hertz, Nanos};
use crate::warning::Warning;
use serde::{Deserialize, Serialize};

/// One measurement with its provenance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Its first line.
    #[serde(skip)]
    pub envelope: Envelope,
    /// What was measured.
    pub source: Source,
    /// Where.
    pub host: Host,
    /// Which meters ran, and why others did not.
    pub meters: Vec<MeterStatus>,
    /// What was read beside the meters (`--probe`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<probe::Descriptor>,
    /// Speeds of a stated set of operations, before and after.
    pub canaries: Vec<Canaries>,
    /// What the machine did without the workload: a stretch before, a stretch after.
    pub background: Vec<Stretch>,
    /// What was measured, phase by phase.
    pub phases: Vec<PhaseRecord>,
    /// How it ended.
    pub outcome: Outcome,
    /// Caveats seen while measuring.
    pub warnings: Vec<Warning>,
    /// Where the load was to run, where that was said (`--place`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// What was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// `iotoll run`: our own engines.
    Run(Plan),
    /// `iotoll cost`: a foreign command.
    Cost {
        /// The command as it was executed.
        command: Vec<String>,
        /// Where its I/O count comes from, in words.
        counted_by: String,
    },
}

/// How a measurement ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As planned.
    Completed,
    /// By a signal; what was measured until then is here.
    Interrupted,
    /// A job or the command failed; what was measured until then is here.
    Failed(String),
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// CPU model name.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus: usize,
    /// Rate of the reference clock (TSC); 0 never occurs in a saved record.
    pub tsc_hertz: f64,
    /// Where `tsc_hertz` comes from.
    pub tsc_source: String,
    /// Name of the hypervisor, when there is one.
    pub hypervisor: Option<String>,
    /// Kernel clock source in use.
    pub clocksource: String,
    /// Frequency governor, or that there is none.
    pub governor: String,
    /// Simultaneous multithreading: `on`, `off`, `notsupported`…
    pub smt: String,
    /// cpuidle driver and states.
    pub idle_driver: String,
    /// Active mitigations of CPU vulnerabilities, one line each.
    pub mitigations: Vec<String>,
    /// Total memory.
    pub memory: Bytes,
    /// User id is 0.
    pub root: bool,
    /// Whether the CPU time that tasks are charged holds what the hypervisor took meanwhile (a kernel without
    /// CONFIG_PARAVIRT_TIME_ACCOUNTING); `None` where the kernel's configuration is not to be found.
    #[serde(default)]
    pub steal_in_task_clocks: Option<bool>,
}

impl Host {
    /// The reference clock.
    pub fn clock(&self) -> Hertz {
        Hertz(self.tsc_hertz)
    }
}

/// Speeds of a stated set of operations, to see the machine change under the measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Canaries {
    /// A system call that does nothing.
    pub null_system_call_nanos: f64,
    /// One switch between two threads of one CPU.
    pub context_switch_nanos: Reading<f64>,
    /// Waking a thread that sleeps on another CPU, until it runs.
    pub wake_up_nanos: Reading<f64>,
    /// One reading of CLOCK_MONOTONIC.
    pub clock_read_nanos: f64,
    /// Copying memory, 16 KiB at a time.
    pub memcpy_gigabytes_per_second: f64,
}

/// Readings in a row, without a gap unless a snapshot says so.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Stretch {
    /// In order of time.
    pub snapshots: Vec<Snapshot>,
    /// CPU time of every task of the machine over the stretch: a difference between a scan at its beginning
    /// and one at its end.
    pub tasks: Option<TaskTimes>,
}

/// What the time after a snapshot, up to the next one, is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Only meters that do not disturb.
    #[default]
    Quiet,
    /// This meter runs, which disturbs.
    Alone(Meter),
    /// Not to be used: something is being started or stopped.
    Gap,
}

impl Mode {
    /// What runs in the windows of a meter.
    pub fn of(meter: Meter) -> Self {
        if meter.disturbs() { Self::Alone(meter) } else { Self::Quiet }
    }
}

/// Cumulative counters at one instant.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// What follows this snapshot.
    pub mode: Mode,
    /// CLOCK_MONOTONIC when the snapshot was asked for.
    pub at_nanos: Nanos,
    /// One reading per CPU, each taken on that CPU.
    pub cpus: Vec<CpuReading>,
    /// Meters that are read once for all CPUs.
    pub clocks: ByMeter<Clocks>,
    /// What no meter is: steal and context switches of the whole machine.
    pub system: Option<SystemCounts>,
    /// I/Os and bytes completed, all jobs of the phase together.
    pub done: Option<Done>,
    /// Bytes that the kernel has read from storage for the workload's tasks (`read_bytes` of /proc/PID/io).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_read: Option<Bytes>,
    /// Where the load's threads ran since the snapshot before; `None` where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whereabouts: Option<Box<Whereabouts>>,
    /// The record's probes; `None` where none were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<Box<probe::Readings>>,
}

/// I/Os and bytes completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// I/Os.
    pub ios: u64,
    /// Bytes.
    pub bytes: Bytes,
}

impl Snapshot {
    /// CPU time of all worker threads of the workload.
    pub fn thread_nanos(&self) -> Option<Nanos> {
        self.clocks.get(Meter::Thread)?.nanos.first().copied()
    }
}

/// What a reader pinned to one CPU read there.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct CpuReading {
    /// Number of the CPU.
    pub cpu: u32,
    /// CLOCK_MONOTONIC at the reading.
    pub at_nanos: Nanos,
    /// Meters that are read there.
    pub counts: ByMeter<Count>,
}

/// What /proc/stat counts beside idle time, all CPUs together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemCounts {
    /// CLOCK_MONOTONIC at the reading.
    pub at_nanos: Nanos,
    /// Taken away by the hypervisor.
    pub steal_nanos: Nanos,
    /// user, nice, system, irq and softirq, sampled at the tick. No cost is made of it: it only tells how much of steal the
    /// idle clocks have as idle.
    #[serde(default)]
    pub busy_nanos: Option<Nanos>,
    /// Context switches since boot.
    pub context_switches: u64,
}

/// CPU time of tasks over a stretch: the difference between two scans.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TaskTimes {
    /// Time between the two scans.
    pub wall_nanos: Nanos,
    /// Tasks that ran, each task name of each process together.
    pub tasks: Vec<TaskTime>,
}

/// CPU time that the scheduler charged to tasks of one name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskTime {
    /// Name of the task (`comm`).
    pub name: String,
    /// Whose.
    pub owner: TaskOwner,
    /// CPU time.
    pub nanos: Nanos,
}

/// Whose CPU time it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskOwner {
    /// The workload: a worker thread, or the measured command and its children.
    Workload,
    /// iotoll itself: its readers, its progress display.
    Iotoll,
    /// A thread of the kernel.
    Kernel,
    /// Another process.
    Other,
}

/// Jobs that ran together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PhaseRecord {
    /// One for `iotoll run`; one for each repetition of a measured command.
    pub executions: Vec<Execution>,
}

/// One execution of a phase.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Execution {
    /// The jobs.
    pub jobs: Vec<JobRecord>,
    /// Readings while they ran.
    pub stretch: Stretch,
    /// The part of the stretch in which I/O was done, when it is known to be less than all.
    pub io_interval: Option<IoInterval>,
    /// CPU time of the measured command and all its children.
    pub command_cpu_nanos: Option<Nanos>,
    /// How the measured command ended.
    pub exit: Option<Exit>,
    /// The page cache under the files of the jobs; `None` where they use none, and of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache: Option<CacheRecord>,
}

impl Execution {
    /// CPU time of the workload's own threads: of its jobs, who know it for the time in which they did I/O; else of the
    /// command, which holds its setup too.
    pub fn own_nanos(&self) -> Option<Nanos> {
        let of_jobs = self.jobs.iter().map(|job| job.thread_nanos).sum::<Option<Nanos>>();
        of_jobs.filter(|nanos| *nanos > Nanos(0)).or(self.command_cpu_nanos)
    }
}

/// A part of a stretch, on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoInterval {
    /// When I/O began.
    pub begin_nanos: Nanos,
    /// When it ended.
    pub end_nanos: Nanos,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// With this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
}

/// What one job did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JobRecord {
    /// The job's name.
    pub name: String,
    /// Which copy of it (`numjobs`), from 0.
    pub copy: u32,
    /// Copies are to be reported together.
    pub group_reporting: bool,
    /// What issued the I/O.
    pub engine: String,
    /// Reads.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// Trims.
    pub trim: Direction,
    /// fsync and fdatasync calls.
    pub syncs: u64,
    /// I/Os that failed.
    pub errors: u64,
    /// The first error, in words.
    pub error: Option<String>,
    /// From the first submission that counts to the last completion.
    pub wall_nanos: Nanos,
    /// CPU time of the job's thread.
    pub thread_nanos: Option<Nanos>,
    /// System calls that submitted, waited for or did I/O.
    pub syscalls: Option<u64>,
    /// How far a time stamp can be from the event: only where stamps are shared by a batch.
    pub stamp_error: Option<StampError>,
    /// Where latency went, of an engine that knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<Box<StageLatencies>>,
    /// Busy work that was added to each I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub injected_ns: Option<Injected>,
    /// Percentiles to report, in percent.
    pub percentiles: Vec<f64>,
}

impl JobRecord {
    /// I/Os of all directions. Read from a file they may be any numbers, so that their sum must not overflow.
    pub fn ios(&self) -> u64 {
        [&self.read, &self.write, &self.trim].iter().map(|direction| direction.ios).fold(0, u64::saturating_add)
    }

    /// Bytes of all directions.
    pub fn bytes(&self) -> Bytes {
        [&self.read, &self.write, &self.trim].iter().map(|direction| direction.bytes).sum()
    }
}

/// The stages of each I/O to a remote server, in ticks of the record's clock. Together they are its latency.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StageLatencies {
    /// From its issue until its first byte is handed over.
    pub backlog_wait: Histogram,
    /// From there until its reply is there and understood.
    pub round_trip: Histogram,
    /// From there until whoever issued it sees it.
    pub delivery: Histogram,
}

/// How far apart the time stamps of a batch are from the events that they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StampError {
    /// Mean over I/Os.
    pub mean_nanos: f64,
    /// Largest.
    pub max_nanos: Nanos,
}

/// What was done in one direction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Direction {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes completed.
    pub bytes: Bytes,
    /// I/Os that moved less than was asked for.
    pub short: u64,
    /// From submission to completion.
    pub latency: Latency,
}

/// Latencies as they were recorded.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Latency {
    /// Not recorded.
    #[default]
    None,
    /// Ours, in ticks of the TSC.
    Ticks(Histogram),
    /// As a foreign program reported it.
    Reported {
        /// Mean.
        mean_nanos: f64,
        /// Largest.
        max_nanos: Nanos,
        /// Percent and value.
        percentiles: Vec<(f64, Nanos)>,
    },
}
