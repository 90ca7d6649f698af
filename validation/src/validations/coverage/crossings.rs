//! Sweeps: crossings of straight costs, crossings that the rounds hardly resolve, and peaks of rates that never fall.

use super::{Scope, contains, percent};
use crate::bench::evidence::Evidence;
use model::stats::{
    Between, Crossover, Good, LoadPoint, Pair, PairedRound, Resolution, SweepPoint, crossover, scalability,
};

/// Costs of 20,000 + 1 · b and 30,000 + 0.8 · b cycles, in sizes from 4 KiB to 1 MiB.
fn straight(scope: Scope, evidence: &mut Evidence) {
    let (mut rows, mut least) = (Vec::new(), 1.0_f64);
    for (place, doublings) in (0..).zip([1, 2]) {
        let mut row = vec![format!("sizes × {}", 1 << doublings)];
        for (number, rounds) in (0..).zip([10, 20, 60]) {
            let mut told = 0_u64;
            let covered = scope.share(9 << 24 | place << 8 | number, |random| {
                let sizes = (12..=20).step_by(doublings).map(|power| f64::from(1 << power));
                let cells: Vec<(f64, Vec<PairedRound>)> = sizes
                    .map(|size| {
                        let mut pair =
                            |cost: f64| Pair { numerator: cost * (0.02 * random.normal()).exp(), denominator: 1.0 };
                        let mut round =
                            || PairedRound { baseline: pair(20_000.0 + size), candidate: pair(30_000.0 + 0.8 * size) };
                        (size, (0..rounds).map(|_| round()).collect())
                    })
                    .collect();
                let points: Vec<SweepPoint> = cells.iter().map(|(at, rounds)| SweepPoint { at: *at, rounds }).collect();
                match crossover(&points, Resolution::default(), Good::Lower, Between::CostPerIo) {
                    Some(Crossover::At { at, .. }) => {
                        told += 1;
                        contains(&at, 50_000.0)
                    }
                    _ => false,
                }
            });
            let of_told = covered * scope.experiments as f64 / told as f64;
            least = least.min(of_told);
            row.push(percent(of_told));
        }
        rows.push(row);
    }
    let wanted = 0.94 - scope.chance();
    let claim =
        format!("crossings of costs that are straight in the size are covered in {} % or more", percent(wanted));
    evidence.criterion(least >= wanted, claim);
    evidence.table(&["crossing of straight costs", "10 rounds", "20", "60"], &rows);
}

pub fn add(scope: Scope, evidence: &mut Evidence) {
    straight(scope, evidence);
    let mut rows = Vec::new();
    for (place, last) in (0..).zip([0.001, 0.005, 0.02]) {
        // The candidate wins at 1 and 2, and loses at 4 by `last`.
        let effects = [-0.05, -0.02, last];
        let mut kinds = [0_u64; 4];
        scope.share(7 << 24 | place, |random| {
            let cells: Vec<Vec<PairedRound>> = effects
                .iter()
                .map(|effect: &f64| {
                    let mut pair =
                        |level: f64| Pair { numerator: level * (0.01 * random.normal()).exp(), denominator: 1.0 };
                    (0..20).map(|_| PairedRound { baseline: pair(1.0), candidate: pair(effect.exp()) }).collect()
                })
                .collect();
            let points: Vec<SweepPoint> =
                [1.0, 2.0, 4.0].iter().zip(&cells).map(|(&at, rounds)| SweepPoint { at, rounds }).collect();
            let kind = match crossover(&points, Resolution::default(), Good::Lower, Between::CostPerIo) {
                Some(Crossover::At { .. }) => 0,
                Some(Crossover::Unresolved { .. }) => 1,
                Some(Crossover::Everywhere { .. }) => 2,
                _ => 3,
            };
            if let Some(count) = kinds.get_mut(kind) {
                *count += 1;
            }
            true
        });
        let part = |count: &u64| percent(*count as f64 / scope.experiments as f64);
        let mut row = vec![format!("−5 %, −2 %, {:+.1} %", 100.0 * last)];
        row.extend(kinds.iter().map(part));
        rows.push(row);
    }
    evidence.table(&["a crossing", "% found", "% not resolved", "% \"everywhere\"", "% other"], &rows);

    let numbers = [1.0, 2.0, 4.0, 8.0, 16.0];
    let rows = (0..).zip([(0.1, 0.0), (0.02, 0.0), (0.02, 0.01)]).map(|(place, (serial, pairs))| {
        let peaks = scope.share(8 << 24 | place, |random| {
            let cells: Vec<Vec<Pair>> = numbers
                .iter()
                .map(|n: &f64| {
                    let rate = n / (1.0 + serial * (n - 1.0) + pairs * n * (n - 1.0));
                    (0..10)
                        .map(|_| Pair { numerator: rate * (0.02 * random.normal()).exp(), denominator: 1.0 })
                        .collect()
                })
                .collect();
            let points: Vec<LoadPoint> =
                numbers.iter().zip(&cells).map(|(&submitters, rounds)| LoadPoint { submitters, rounds }).collect();
            scalability(&points).is_some_and(|fit| fit.peak().is_some())
        });
        vec![format!("σ {serial}, κ {pairs}"), percent(peaks)]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    evidence.table(&["Universal Scalability Law", "% with a peak"], &rows);
}
