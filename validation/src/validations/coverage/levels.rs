//! Levels over weeks: changes that are taken back, and neighbours that are alike.

use super::{Scope, percent};
use crate::bench::evidence::Evidence;
use model::stats::change_points;

/// Records of a history, with 1 % of noise.
const RECORDS: usize = 50;

pub fn add(scope: Scope, evidence: &mut Evidence) {
    let found = |figure: u64, correlation: f64, change: f64| {
        scope.share(10 << 24 | figure, |random| {
            let mut logs: Vec<f64> = random.series(RECORDS, correlation).iter().map(|value| 0.01 * value).collect();
            logs.iter_mut().skip(20).take(10).for_each(|log| *log += change.ln_1p());
            !change_points(&logs).is_empty()
        })
    };
    let shares: Vec<[f64; 3]> = (0..)
        .zip([0.0, 0.2, 0.5])
        .map(|(place, correlation)| {
            [(0, 0.0), (1, 0.05), (2, 1.0)].map(|(number, change)| found(place << 8 | number, correlation, change))
        })
        .collect();
    let row = |(name, shares): (&str, &[f64; 3])| std::iter::once(name.to_owned()).chain(shares.map(percent)).collect();
    let rows: Vec<Vec<String>> = ["ρ 0", "ρ 0.2", "ρ 0.5"].into_iter().zip(&shares).map(row).collect();
    if let Some([alarms, small, large]) = shares.first() {
        evidence.criterion(
            *alarms <= 0.01 + scope.chance() && small.min(*large) >= 0.99,
            "of 50 independent records, a change of ten is found, and none where there is none".to_owned(),
        );
    }
    evidence.table(&["% of histories with a change", "unchanged", "+5 % in records 20–29", "× 2"], &rows);
}
