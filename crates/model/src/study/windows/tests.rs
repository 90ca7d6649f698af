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

/// The kept fraction of each case when `taken` is subtracted, for pairs of busy time and time charged to tasks.
fn kept(cases: &[(f64, f64)], taken: f64) -> Vec<f64> {
    let busy = cases.iter().map(|&(not_idle, charged)| Busy { not_idle, charged });
    let busy: BTreeMap<Option<usize>, Busy> = busy.enumerate().map(|(case, busy)| (Some(case), busy)).collect();
    shares(&busy, taken).into_values().collect()
}

#[test]
fn a_sleeping_load_loses_at_most_its_uncharged_time() {
    let near = |found: Vec<f64>, expected: &[f64]| {
        let same = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9);
        assert!(same && found.len() == expected.len(), "{found:?}, not {expected:?}");
    };
    // One is busy all the time, and 0.3 s were stolen from it; the other sleeps, and lost the CPU while idle.
    near(kept(&[(2.0, 1.7), (0.2, 0.19)], 0.31), &[0.85, 0.95]);
    // Equal cases keep equal fractions, whoever does their work.
    near(kept(&[(1.0, 0.9), (1.0, 0.9)], 0.1), &[0.95, 0.95]);
    near(kept(&[(1.05, 1.0), (1.05, 0.5)], 0.1), &[1.0 / 1.05, 1.0 / 1.05]);
    // Nothing stolen; as much as possible; more than that; a case that did nothing.
    near(kept(&[(1.0, 0.5), (2.0, 0.5)], 0.0), &[1.0, 1.0]);
    near(kept(&[(1.0, 0.5), (2.0, 0.5)], 2.0), &[0.5, 0.25]);
    near(kept(&[(1.0, 0.5), (2.0, 0.5)], 9.0), &[0.5, 0.25]);
    near(kept(&[(0.0, 0.0), (2.0, 0.5)], 0.5), &[1.0, 0.75]);
    near(kept(&[(1.0, 1.1), (2.0, 0.5)], 0.5), &[1.0, 0.75]);
}
