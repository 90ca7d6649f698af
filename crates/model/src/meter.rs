//! The meters as data: what each one sees, how what it counts becomes busy time, how far it is trusted.
//!
//! A [`Meter`] enters, its [`Descriptor`] leaves; [`ByMeter`] holds what was read. To add a meter: here a variant, its place in
//! [`Meter::ALL`] and its row in [`Meter::descriptor`]; in `lab::meter` a file that opens it and a row of the table there.

use crate::reading::Reading;
use crate::unit::Nanos;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// The meters. Each sees something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meter {
    /// cpuidle residency: all time of a CPU that is not residency is busy.
    Idle,
    /// The kernel's tick-less idle clock in /proc/timer_list: nanoseconds, root only.
    TimerList,
    /// /proc/stat idle + iowait (steal apart), 10 ms grain.
    ProcStat,
    /// A SCHED_IDLE thread on each CPU that counts the time that nobody else wanted.
    Soaker,
    /// perf `cpu-clock` samples of CPUs that are not idle.
    Sampler,
    /// CPU clocks of the workload's own threads: what a per-process figure sees.
    Thread,
    /// Hardware cycle counters, system-wide.
    Pmu,
}

/// Whose time a meter sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every CPU, whoever used it.
    WholeMachine,
    /// The threads of the workload and nothing that others did for them.
    WorkloadThreads,
}

/// What a meter's counter counts, which decides how busy time follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// Nanoseconds that were idle: the rest of the capacity is busy, what the hypervisor took included.
    IdleTime,
    /// Nanoseconds that were busy.
    BusyTime,
    /// Cycles of the cores, which are no time.
    CoreCycles,
}

/// Where a meter is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAt {
    /// On each CPU by the reader that is pinned to it: [`crate::record::CpuReading::counts`].
    EachCpu,
    /// Once for all: [`crate::record::Snapshot::clocks`].
    Once,
}

/// Half-width of a 95 % interval on whole-machine cycles per operation, in percent of it, after 10 s: measured on a quiet
/// 2-CPU guest without a PMU (METHOD.md).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedError {
    /// For a load that keeps its CPU.
    pub working_percent: f64,
    /// For a load that sleeps and is woken.
    pub waking_percent: f64,
}

/// All that is known of a meter before it runs.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// The name in JSON and on the command line.
    pub name: &'static str,
    /// What it sees, in words.
    pub sees: &'static str,
    /// Whose time.
    pub scope: Scope,
    /// What its counter counts.
    pub counts: Counts,
    /// Where it is read.
    pub read_at: ReadAt,
    /// It changes what it measures, so it needs windows of its own.
    pub disturbs: bool,
    /// Its rank as the headline meter, 1 the most trusted; `None` where it never speaks for a phase.
    pub headline_rank: Option<u8>,
    /// How well it does; `None` where there is no such figure.
    pub expected_error: Option<ExpectedError>,
}

/// What most meters have in common.
const COMMON: Descriptor = Descriptor {
    name: "",
    sees: "",
    scope: Scope::WholeMachine,
    counts: Counts::IdleTime,
    read_at: ReadAt::EachCpu,
    disturbs: false,
    headline_rank: None,
    expected_error: None,
};

const fn error(working_percent: f64, waking_percent: f64) -> Option<ExpectedError> {
    Some(ExpectedError { working_percent, waking_percent })
}

impl Meter {
    /// Every meter, in the order in which they are shown.
    pub const ALL: [Self; 7] =
        [Self::Pmu, Self::Idle, Self::TimerList, Self::ProcStat, Self::Soaker, Self::Sampler, Self::Thread];

    /// The table of meters.
    ///
    /// The kernel's idle clock ranks before cpuidle's residency, which counts interrupts taken while halted as idle: on a load
    /// that sleeps it shows less than the load's own threads used, which cannot be all that the machine paid (METHOD.md). The
    /// thread clock never speaks: it does not see what others do for the workload. The PMU is last, though it counts best: it
    /// counts core cycles, and every figure that stands beside a cost (threads, accounts, busy CPUs) is time in reference
    /// cycles. Mixing the two would find a cost elsewhere whenever the core's clock is not the reference clock.
    pub const fn descriptor(self) -> Descriptor {
        match self {
            Self::TimerList => Descriptor {
                name: "timer_list",
                sees: "the kernel's own idle clock, the rest is busy; entering and leaving idle count as idle; ±2.5 % in 10 s",
                read_at: ReadAt::Once,
                headline_rank: Some(1),
                expected_error: error(1.6, 2.5),
                ..COMMON
            },
            Self::Idle => Descriptor {
                name: "idle",
                sees: "time in cpuidle states, the rest is busy; interrupts taken while halted count as idle; ±2 % in 10 s",
                headline_rank: Some(2),
                expected_error: error(1.6, 2.2),
                ..COMMON
            },
            Self::ProcStat => Descriptor {
                name: "proc_stat",
                sees: "idle, iowait and steal in 10 ms ticks, the rest is busy; only for whole runs",
                read_at: ReadAt::Once,
                headline_rank: Some(3),
                expected_error: error(2.2, 4.6),
                ..COMMON
            },
            Self::Soaker => Descriptor {
                name: "soaker",
                sees: "what a SCHED_IDLE thread per CPU does not get; ±2 % on loads that do not sleep, disturbs others: windows of its own",
                disturbs: true,
                headline_rank: Some(4),
                ..COMMON
            },
            Self::Sampler => Descriptor {
                name: "sampler",
                sees: "samples of CPUs that are not idle; ±10 % on loads that do not sleep, blind to sleepers that keep step with the timer",
                counts: Counts::BusyTime,
                disturbs: true,
                headline_rank: Some(5),
                ..COMMON
            },
            Self::Pmu => Descriptor {
                name: "pmu",
                sees: "cycles that the CPUs ran, counted in hardware, halted time left out",
                counts: Counts::CoreCycles,
                headline_rank: Some(6),
                ..COMMON
            },
            Self::Thread => Descriptor {
                name: "thread",
                sees: "the workload's own threads; blind to what others do for them",
                scope: Scope::WorkloadThreads,
                counts: Counts::BusyTime,
                read_at: ReadAt::Once,
                expected_error: error(0.8, 2.6),
                ..COMMON
            },
        }
    }

