//! Levels over weeks: changes that are taken back, and neighbours that are alike.

use super::{Scope, grid, percent};
use crate::bench::evidence::Evidence;
use model::stats::change_points;

/// Records of a history, with 1 % of noise.
const RECORDS: usize = 50;

pub fn add(scope: Scope, evidence: &mut Evidence) {
    const CHANGES: [&str; 3] = ["unchanged", "+5 % in records 20–29", "× 2"];
    let (mut independent, rows) =
        (Vec::new(), [0.0, 0.2, 0.5].map(|correlation| (format!("ρ {correlation}"), correlation)));
    grid(evidence, ("% of histories with a change", ""), &rows, &CHANGES, |figure, correlation, change| {
        let change: f64 = if *change == CHANGES[0] {
            0.0
        } else if *change == CHANGES[1] {
            0.05
        } else {
            1.0
        };
        let share = scope.share(10 << 24 | figure, |random| {
            let mut logs: Vec<f64> = random.series(RECORDS, *correlation).iter().map(|value| 0.01 * value).collect();
            logs.iter_mut().skip(20).take(10).for_each(|log| *log += change.ln_1p());
            !change_points(&logs).is_empty()
        });
        independent.extend((*correlation == 0.0).then_some(share));
        percent(share)
    });
    if let [alarms, small, large] = *independent {
        evidence.criterion(
            alarms <= 0.01 + scope.chance() && small.min(large) >= 0.99,
            "of 50 independent records, a change of ten is found, and none where there is none",
        );
    }
}
