//! CPU time and cycles with their scope in the type.
//!
//! Two mistakes that were made in public with "cycles per I/O" cannot be written here. A busy time
//! knows whose it is ([`WholeMachine`], [`WorkloadThreads`]), so one core's utilisation never stands
//! for a machine's. And [`Capacity`], CPUs × wall time, has no division by I/Os: what a machine could
//! have spent is not what an I/O cost; only subtracting an idle time makes a cost of it.

use crate::unit::{Hertz, Nanos};
use std::marker::PhantomData;

/// Scope: every CPU, whoever used it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WholeMachine;

/// Scope: the threads of the workload and nothing that others did for them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkloadThreads;

/// What a machine can spend in a window: the sum over CPUs of the window's length on that CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    nanos: f64,
}

impl Capacity {
    /// From the length of the window on each CPU.
    pub fn of_windows(windows: impl IntoIterator<Item = Nanos>) -> Self {
        Self { nanos: windows.into_iter().map(Nanos::as_f64).sum() }
    }

    /// `cpus` CPUs for `wall`.
    pub fn of(cpus: usize, wall: Nanos) -> Self {
        Self { nanos: cpus as f64 * wall.as_f64() }
    }

    /// The whole machine's time that was not idle; what the hypervisor took while a CPU was busy is in it. A clock
    /// that ran a little ahead can make it negative; the sum over windows sets that right, so it is
    /// not clipped here.
    pub fn minus_idle(self, idle: Nanos) -> BusyTime<WholeMachine> {
        BusyTime::from_nanos(self.nanos - idle.as_f64())
    }

    /// Which part of the capacity `busy` is, 0 to 1.
    pub fn share(self, busy: BusyTime<WholeMachine>) -> f64 {
        if self.nanos > 0.0 { busy.nanos / self.nanos } else { 0.0 }
    }

    /// In seconds of one CPU.
    pub fn cpu_seconds(self) -> f64 {
        self.nanos / 1e9
    }
}

/// CPU time that was used within a scope.
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

/// Cycles that were used within a scope.
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

    /// How many.
    pub fn count(self) -> f64 {
        self.count
    }

    /// Divided among `work` I/Os or bytes; `None` when there was none.
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

    /// Seed 000 divided 12 cores × 1.6 GHz by IOPS and called it cycles per I/O. With the CPU time
    /// that the benchmark itself printed, the same run reads otherwise.
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
