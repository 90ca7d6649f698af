//! The meters as data: what each one sees, how its counter is converted to busy time, and how far it is trusted.
//!
//! Each [`Meter`] has a [`Descriptor`]; [`ByMeter`](crate::record::ByMeter) contains one reading for each. To add a meter, add a variant, its
//! entry in [`Meter::ALL`] and its row in [`Meter::descriptor`] here; in `lab::meter`, add a file that opens it and a
//! row of the table.

use crate::reading::Reading;
use serde::{Deserialize, Serialize};

/// The meters. Each measures something different.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meter {
    /// cpuidle residency: the CPU time outside idle states is busy.
    Idle,
    /// The kernel's tick-less idle clock in /proc/timer_list, in nanoseconds; root only.
    TimerList,
    /// Idle and iowait of /proc/stat (steal is separate), in ticks of 10 ms.
    ProcStat,
    /// A SCHED_IDLE thread on each CPU that counts the otherwise unused time.
    Soaker,
    /// perf `cpu-clock` samples of what runs on each CPU.
    Sampler,
    /// Programs of the kernel that charge every nanosecond to a task, a softirq, an interrupt or idling.
    Accounts,
    /// CPU clocks of the workload's own threads, as in per-process figures.
    Thread,
    /// Hardware cycle counters, system-wide.
    Pmu,
}

/// Whose time a meter sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every CPU, whoever used it.
    WholeMachine,
    /// The threads of the workload, without what others do for them.
    WorkloadThreads,
}

/// What a meter counts, which determines how busy time is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// Idle nanoseconds. The rest of the capacity is busy, including what the hypervisor stole.
    IdleTime,
    /// Busy nanoseconds.
    BusyTime,
    /// Core cycles, which are not a time.
    CoreCycles,
}

/// The known properties of a meter.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// The name in JSON and on the command line.
    pub name: &'static str,
    /// What it sees, in words.
    pub sees: &'static str,
    /// Whose time it sees.
    pub scope: Scope,
    /// What its counter counts.
    pub counts: Counts,
    /// Whether it changes what it measures, so that it needs its own windows.
    pub disturbs: bool,
    /// Whether it runs unless other meters are chosen.
    pub by_default: bool,
    /// Its rank as the headline meter, 1 is the most trusted; `None` if it is never the headline meter.
    pub headline_rank: Option<u8>,
    /// The smallest step of its reading, in nanoseconds of CPU time (of a nominal cycle for core cycles).
    pub resolution_nanos: f64,
}

/// Defaults that most meters share.
const COMMON: Descriptor = Descriptor {
    name: "",
    sees: "",
    scope: Scope::WholeMachine,
    counts: Counts::IdleTime,
    disturbs: false,
    by_default: false,
    headline_rank: None,
    resolution_nanos: 1.0,
};

impl Meter {
    /// Every meter, in the order in which reports show them.
    pub const ALL: [Self; 8] = [
        Self::Pmu,
        Self::Idle,
        Self::TimerList,
        Self::ProcStat,
        Self::Soaker,
        Self::Sampler,
        Self::Accounts,
        Self::Thread,
    ];

    /// The table of meters.
    ///
    /// The kernel's idle clock ranks before cpuidle residency, which counts interrupts during a halt as idle: for a
    /// load that sleeps, it gives less than the load's own threads used, which cannot be the whole cost (docs/method/meters.md).
    /// The thread clock is never the headline meter: it does not see what others do for the workload. The PMU is last
    /// although it is the most precise: it counts core cycles, while all related figures (threads, accounts, busy CPUs)
    /// are time in reference cycles. Mixing the two would give a wrong cost elsewhere whenever the core clock differs
    /// from the reference clock.
    pub const fn descriptor(self) -> Descriptor {
        match self {
            Self::TimerList => Descriptor {
                name: "timer_list",
                sees: "all time that the kernel's idle clock does not count; counts idle entry and exit as idle",
                headline_rank: Some(1),
                ..COMMON
            },
            Self::Idle => Descriptor {
                name: "idle",
                // The kernel shows microseconds.
                resolution_nanos: 1e3,
                sees: "all time outside cpuidle states; counts interrupts during a halt as idle",
                headline_rank: Some(2),
                ..COMMON
            },
            Self::ProcStat => Descriptor {
                name: "proc_stat",
                resolution_nanos: 1e7,
                sees: "all time except idle, iowait and steal, in 10 ms ticks; only for whole runs",
                headline_rank: Some(3),
                ..COMMON
            },
            Self::Soaker => Descriptor {
                name: "soaker",
                sees: "all time that a SCHED_IDLE thread per CPU does not get; ±2 % on loads that do not sleep; disturbs the load, so it uses its own windows",
                disturbs: true,
                headline_rank: Some(4),
                ..COMMON
            },
            Self::Sampler => Descriptor {
                name: "sampler",
                sees: "samples of the stacks of tasks; ±10 % on loads that do not sleep; misses loads that wake in step with the timer",
                counts: Counts::BusyTime,
                disturbs: true,
                headline_rank: Some(5),
                ..COMMON
            },
            Self::Accounts => Descriptor {
                name: "accounts",
                sees: "every nanosecond of every CPU, charged to a task, a softirq, an interrupt or idling; adds time to each switch and interrupt, so it uses its own windows",
                counts: Counts::BusyTime,
                disturbs: true,
                by_default: true,
                ..COMMON
            },
            Self::Pmu => Descriptor {
                name: "pmu",
                sees: "core cycles of all CPUs, counted in hardware, without halted time",
                counts: Counts::CoreCycles,
                headline_rank: Some(6),
                ..COMMON
            },
            Self::Thread => Descriptor {
                name: "thread",
                sees: "CPU time of the workload's own threads, without what others do for them",
                scope: Scope::WorkloadThreads,
                counts: Counts::BusyTime,
                ..COMMON
            },
        }
    }

