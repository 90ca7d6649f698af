//! What was read from the machine, before anything is computed from it.
//!
//! A record contains cumulative counters at instants ([`Snapshot`]); the study computes what happened in a window, and
//! can be repeated. The exception is [`TaskTimes`], a difference between two scans, because two scans of all tasks
//! would make up most of a record. A record is saved before it is studied.

mod job;
pub mod lines;

pub use crate::account::{Account, AccountKind, Accounts, TaskOwner, TaskTime, TaskTimes};
use crate::events::Events;
use crate::group_limit::{Boundary, GroupLimit, LimitWindow};
use crate::kind::Envelope;
pub use crate::meter::{Meter, MeterStatus, Selection};
use crate::page_cache::CacheRecord;
use crate::placement::{Place, Whereabouts};
use crate::plan::service::Service;
use crate::plan::{Phase, Plan};
use crate::probe;
use crate::profile::Profile;
use crate::reading::Reading;
use crate::storage::Storage;
use crate::unit::{Bytes, Hertz, Nanos};
use crate::warning::Warning;
pub use job::{Direction, JobRecord, Latency, Lost, StageLatencies, StampError, ThreadUsage, Verified};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// One measurement with its provenance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The first line of the record.
    #[serde(skip)]
    pub envelope: Envelope,
    /// What was measured.
    pub source: Source,
    /// The machine.
    pub host: Host,
    /// All meters: which ran, and why others did not.
    pub meters: Vec<MeterStatus>,
    /// The probes (`--probe`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<probe::Descriptor>,
    /// The events that are counted per I/O; `None` if none were to be.
    pub events: Option<Events>,
    /// Speeds of canary operations before and after the measurement.
    pub canaries: Vec<Canaries>,
    /// The machine without the workload: a stretch before and a stretch after.
    pub background: Vec<Stretch>,
    /// The phases in order.
    pub phases: Vec<PhaseRecord>,
    /// How the measurement ended.
    pub outcome: Outcome,
    /// Caveats that were found during the measurement.
    pub warnings: Vec<Warning>,
    /// The requested placement of the load (`--place`).
    pub place: Option<Place>,
    /// Servers that it started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
}

/// What was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// `iotoll run`: jobs of iotoll's own engines.
    Run(Plan),
    /// `iotoll cost`: a foreign command.
    Cost {
        /// The command as it was executed.
        command: Vec<String>,
        /// Source of the I/O count, in words.
        counted_by: String,
    },
}

/// How a measurement ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As planned.
    #[default]
    Completed,
    /// Interrupted by a signal. The record contains what was measured before.
    Interrupted,
    /// A job or the command failed. The record contains what was measured before.
    Failed(String),
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// CPU model name.
    pub cpu_model: String,
    /// Number of CPUs online.
    pub cpus: usize,
    /// Rate of the reference clock (TSC), in hertz. Never 0 in a saved record.
    pub tsc_hertz: f64,
    /// Source of `tsc_hertz`.
    pub tsc_source: String,
    /// Name of the hypervisor, if there is one.
    pub hypervisor: Option<String>,
    /// Kernel clock source in use.
    pub clocksource: String,
    /// Frequency governor, or a note that there is none.
    pub governor: String,
    /// Simultaneous multithreading: `on`, `off`, `notsupported`…
    pub smt: String,
    /// cpuidle driver and its states.
    pub idle_driver: String,
    /// Active mitigations of CPU vulnerabilities, one line each.
    pub mitigations: Vec<String>,
    /// Total memory.
    pub memory: Bytes,
    /// Whether iotoll runs as root.
    pub root: bool,
    /// Whether the CPU time of tasks includes stolen time (a kernel without CONFIG_PARAVIRT_TIME_ACCOUNTING); `None` if
    /// the kernel configuration is unavailable.
    pub steal_in_task_clocks: Option<bool>,
    /// What holds the files of the measurement. Empty if it has no files, or if the command does not name them.
    pub storage: Vec<Storage>,
}

impl Host {
    /// The reference clock.
    pub fn clock(&self) -> Hertz {
        Hertz(self.tsc_hertz)
    }
}

/// Speeds of canary operations, which show whether the machine changed during the measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Canaries {
    /// A null system call.
    pub null_system_call_nanos: f64,
    /// One switch between two threads on one CPU.
    pub context_switch_nanos: Reading<f64>,
    /// Time from waking a thread that sleeps on another CPU until it runs.
    pub wake_up_nanos: Reading<f64>,
    /// One reading of CLOCK_MONOTONIC.
    pub clock_read_nanos: f64,
    /// Copying memory, in blocks of 16 KiB.
    pub memcpy_gigabytes_per_second: f64,
}

/// Consecutive snapshots, without gaps unless a snapshot marks one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Stretch {
    /// In order of time.
    pub snapshots: Vec<Snapshot>,
    /// CPU time of every task of the machine over the stretch: the difference between a scan at its beginning and one
    /// at its end.
    pub tasks: Option<TaskTimes>,
    /// Boundaries that came late because iotoll got no CPU; `None` if none did.
    pub starved: Option<Box<Starved>>,
}

