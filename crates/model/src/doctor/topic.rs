//! The topics of the checks, and why each matters.

use serde::{Deserialize, Serialize};

/// What a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// The hypervisor, in a guest.
    Hypervisor,
    /// The clock in which cycles are counted.
    ReferenceClock,
    /// The kernel's clock source.
    Clocksource,
    /// The frequency governor.
    Governor,
    /// Turbo frequencies.
    Turbo,
    /// Sleep states of idle CPUs.
    IdleStates,
    /// Threads that share a core.
    Hyperthreads,
    /// Power management of PCIe links.
    PciePower,
    /// Mitigations of CPU vulnerabilities.
    Mitigations,
    /// Debugging options of the kernel.
    KernelDebugging,
    /// CPU time stolen by the hypervisor.
    Steal,
    /// Other work on the machine.
    Background,
    /// Limits of the control groups that iotoll runs in.
    ControlGroups,
    /// Settings and processes left behind by killed iotoll processes.
    LeftBehind,
    IoUring,
    /// Permission to use perf events.
    PerfEvents,
    /// User privileges.
    Privilege,
}

impl Topic {
    /// The title in reports.
    pub fn title(self) -> &'static str {
        match self {
            Self::Hypervisor => "hypervisor",
            Self::ReferenceClock => "reference clock",
            Self::Clocksource => "kernel clock",
            Self::Governor => "governor",
            Self::Turbo => "turbo",
            Self::IdleStates => "C-states",
            Self::Hyperthreads => "hyperthreads",
            Self::PciePower => "PCIe power",
            Self::Mitigations => "mitigations",
            Self::KernelDebugging => "kernel debugging",
            Self::Steal => "steal",
            Self::Background => "background",
            Self::ControlGroups => "cgroup limits",
            Self::LeftBehind => "left behind",
            Self::IoUring => "io_uring",
            Self::PerfEvents => "perf events",
            Self::Privilege => "privilege",
        }
    }

    /// How it affects the numbers.
    pub fn why_it_matters(self) -> &'static str {
        match self {
            Self::Hypervisor => {
                "in a guest, cycles are guest reference cycles: the host's work for the I/O and the \
                 core's true frequency are not included"
            }
            Self::ReferenceClock => {
                "cycles are CPU time in ticks of this clock; it must run at a constant rate, also while CPUs sleep"
            }
            Self::Clocksource => {
                "every latency needs two readings; one that leaves user space or accesses a device \
                 costs as much as a small I/O"
            }
            Self::Governor => {
                "a governor that follows the load makes light loads look expensive and causes false differences"
            }
            Self::Turbo => {
                "the core's frequency then depends on temperature and on the load of other cores, so \
                 the same work takes different times"
            }
            Self::IdleStates => {
                "leaving a deep state takes up to hundreds of microseconds and loses cache contents; the cost is charged \
                 to whatever wakes up"
            }
            Self::Hyperthreads => "a busy sibling thread on the same core makes the same work cost more CPU time",
            Self::PciePower => {
                "a link that sleeps between I/Os adds microseconds to the next I/O of an NVMe disk or NIC"
            }
            Self::Mitigations => {
                "they add to the cost of system calls, context switches and interrupts; numbers of machines \
                 with different mitigations are not comparable"
            }
            Self::KernelDebugging => {
                "kernels built with expensive checks use more cycles per I/O, and the increase differs \
                 between code paths"
            }
            Self::Steal => "stolen CPU time slows I/O down for a reason outside this machine",
            Self::Background => "it is measured and subtracted, but its variation remains in the error",
            Self::ControlGroups => {
                "a load that reaches a limit on CPU time, memory or I/O has the rates and latencies of the limit, not of the machine"
            }
            Self::LeftBehind => {
                "settings that were not restored and processes that still run affect every later measurement"
            }
            Self::IoUring => "the io_uring engine cannot run without it",
            Self::PerfEvents => "the hardware counter and the sampler need permission to measure whole CPUs",
            Self::Privilege => "some meters and the CPU time of other users' tasks are only available to root",
        }
    }
}
