//! The things that a diagnosis looks at, and why each of them matters.

use serde::{Deserialize, Serialize};

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// A hypervisor underneath.
    Hypervisor,
    /// The clock in which cycles are counted.
    ReferenceClock,
    /// The clock that the kernel tells time by.
    Clocksource,
    /// Who sets the frequency, and to what.
    Governor,
    /// Frequencies above the nominal one.
    Turbo,
    /// Whether the frequency stays where it is.
    ConstantFrequency,
    /// Sleep states of idle CPUs.
    IdleStates,
    /// Threads that share a core.
    Hyperthreads,
    /// Power saving of PCIe links.
    PciePower,
    /// Protections against faults of the CPU.
    Mitigations,
    /// Checks compiled into the kernel.
    KernelDebugging,
    /// CPU time that the hypervisor took.
    Steal,
    /// Other work on the machine.
    Background,
    /// Memory nodes.
    Numa,
    /// CPUs kept apart from the scheduler.
    Isolation,
    /// A daemon that moves interrupts.
    Irqbalance,
    /// What iotolls that were killed left behind.
    LeftBehind,
    /// io_uring.
    IoUring,
    /// How much memory may be locked.
    LockedMemory,
    /// Who may use perf events.
    PerfEvents,
    /// Who may see kernel symbols.
    KernelSymbols,
    /// The user.
    Privilege,
}

impl Topic {
    /// As people read it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Hypervisor => "hypervisor",
            Self::ReferenceClock => "reference clock",
            Self::Clocksource => "kernel clock",
            Self::Governor => "governor",
            Self::Turbo => "turbo",
            Self::ConstantFrequency => "constant clock",
            Self::IdleStates => "C-states",
            Self::Hyperthreads => "hyperthreads",
            Self::PciePower => "PCIe power",
            Self::Mitigations => "mitigations",
            Self::KernelDebugging => "kernel debugging",
            Self::Steal => "steal",
            Self::Background => "background",
            Self::Numa => "NUMA",
            Self::Isolation => "isolated CPUs",
            Self::Irqbalance => "irqbalance",
            Self::LeftBehind => "left behind",
            Self::IoUring => "io_uring",
            Self::LockedMemory => "locked memory",
            Self::PerfEvents => "perf events",
            Self::KernelSymbols => "kernel symbols",
            Self::Privilege => "privilege",
        }
    }

    /// What it does to the numbers.
    pub fn why_it_matters(self) -> &'static str {
        match self {
            Self::Hypervisor => {
                "in a guest, cycles are guest reference cycles: what the host does for the I/O, and the \
                 core's true frequency, are not in them"
            }
            Self::ReferenceClock => {
                "cycles are CPU time in ticks of this clock; it must run at one rate, also while CPUs sleep"
            }
            Self::Clocksource => {
                "every latency takes two readings of it; one that leaves user space or asks a device \
                 costs as much as a small I/O"
            }
            Self::Governor => {
                "a governor that follows the load makes light loads look expensive and gives A/A differences"
            }
            Self::Turbo => {
                "the core's frequency then depends on heat and on what the other cores do, so \
                 equal work takes unequal time"
            }
            Self::ConstantFrequency => {
                "cycles per I/O is CPU time × reference clock: true cycles only while both clocks keep one ratio"
            }
            Self::IdleStates => {
                "leaving a deep state takes up to hundreds of microseconds and empties caches; it is charged \
                 to whatever wakes up"
            }
            Self::Hyperthreads => {
                "two threads of one core do not add up: a busy sibling makes the same work cost more CPU time"
            }
            Self::PciePower => {
                "a link that sleeps between I/Os adds microseconds to the next one on an NVMe disk or NIC"
            }
            Self::Mitigations => {
                "they are part of what a system call, a switch and an interrupt cost; numbers of machines \
                 with other ones do not compare"
            }
            Self::KernelDebugging => {
                "kernels built with CPU-intensive checks cost more cycles per I/O, and not equally more on \
                 every path"
            }
            Self::Steal => "a CPU that was taken away makes I/Os slow for a reason that is not in this machine",
            Self::Background => "it is measured and subtracted, but its own ups and downs stay in the error",
            Self::Numa => {
                "the same work costs more when its memory, device or peer is on another node; left \
                 to chance, it is a hidden difference between arms"
            }
            Self::Isolation => "work that is not pinned never runs on such CPUs, though they count as capacity",
            Self::Irqbalance => "it moves interrupts to other CPUs in the middle of a measurement",
            Self::LeftBehind => {
                "a setting that was switched and not put back is in all that is measured since, and so is what was left running"
            }
            Self::IoUring => "the io_uring engine cannot run without it",
            Self::LockedMemory => "registered buffers of io_uring and perf's sample buffers are charged to this limit",
            Self::PerfEvents => "the hardware counter and the sampler watch whole CPUs, which the kernel grants to few",
            Self::KernelSymbols => "without them, cycles in the kernel cannot be charged to functions",
            Self::Privilege => "some meters and the CPU time of other users' tasks are for root only",
        }
    }
}
