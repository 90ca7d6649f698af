//! Sweeps: crossings that the rounds hardly resolve, and peaks of rates that never fall.

use super::{Scope, percent};
use crate::bench::evidence::Evidence;
use model::stats::{Crossover, Good, LoadPoint, Pair, PairedRound, Resolution, SweepPoint, crossover, scalability};

pub fn add(scope: Scope, evidence: &mut Evidence) {
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
            let kind = match crossover(&points, Resolution::default(), Good::Lower) {
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
