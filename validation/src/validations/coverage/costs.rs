//! Costs: a ratio of sums over windows whose cycles have stalls, long tails, or a memory.

use super::{Random, Scope, contains, percent};
use crate::bench::evidence::Evidence;
use model::stats::{Neighbours, Pair, dominant, ratio_of_sums};

const UNITS: [usize; 4] = [6, 10, 20, 60];

/// A distribution of the cycles of a window with mean `mean`.
struct Windows {
    name: &'static str,
    mean: f64,
    draw: fn(&mut Random) -> f64,
}

const SHAPES: [Windows; 7] = [
    Windows { name: "normal, ±10 %", mean: 1.0, draw: |random| 1.0 + 0.1 * random.normal() },
    Windows { name: "exponential", mean: 1.0, draw: Random::exponential },
    Windows { name: "lognormal, σ 1", mean: 1.648_721_270_700_128, draw: |random| random.normal().exp() },
    Windows { name: "× 20 in 5 %", mean: 1.95, draw: |random| if random.uniform() < 0.05 { 20.0 } else { 1.0 } },
    Windows { name: "× 20 in 20 %", mean: 4.8, draw: |random| if random.uniform() < 0.2 { 20.0 } else { 1.0 } },
    Windows { name: "Pareto 2.5", mean: 2.5 / 1.5, draw: |random| (random.exponential() / 2.5).exp() },
    Windows { name: "Pareto 1.5", mean: 3.0, draw: |random| (random.exponential() / 1.5).exp() },
];

pub fn add(scope: Scope, evidence: &mut Evidence) {
    let rows = (0..).zip(&SHAPES).map(|(shape, windows)| {
        let mut row = vec![windows.name.to_owned()];
        for (number, units) in (0..).zip(UNITS) {
            let mut named = 0_u64;
            let covered = scope.share(1 << 24 | shape << 8 | number, |random| {
                let pairs: Vec<Pair> = (0..units)
                    .map(|_| Pair {
                        numerator: (windows.draw)(random) * (1.0 + 0.01 * random.normal()),
                        denominator: 1.0,
                    })
                    .collect();
                named += u64::from(dominant(&pairs).is_some());
                ratio_of_sums(&pairs, Neighbours::Alike).is_some_and(|ratio| contains(&ratio.estimate(), windows.mean))
            });
            row.push(format!("{} ({})", percent(covered), percent(named as f64 / scope.experiments as f64)));
        }
        row
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let units: Vec<String> = UNITS.iter().map(|units| format!("{units} windows")).collect();
    let mut header = vec!["a cost (in brackets: one window is named as carrying the mean)"];
    header.extend(units.iter().map(String::as_str));
    evidence.table(&header, &rows);
    evidence.note(
        "A stall in 5 % of windows is in none of 20 windows in 36 % of experiments, in none of 6 in 74 %: no interval can \
         contain what no window shows.",
    );

    let rows = (0..).zip([0.0, 0.3, 0.5, 0.9]).map(|(place, correlation)| {
        let mut row = vec![format!("ρ {correlation}")];
        for (number, units) in (0..).zip([6, 8, 12, 20]) {
            let covered = scope.share(2 << 24 | place << 8 | number, |random| {
                let values = random.series(units, correlation);
                let pairs: Vec<Pair> =
                    values.iter().map(|value| Pair { numerator: 1.0 + 0.05 * value, denominator: 1.0 }).collect();
                ratio_of_sums(&pairs, Neighbours::Alike).is_some_and(|ratio| contains(&ratio.estimate(), 1.0))
            });
            row.push(percent(covered));
        }
        row
    });
    let rows: Vec<Vec<String>> = rows.collect();
    evidence.table(&["a cost of correlated windows", "6 windows", "8", "12", "20"], &rows);
}
