//! Costs from busy time, worked by hand.

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
    assert_eq!(busy.cycles(Hertz(1e9)).per(0), None);
}