impl Stretch {
    /// Each snapshot with the next one.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&Snapshot, &Snapshot)> {
        self.snapshots.iter().zip(self.snapshots.iter().skip(1))
    }
}

/// Waiting of iotoll for a CPU at boundaries of windows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Starved {
    /// In all, beyond the ends that the windows were to have.
    pub waited_nanos: Nanos,
    /// iotoll's real-time priority; `None` if it has none.
    pub priority: Option<u32>,
    /// Real-time tasks that still wanted a CPU then.
    pub holders: Vec<Holder>,
}

/// A real-time task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Name of the task (`comm`).
    pub name: String,
    /// Its real-time priority, 1 to 99.
    pub priority: u32,
    /// The CPU that it ran on last.
    pub cpu: u32,
}

/// What happens between a snapshot and the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Only meters that do not disturb the load run.
    #[default]
    Quiet,
    /// This meter, which disturbs the load, runs.
    Alone(Meter),
    /// The events of this set are counted.
    Events(u8),
    /// Not used, because something is being started or stopped.
    Gap,
}

impl Mode {
    /// The mode of the windows of a meter.
    pub fn of(meter: Meter) -> Self {
        if meter.disturbs() { Self::Alone(meter) } else { Self::Quiet }
    }
}

/// The value of a meter's counter at one instant, as the sum over CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// CLOCK_MONOTONIC at the reading; the mean over CPUs if each was read at an instant of its own.
    pub at_nanos: Nanos,
    /// The CPUs that were counted: two readings of a different number have nothing in between. 0 if a CPU came or went before the reading.
    pub cpus: u32,
    /// Nanoseconds or cycles, according to the descriptor.
    pub total: u64,
}

/// One reading for each meter. A fixed array, so that a reading does not allocate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByMeter<T>([Option<T>; Meter::ALL.len()]);

impl<T> Default for ByMeter<T> {
    fn default() -> Self {
        Self([(); Meter::ALL.len()].map(|()| None))
    }
}

impl<T> ByMeter<T> {
    /// The reading of `meter`, if any.
    pub fn get(&self, meter: Meter) -> Option<&T> {
        self.0.get(meter as usize)?.as_ref()
    }

    /// The reading of `meter`, mutable.
    pub fn get_mut(&mut self, meter: Meter) -> Option<&mut T> {
        self.0.get_mut(meter as usize)?.as_mut()
    }

    /// Sets the reading of `meter`.
    pub fn set(&mut self, meter: Meter, read: Option<T>) {
        if let Some(place) = self.0.get_mut(meter as usize) {
            *place = read;
        }
    }

    /// All readings.
    pub fn iter(&self) -> impl Iterator<Item = (Meter, &T)> {
        Meter::ALL.into_iter().filter_map(|meter| Some((meter, self.get(meter)?)))
    }
}

impl<T, const N: usize> From<[(Meter, T); N]> for ByMeter<T> {
    fn from(readings: [(Meter, T); N]) -> Self {
        readings.into_iter().collect()
    }
}

impl<T> FromIterator<(Meter, T)> for ByMeter<T> {
    fn from_iter<I: IntoIterator<Item = (Meter, T)>>(readings: I) -> Self {
        let mut all = Self::default();
        readings.into_iter().for_each(|(meter, read)| all.set(meter, Some(read)));
        all
    }
}

impl<T: Serialize> Serialize for ByMeter<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ByMeter<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(BTreeMap::<Meter, T>::deserialize(deserializer)?.into_iter().collect())
    }
}

/// Cumulative counters at one instant.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// What follows this snapshot.
    pub mode: Mode,
    /// CLOCK_MONOTONIC when the snapshot was asked for.
    pub at_nanos: Nanos,
    /// The meters that were read.
    pub counts: ByMeter<Count>,
    /// CPU time that iotoll's measuring thread has used so far: the machine's idle clocks do not count it as idle, and it is neither the
    /// load's nor the background's.
    pub own_nanos: Nanos,
    /// Counters that are not meters: steal and context switches of the whole machine.
    pub system: Option<SystemCounts>,
    /// I/Os and bytes completed by all jobs of the phase.
    pub done: Option<Done>,
    /// Bytes that the kernel has read from storage for the workload's tasks (`read_bytes` of /proc/PID/io).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_read: Option<Bytes>,
    /// Where the load's threads ran since the previous snapshot; `None` if not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whereabouts: Option<Box<Whereabouts>>,
    /// The readings of the record's probes; `None` if none were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<Box<probe::Readings>>,
    /// The limits of the load's control groups, with their counters; empty if they have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group_limits: Vec<GroupLimit>,
    /// Exact accounts since the previous snapshot, if they were kept in that window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounts: Option<Box<Accounts>>,
    /// What was sampled since the previous snapshot, if that window was sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Box<Profile>>,
    /// The events of the window that ends here, if they were counted in it: one count after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventCounts>,
}

