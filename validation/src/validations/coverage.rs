//! How often the intervals contain the truth, on simulated measurements whose truth is known: percentiles of unequal
//! shapes, heavy tails and stalls, correlated rounds, rare slow states, many metrics at once, and levels over weeks.
//!
//! Nothing is measured, so the machine need not be quiet. `--rounds` is the number of experiments in tens.

mod costs;
mod crossings;
mod lengths;
mod levels;
mod percentiles;
mod rounds;

use crate::bench::Bench;
use crate::bench::evidence::Evidence;
use model::stats::Estimate;
use rand_distr::{Distribution, Exp1, StandardNormal, StandardUniform};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;
use std::fmt::Display;

/// What every part needs: how many experiments, and their seed.
#[derive(Clone, Copy)]
struct Scope {
    experiments: u64,
    seed: u64,
}

impl Scope {
    /// The fraction of the experiments for which `holds` is true. Each figure has its own random numbers.
    fn share(self, figure: u64, mut holds: impl FnMut(&mut Random) -> bool) -> f64 {
        let hits = (0..self.experiments).filter(|number| {
            let seed = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (figure << 32) ^ number;
            holds(&mut Random(Pcg64Mcg::seed_from_u64(seed)))
        });
        self.part(hits.count() as u64)
    }

    /// A count as a fraction of the experiments.
    fn part(self, count: u64) -> f64 {
        count as f64 / self.experiments as f64
    }

    /// Two standard errors of a fraction near 95 %, which chance alone moves it by.
    fn chance(self) -> f64 {
        2.0 * (0.95 * 0.05 / self.experiments as f64).sqrt()
    }
}

pub fn validate(bench: &Bench) -> Evidence {
    let scope = Scope { experiments: 10 * bench.options.rounds as u64, seed: bench.options.seed };
    let mut evidence = Evidence::default();
    evidence.note(format!(
        "Percent of {} simulated experiments whose 95 % interval contains the truth, by chance ±{:.1}.",
        scope.experiments,
        100.0 * scope.chance()
    ));
    percentiles::add(scope, &mut evidence);
    costs::add(scope, &mut evidence);
    lengths::add(scope, &mut evidence);
    rounds::add(scope, &mut evidence);
    crossings::add(scope, &mut evidence);
    levels::add(scope, &mut evidence);
    evidence
}

/// A table of one figure for each row and column: `cell` gets the number of both, for its random numbers, and their values.
fn grid<R, C: Display>(
    evidence: &mut Evidence,
    (corner, units): (&str, &str),
    rows: &[(impl ToString, R)],
    columns: &[C],
    mut cell: impl FnMut(u64, &R, &C) -> String,
) {
    let heads = columns.iter().map(|column| format!("{column}{units}"));
    let head: Vec<String> = std::iter::once(corner.to_owned()).chain(heads).collect();
    let row = |(number, (name, row)): (u64, &(_, R))| {
        let cells = (0..).zip(columns).map(|(column, value)| cell(number << 8 | column, row, value));
        std::iter::once(ToString::to_string(name)).chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = (0..).zip(rows).map(row).collect();
    evidence.table(&head.iter().map(String::as_str).collect::<Vec<_>>(), &rows);
}

fn contains(estimate: &Estimate, truth: f64) -> bool {
    estimate.contains(truth) == Some(true)
}

/// "94.6".
fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

struct Random(Pcg64Mcg);

impl Random {
    fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.0)
    }

    fn exponential(&mut self) -> f64 {
        Exp1.sample(&mut self.0)
    }

    fn uniform(&mut self) -> f64 {
        StandardUniform.sample(&mut self.0)
    }

    /// Mean 0, standard deviation 1, and a correlation of ρ with the value before.
    fn series(&mut self, count: usize, correlation: f64) -> Vec<f64> {
        let mut value = self.normal();
        let own = (1.0 - correlation * correlation).sqrt();
        let mut next = || {
            let now = value;
            value = correlation * value + own * self.normal();
            now
        };
        (0..count).map(|_| next()).collect()
    }
}