    /// The name in JSON and on the command line.
    pub const fn name(self) -> &'static str {
        self.descriptor().name
    }

    /// The meter of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|meter| meter.name() == name)
    }

    /// Whether it changes what it measures.
    pub const fn disturbs(self) -> bool {
        self.descriptor().disturbs
    }

    /// Whether the meter sees the whole machine, not the workload's threads only.
    pub fn sees_whole_machine(self) -> bool {
        self.descriptor().scope == Scope::WholeMachine
    }

    /// Whether it counts time, of which a part of the capacity can be told; core cycles are no fraction.
    pub fn counts_time(self) -> bool {
        self.descriptor().counts != Counts::CoreCycles
    }

    /// Whether it has what a hypervisor took as busy: what the kernel's clocks of idle time do not have as idle is.
    pub fn takes_steal_for_busy(self) -> bool {
        self.descriptor().counts == Counts::IdleTime
    }

    /// Which meter speaks for a phase, the most trusted first.
    pub fn by_trust() -> impl Iterator<Item = Self> {
        let mut ranked: Vec<(u8, Self)> =
            Self::ALL.into_iter().filter_map(|meter| Some((meter.descriptor().headline_rank?, meter))).collect();
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, meter)| meter)
    }
}

/// A meter that was considered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeterStatus {
    /// Which.
    pub meter: Meter,
    /// What it can see on this machine, or why it could not run.
    pub status: Reading<String>,
}

/// Which meters may run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// Those that do not disturb.
    #[default]
    Default,
    /// These and no others.
    Only(Vec<Meter>),
    /// All that this machine has.
    All,
}

impl Selection {
    /// Whether a meter may run.
    pub fn allows(&self, meter: Meter) -> bool {
        match self {
            Self::Default => !meter.disturbs(),
            Self::Only(chosen) => chosen.contains(&meter),
            Self::All => true,
        }
    }
}

/// What a meter's counter stood at on one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Nanoseconds or cycles, as its descriptor says.
    pub total: u64,
    /// How often it saw the CPU in which mode, where it can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modes: Option<CpuModes>,
}

impl Count {
    /// Of a meter that does not tell modes apart.
    pub fn of(total: u64) -> Self {
        Self { total, modes: None }
    }
}

/// How often a CPU was seen in each mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuModes {
    /// User mode.
    pub user: u64,
    /// Kernel mode.
    pub kernel: u64,
}

/// What a meter's counters stood at, all at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// CLOCK_MONOTONIC at the reading.
    pub at_nanos: Nanos,
    /// One for each CPU, or one for all.
    pub nanos: Vec<Nanos>,
}

/// What each meter read, by meter. It has a place for each, so that a reading takes no memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByMeter<T>([Option<T>; Meter::ALL.len()]);

impl<T> Default for ByMeter<T> {
    fn default() -> Self {
        Self([(); Meter::ALL.len()].map(|()| None))
    }
}

impl<T> ByMeter<T> {
    /// What this meter read, if it was read.
    pub fn get(&self, meter: Meter) -> Option<&T> {
        self.0.get(meter as usize)?.as_ref()
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, meter: Meter) -> Option<&mut T> {
        self.0.get_mut(meter as usize)?.as_mut()
    }

    /// Notes what this meter read, or that it was not read.
    pub fn set(&mut self, meter: Meter, read: Option<T>) {
        if let Some(place) = self.0.get_mut(meter as usize) {
            *place = read;
        }
    }

    /// Those that were read.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_meter_has_a_row_of_its_own() {
        for meter in Meter::ALL {
            assert_eq!(Meter::named(meter.name()), Some(meter), "two of one name");
            assert!(!meter.descriptor().sees.is_empty(), "{meter:?}");
            let written = serde_json::to_value(meter).unwrap();
            assert_eq!(written, meter.name(), "a record calls it as the command line does");
        }
        assert_eq!(Meter::named(""), None);
    }

    #[test]
    fn the_meter_that_is_trusted_most_comes_first_and_one_that_sees_only_threads_never() {
        let order: Vec<Meter> = Meter::by_trust().collect();
        use Meter::*;
        assert_eq!(order, [TimerList, Idle, ProcStat, Soaker, Sampler, Pmu]);
        assert!(order.iter().all(|meter| meter.sees_whole_machine()));
    }

    #[test]
    fn readings_are_kept_by_meter_and_a_missing_one_is_missing() {
        let mut readings = ByMeter::from([(Meter::Idle, Count::of(5)), (Meter::Pmu, Count::of(0))]);
        readings.set(Meter::Pmu, None);
        assert_eq!(readings.get(Meter::Idle), Some(&Count::of(5)));
        assert_eq!(readings.get(Meter::Pmu), None);
        let text = serde_json::to_string(&readings).unwrap();
        assert_eq!(text, "{\"idle\":{\"total\":5}}");
        assert_eq!(serde_json::from_str::<ByMeter<Count>>(&text).unwrap(), readings);
        assert!(serde_json::from_str::<ByMeter<Count>>("{\"sponge\":{\"total\":5}}").is_err());
    }
}