    /// The name in JSON and on the command line.
    pub const fn name(self) -> &'static str {
        self.descriptor().name
    }

    /// Finds a meter by name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|meter| meter.name() == name)
    }

    /// The smallest step of its reading, in nanoseconds of CPU time.
    pub const fn resolution_nanos(self) -> f64 {
        self.descriptor().resolution_nanos
    }

    /// Whether it changes what it measures.
    pub const fn disturbs(self) -> bool {
        self.descriptor().disturbs
    }

    /// Whether it sees the whole machine, not only the workload's threads.
    pub fn sees_whole_machine(self) -> bool {
        self.descriptor().scope == Scope::WholeMachine
    }

    /// Whether it counts time, so that a fraction of the capacity can be computed; core cycles are not a fraction.
    pub fn counts_time(self) -> bool {
        self.descriptor().counts != Counts::CoreCycles
    }

    /// Whether it counts stolen time as busy: the kernel's idle clocks do, because stolen time is not idle.
    pub fn takes_steal_for_busy(self) -> bool {
        self.descriptor().counts == Counts::IdleTime
    }

    /// The meters that can be the headline meter, the most trusted first.
    pub fn by_trust() -> impl Iterator<Item = Self> {
        let mut ranked: Vec<(u8, Self)> =
            Self::ALL.into_iter().filter_map(|meter| Some((meter.descriptor().headline_rank?, meter))).collect();
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, meter)| meter)
    }
}

/// A meter of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeterStatus {
    /// The meter.
    pub meter: Meter,
    /// What it sees on this machine, or why it is unavailable.
    pub status: Reading<String>,
}

/// Which meters may run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// All that do not disturb the load, and the accounts.
    #[default]
    Default,
    /// These, and the sampler (`--profile`).
    Profile,
    /// Only these.
    Only(Vec<Meter>),
    /// All that this machine has.
    All,
}

impl Selection {
    /// The same and the sampler.
    pub fn with_profile(self) -> Self {
        match self {
            Self::Default | Self::Profile => Self::Profile,
            Self::Only(mut chosen) => {
                chosen.push(Meter::Sampler);
                Self::Only(chosen)
            }
            Self::All => Self::All,
        }
    }

    /// Whether a meter may run.
    pub fn allows(&self, meter: Meter) -> bool {
        match self {
            Self::Default => !meter.disturbs() || meter.descriptor().by_default,
            Self::Profile => Self::Default.allows(meter) || meter == Meter::Sampler,
            Self::Only(chosen) => chosen.contains(&meter),
            Self::All => true,
        }
    }

    /// Whether the user names this meter.
    pub fn names(&self, meter: Meter) -> bool {
        match self {
            Self::Default | Self::Profile => false,
            Self::Only(chosen) => chosen.contains(&meter),
            Self::All => true,
        }
    }

    /// Whether events may be counted although the user does not ask for them: who chooses meters wants nothing else to disturb.
    pub fn allows_default_events(&self) -> bool {
        matches!(self, Self::Default | Self::All)
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
    fn meters_are_ranked_by_trust_without_the_thread_clock() {
        let order: Vec<Meter> = Meter::by_trust().collect();
        use Meter::*;
        assert_eq!(order, [TimerList, Idle, ProcStat, Soaker, Sampler, Pmu]);
        assert!(order.iter().all(|meter| meter.sees_whole_machine()));
    }
}