/// How often events happened between two instants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventCounts {
    /// CLOCK_MONOTONIC at the first reading.
    pub begin_nanos: Nanos,
    /// CLOCK_MONOTONIC at the second.
    pub end_nanos: Nanos,
    /// I/Os and bytes completed between them.
    pub done: Option<Done>,
    /// By the name of the event. An event of the set that is missing here did not happen.
    pub counts: BTreeMap<String, u64>,
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
    /// The limits of the load's control groups at this instant.
    pub(crate) fn limits(&self) -> Boundary<'_> {
        (self.at_nanos, &self.group_limits)
    }

    /// CPU time of all worker threads of the workload.
    pub fn thread_nanos(&self) -> Option<Nanos> {
        self.counts.get(Meter::Thread).map(|count| Nanos(count.total))
    }
}

/// Counters of /proc/stat except idle time, for all CPUs together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemCounts {
    /// CLOCK_MONOTONIC at the reading.
    pub at_nanos: Nanos,
    /// Time stolen by the hypervisor.
    pub steal_nanos: Nanos,
    /// The sum of user, nice, system, irq and softirq, sampled at the tick. It is not used for a cost, only to
    /// determine how much of the stolen time the idle clocks count as idle.
    pub busy_nanos: Option<Nanos>,
    /// Context switches since boot.
    pub context_switches: u64,
}

/// Jobs that ran at the same time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PhaseRecord {
    /// One execution for `iotoll run`; one for each repetition of a measured command.
    pub executions: Vec<Execution>,
}

/// One execution of a phase.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Execution {
    /// The jobs.
    pub jobs: Vec<JobRecord>,
    /// Readings while they ran.
    pub stretch: Stretch,
    /// The part of the stretch with I/O, if it is known to be shorter.
    pub io_interval: Option<IoInterval>,
    /// When the last job ended, if it told: the last reading may come later.
    pub jobs_ended_nanos: Option<Nanos>,
    /// CPU time of the measured command and all its children.
    pub command_cpu_nanos: Option<Nanos>,
    /// How the measured command ended.
    pub exit: Option<Exit>,
    /// The page cache for the files of the jobs; `None` for a command, and if no job uses files.
    pub page_cache: Option<CacheRecord>,
    /// By how much the machine's dirty pages grew while a command ran, those that are being written included.
    pub dirtied: Option<Bytes>,
}

impl Execution {
    /// The limits of its control groups at both ends of each window in which it did I/O.
    pub(crate) fn limits(&self) -> Vec<LimitWindow<'_>> {
        let does_io = |[(begin, _), (end, _)]: &LimitWindow| {
            self.io_interval.is_none_or(|interval| *end > interval.begin_nanos && *begin < interval.end_nanos)
        };
        let pairs = self.stretch.pairs();
        pairs.map(|(before, after)| [before.limits(), after.limits()]).filter(does_io).collect()
    }

    /// CPU time of the workload's own threads: that of its jobs during I/O if they report it, otherwise that of the
    /// command, including its setup.
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

impl IoInterval {
    /// Whether I/O was done from `begin` to `end`: always, if it is not only done in a part of a stretch.
    pub(crate) fn covers(part: Option<Self>, begin: Nanos, end: Nanos) -> bool {
        part.is_none_or(|part| begin >= part.begin_nanos && end <= part.end_nanos)
    }

    /// The part of a phase that counts, if not all of it does: after the ramps, and from the start of the first job.
    pub fn of_jobs(phase: &Phase, stretch: &Stretch) -> Option<Self> {
        let delay = phase.jobs.iter().map(|job| job.together.start_delay).min().unwrap_or_default();
        let ramped = phase.jobs.iter().filter(|job| job.duration.ramp > Nanos(0));
        let ramp = ramped.map(|job| job.together.start_delay + job.duration.ramp).max().unwrap_or_default();
        let uncounted = delay.max(ramp);
        let (first, last) = (stretch.snapshots.first()?, stretch.snapshots.last()?);
        let begin_nanos = first.at_nanos + uncounted;
        // A run that ended within its ramp has no such part; then all of it is shown.
        let counts = uncounted > Nanos(0) && begin_nanos < last.at_nanos;
        counts.then_some(Self { begin_nanos, end_nanos: last.at_nanos })
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// With this exit status.
    Status(i32),
    /// Killed by this signal.
    Signal(i32),
}

fn is_first(group: &u32) -> bool {
    *group == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_kept_by_meter_and_a_missing_one_is_missing() {
        let count = |total| Count { at_nanos: Nanos(1), cpus: 2, total };
        let mut readings = ByMeter::from([(Meter::Idle, count(5)), (Meter::Pmu, count(0))]);
        readings.set(Meter::Pmu, None);
        assert_eq!(readings.get(Meter::Idle), Some(&count(5)));
        assert_eq!(readings.get(Meter::Pmu), None);
        let text = serde_json::to_string(&readings).unwrap();
        assert_eq!(text, "{\"idle\":{\"at_nanos\":1,\"cpus\":2,\"total\":5}}");
        assert_eq!(serde_json::from_str::<ByMeter<Count>>(&text).unwrap(), readings);
        assert!(serde_json::from_str::<ByMeter<Count>>("{\"sponge\":{\"total\":5}}").is_err());
    }
}
