//! CPU time and cycles with their scope in the type.
//!
//! The types exclude two published mistakes with "cycles per I/O". A busy time has a scope ([`WholeMachine`],
//! [`WorkloadThreads`]), so the utilisation of one core cannot be used for a machine. And [`Capacity`], CPUs × wall
//! time, cannot be divided by I/Os: what a machine could have spent is not what an I/O costs. Only subtracting an idle
//! time gives a cost.

use crate::unit::{Hertz, Nanos};
use std::marker::PhantomData;

/// Scope: every CPU, whoever used it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WholeMachine;

/// Scope: the threads of the workload, without what others did for them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkloadThreads;

/// The time that a machine can spend in a window: the sum over CPUs of the window's length on that CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    nanos: f64,
}

impl Capacity {
    /// `cpus` CPUs for `wall`.
    pub fn of(cpus: u32, wall: Nanos) -> Self {
        Self { nanos: f64::from(cpus) * wall.as_f64() }
    }

    /// The time of the whole machine that was not idle, including what the hypervisor stole while a CPU was busy. A
    /// clock that ran a little ahead can make it negative. It is not clipped, because the sum over windows corrects
    /// that.
    pub fn minus_idle(self, idle: Nanos) -> BusyTime<WholeMachine> {
        BusyTime::from_nanos(self.nanos - idle.as_f64())
    }

    /// The fraction of the capacity that `busy` is, 0 to 1.
    pub fn share(self, busy: BusyTime<WholeMachine>) -> f64 {
        if self.nanos > 0.0 { busy.nanos / self.nanos } else { 0.0 }
    }

    pub fn cpu_seconds(self) -> f64 {
        self.nanos / 1e9
    }
}

/// CPU time used within a scope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BusyTime<Scope> {
    nanos: f64,
    scope: PhantomData<Scope>,
}

impl<Scope> BusyTime<Scope> {
    /// From nanoseconds of CPU time of this scope.
    pub fn from_nanos(nanos: f64) -> Self {
        Self { nanos, scope: PhantomData }
    }

    /// Nanoseconds of CPU time.
    pub fn nanos(self) -> f64 {
        self.nanos
    }

    /// Reference cycles: TSC Hz × CPU time.
    pub fn cycles(self, clock: Hertz) -> Cycles<Scope> {
        Cycles { count: self.nanos * clock.0 / 1e9, scope: PhantomData }
    }
}

/// Cycles used within a scope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cycles<Scope> {
    count: f64,
    scope: PhantomData<Scope>,
}

impl<Scope> Cycles<Scope> {
    /// From a hardware counter of this scope.
    pub fn counted(count: f64) -> Self {
        Self { count, scope: PhantomData }
    }

    /// Number of cycles.
    pub fn count(self) -> f64 {
        self.count
    }

    /// Cycles per I/O or byte; `None` if `work` is 0.
    pub fn per(self, work: u64) -> Option<f64> {
        (work > 0).then(|| self.count / work as f64)
    }
}

impl<Scope> std::ops::Add for Cycles<Scope> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::counted(self.count + other.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seed 000 divided 12 cores × 1.6 GHz by IOPS and called the result cycles per I/O. With the CPU time that the
    /// benchmark itself printed, the same run gives another result.
    #[test]
    fn seed_000_recomputed_from_cpu_time_shows_the_patch_cost_more() {
        let clock = Hertz(1.6e9);
        let cost = |cpu_seconds: f64, ios: u64| {
            BusyTime::<WorkloadThreads>::from_nanos(cpu_seconds * 1e9).cycles(clock).per(ios).unwrap()
        };
        let (map, pull_up) = (cost(1635.689, 25_161_863), cost(1689.916, 25_159_897));
        assert!((pull_up / map - 1.033).abs() < 0.001, "{map} {pull_up}");
    }

    #[test]
    fn busy_is_capacity_less_idle() {
        let capacity = Capacity::of(2, Nanos::from_secs(1));
        let busy = capacity.minus_idle(Nanos::from_millis(1600));
        assert_eq!(busy.cycles(Hertz(1e9)).per(4), Some(1e8));
        assert_eq!(capacity.share(busy), 0.2);
        assert_eq!(busy.cycles(Hertz(1e9)).per(0), None);
    }
}
