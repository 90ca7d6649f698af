//! Sweeps: crossings of straight costs, crossings that the rounds hardly resolve, and peaks of rates that never fall.

use super::{Scope, contains, grid, percent};
use crate::bench::evidence::Evidence;
use model::stats::{Between, Crossover, Good, Pair, PairedRound, Resolution, crossover, scalability};

fn unit(numerator: f64) -> Pair {
    Pair { numerator, denominator: 1.0 }
}

fn found(cells: &[(f64, Vec<PairedRound>)]) -> Option<Crossover> {
    crossover(cells, Resolution::default(), Good::Lower, Between::CostPerIo)
}

/// Costs of 20,000 + 1 · b and 30,000 + 0.8 · b cycles, in sizes from 4 KiB to 1 MiB.
fn straight(scope: Scope, evidence: &mut Evidence) {
    let mut least = 1.0_f64;
    let rows = [1, 2].map(|doublings| (format!("sizes × {}", 1 << doublings), doublings));
    grid(evidence, ("crossing of straight costs", " rounds"), &rows, &[10, 20, 60], |figure, doublings, rounds| {
        let mut told = 0_u64;
        let covered = scope.share(9 << 24 | figure, |random| {
            let mut cost = |cost: f64| unit(cost * (0.02 * random.normal()).exp());
            let mut round =
                |size| PairedRound { baseline: cost(20_000.0 + size), candidate: cost(30_000.0 + 0.8 * size) };
            let sizes = (12..=20).step_by(*doublings).map(|power| f64::from(1 << power));
            let cells: Vec<_> = sizes.map(|size| (size, (0..*rounds).map(|_| round(size)).collect())).collect();
            let Some(Crossover::At { at, .. }) = found(&cells) else { return false };
            told += 1;
            contains(&at, 50_000.0)
        });
        let of_told = covered / scope.part(told);
        least = least.min(of_told);
        percent(of_told)
    });
    let wanted = 0.94 - scope.chance();
    let claim =
        format!("crossings of costs that are straight in the size are covered in {} % or more", percent(wanted));
    evidence.criterion(least >= wanted, claim);
}

pub fn add(scope: Scope, evidence: &mut Evidence) {
    straight(scope, evidence);
    let rows = [0.001, 0.005, 0.02].map(|last| {
        // The candidate wins at 1 and 2, and loses at 4 by `last`.
        (format!("−5 %, −2 %, {:+.1} %", 100.0 * last), [(1.0, -0.05), (2.0, -0.02), (4.0, last)])
    });
    let kinds = ["% found", "% not resolved", "% \"everywhere\"", "% other"];
    grid(evidence, ("a crossing", ""), &rows, &kinds, |figure, effects, wanted| {
        let share = scope.share(7 << 24 | figure >> 8, |random| {
            let mut cost = |level: f64| unit(level * (0.01 * random.normal()).exp());
            let mut round = |effect: f64| PairedRound { baseline: cost(1.0), candidate: cost(effect.exp()) };
            let cells = effects.map(|(at, effect)| (at, (0..20).map(|_| round(effect)).collect()));
            let kind = match found(&cells) {
                Some(Crossover::At { .. }) => 0,
                Some(Crossover::Unresolved { .. }) => 1,
                Some(Crossover::Everywhere { .. }) => 2,
                _ => 3,
            };
            kinds.get(kind) == Some(wanted)
        });
        percent(share)
    });

    let rows = [(0.1, 0.0), (0.02, 0.0), (0.02, 0.01)].map(|law| (format!("σ {}, κ {}", law.0, law.1), law));
    grid(evidence, ("Universal Scalability Law", ""), &rows, &["% with a peak"], |figure, (serial, pairs), _| {
        let peaks = scope.share(8 << 24 | figure >> 8, |random| {
            let mut rate = |n: f64| {
                let rate = n / (1.0 + serial * (n - 1.0) + pairs * n * (n - 1.0));
                unit(rate * (0.02 * random.normal()).exp())
            };
            let cells = [1.0, 2.0, 4.0, 8.0, 16.0].map(|n| (n, (0..10).map(|_| rate(n)).collect::<Vec<Pair>>()));
            scalability(&cells).is_some_and(|fit| fit.peak().is_some())
        });
        percent(peaks)
    });
}
