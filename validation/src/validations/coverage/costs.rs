//! Costs: a ratio of sums over windows whose cycles have stalls, long tails, or a memory.

use super::{Random, Scope, contains, grid, percent};
use crate::bench::evidence::Evidence;
use model::stats::{Neighbours, Pair, dominant, ratio_of_sums};

const UNITS: [usize; 4] = [6, 10, 20, 60];

/// A distribution of the cycles of a window: its name, its mean, and a draw.
type Windows = (&'static str, f64, fn(&mut Random) -> f64);

const SHAPES: [Windows; 7] = [
    ("normal, ±10 %", 1.0, |random| 1.0 + 0.1 * random.normal()),
    ("exponential", 1.0, Random::exponential),
    ("lognormal, σ 1", 1.648_721_270_700_128, |random| random.normal().exp()),
    ("× 20 in 5 %", 1.95, |random| if random.uniform() < 0.05 { 20.0 } else { 1.0 }),
    ("× 20 in 20 %", 4.8, |random| if random.uniform() < 0.2 { 20.0 } else { 1.0 }),
    ("Pareto 2.5", 2.5 / 1.5, |random| (random.exponential() / 2.5).exp()),
    ("Pareto 1.5", 3.0, |random| (random.exponential() / 1.5).exp()),
];

pub fn add(scope: Scope, evidence: &mut Evidence) {
    let rows = SHAPES.map(|(name, mean, draw)| (name, (mean, draw)));
    let heads = ("a cost (in brackets: one window is named as carrying the mean)", " windows");
    grid(evidence, heads, &rows, &UNITS, |figure, (mean, draw), units| {
        let mut named = 0_u64;
        let covered = scope.share(1 << 24 | figure, |random| {
            let noisy = |cost: f64, random: &mut Random| cost * (1.0 + 0.01 * random.normal());
            let pairs: Vec<Pair> = (0..*units).map(|_| unit(noisy(draw(random), random))).collect();
            named += u64::from(dominant(&pairs).is_some());
            ratio_of_sums(&pairs, Neighbours::Alike).is_some_and(|ratio| contains(&ratio.estimate(), *mean))
        });
        format!("{} ({})", percent(covered), percent(scope.part(named)))
    });
    evidence.note(
        "A stall in 5 % of windows is in none of 20 windows in 36 % of experiments, in none of 6 in 74 %: no interval can \
         contain what no window shows.",
    );
    let rows = [0.0, 0.3, 0.5, 0.9].map(|correlation| (format!("ρ {correlation}"), correlation));
    let heads = ("a cost of correlated windows", " windows");
    grid(evidence, heads, &rows, &[6, 8, 12, 20], |figure, correlation, units| {
        let covered = scope.share(2 << 24 | figure, |random| {
            let values = random.series(*units, *correlation);
            let pairs: Vec<Pair> = values.iter().map(|value| unit(1.0 + 0.05 * value)).collect();
            ratio_of_sums(&pairs, Neighbours::Alike).is_some_and(|ratio| contains(&ratio.estimate(), 1.0))
        });
        percent(covered)
    });
}

fn unit(numerator: f64) -> Pair {
    Pair { numerator, denominator: 1.0 }
}
