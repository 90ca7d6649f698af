//! Percentiles of latency, of arms with unequal shapes.

use super::{Random, Scope, contains, grid, percent};
use crate::bench::evidence::Evidence;
use model::histogram::Histogram;
use model::stats::Evidence as _;
use model::stats::estimate::CONFIDENCE;
use model::stats::{LatencyRound, percentile};
use statrs::distribution::{ContinuousCDF, Normal};

const ROUNDS: [usize; 5] = [6, 12, 30, 60, 240];
const PERCENTS: [f64; 3] = [50.0, 99.0, 99.9];
/// Ticks of a typical I/O.
const TICKS: f64 = 100_000.0;
/// Each arm's level varies from round to round by this standard deviation of its logarithm; both arms', by three times as
/// much.
const OWN_LEVEL: f64 = 0.01;

/// A distribution of ln latency: parts of the I/Os, each with a centre and a standard deviation, or an exponential tail.
type Shape = &'static [Part];

#[derive(Clone, Copy)]
struct Part {
    weight: f64,
    centre: f64,
    width: Width,
}

#[derive(Clone, Copy)]
enum Width {
    Normal(f64),
    /// Latencies follow Pareto's law with this exponent.
    Pareto(f64),
}

const fn normal(weight: f64, centre: f64, deviation: f64) -> Part {
    Part { weight, centre, width: Width::Normal(deviation) }
}

/// ln 50 and ln 5.
const FIFTY: f64 = 3.912_023;
const FIVE: f64 = 1.609_438;

const NARROW: Shape = &[normal(1.0, 0.0, 0.1)];
const WIDE: Shape = &[normal(1.0, 0.0, 0.3)];
const PAIRS: [(&str, Shape, Shape); 6] = [
    ("identical, σ 0.3", WIDE, WIDE),
    ("σ 0.1, σ 0.3", NARROW, WIDE),
    ("σ 0.1, 0.8 % of it × 50", NARROW, &[normal(0.992, 0.0, 0.1), normal(0.008, FIFTY, 0.1)]),
    ("σ 0.1, 1.2 % of it × 50", NARROW, &[normal(0.988, 0.0, 0.1), normal(0.012, FIFTY, 0.1)]),
    ("σ 0.3, two modes", WIDE, &[normal(0.3, 0.0, 0.1), normal(0.7, 0.5, 0.1)]),
    (
        "5 % × 5, Pareto 1.5",
        &[normal(0.95, 0.0, 0.1), normal(0.05, FIVE, 0.3)],
        &[Part { weight: 1.0, centre: 0.0, width: Width::Pareto(1.5) }],
    ),
];

pub fn add(scope: Scope, evidence: &mut Evidence) {
    let mut worst = 1.0_f64;
    let mut rows = Vec::new();
    for (pair, (name, baseline, candidate)) in (0..).zip(PAIRS) {
        for (place, at) in (0..).zip(PERCENTS) {
            let truth = (quantile(candidate, at / 100.0) - quantile(baseline, at / 100.0)).exp_m1();
            let arms = (pair << 16 | place << 8, [baseline, candidate], at, truth);
            rows.push((format!("{name}: p{at}, {:+.1} %", 100.0 * truth), arms));
        }
    }
    let heads = ("percentiles: baseline, candidate: which, true change", " rounds");
    grid(evidence, heads, &rows, &ROUNDS, |number, (figure, arms, at, truth), rounds| {
        // As many as p99.9 needs, and as few as are quick.
        let ios = if *at > 99.5 { 60_000_usize.div_ceil(*rounds).max(2000) } else { 1000 };
        let covered = scope
            .share(figure | number & 0xff, |random| contains(&experiment(*arms, *at, *rounds, ios, random), *truth));
        worst = worst.min(covered);
        percent(covered)
    });
    evidence.note(
        "1,000 I/Os of each arm in each round, for p99.9 as many as 60,000 in all need, at least 2,000. Above 97 %, the \
         interval is ±0.78 %, half a bucket of each histogram, and chance is less than that.",
    );
    let least = 0.93 - scope.chance();
    evidence.criterion(worst >= least, format!("percentiles are covered in {} % or more", percent(least)));
}

fn experiment(arms: [Shape; 2], at: f64, rounds: usize, ios: usize, random: &mut Random) -> model::stats::Estimate {
    let measured: Vec<[Histogram; 2]> = (0..rounds)
        .map(|_| {
            let both = 3.0 * OWN_LEVEL * random.normal();
            arms.map(|shape| {
                let level = both + OWN_LEVEL * random.normal();
                let mut histogram = Histogram::new();
                for _ in 0..ios {
                    histogram.record((TICKS * (level + draw(shape, random)).exp()) as u64, 1);
                }
                histogram
            })
        })
        .collect();
    let rounds: Vec<LatencyRound> =
        measured.iter().map(|[baseline, candidate]| LatencyRound { baseline, candidate }).collect();
    let found = percentile(&rounds, at);
    found.map_or(model::stats::Estimate::bare(f64::NAN), |found| found.change(CONFIDENCE))
}

fn draw(shape: Shape, random: &mut Random) -> f64 {
    let mut place = random.uniform();
    for part in shape {
        if place < part.weight {
            return part.centre
                + match part.width {
                    Width::Normal(deviation) => deviation * random.normal(),
                    Width::Pareto(exponent) => random.exponential() / exponent,
                };
        }
        place -= part.weight;
    }
    0.0
}

/// Of ln latency, over all rounds: each part is widened by the levels of the rounds.
fn quantile(shape: Shape, fraction: f64) -> f64 {
    let (mut low, mut high) = (-10.0_f64, 20.0_f64);
    for _ in 0..60 {
        let middle = low.midpoint(high);
        if below(shape, middle) < fraction { low = middle } else { high = middle }
    }
    high
}

fn below(shape: Shape, place: f64) -> f64 {
    let level = OWN_LEVEL * 10.0_f64.sqrt();
    let part = |part: &Part| {
        let at = place - part.centre;
        part.weight
            * match part.width {
                Width::Normal(deviation) => Normal::standard().cdf(at / deviation.hypot(level)),
                // P(level + X/a ≤ at), X exponential (an exponentially modified normal distribution).
                Width::Pareto(exponent) => {
                    let tilted = (exponent * (exponent * level * level / 2.0 - at)).exp();
                    Normal::standard().cdf(at / level) - tilted * Normal::standard().cdf(at / level - exponent * level)
                }
            }
    };
    shape.iter().map(part).sum()
}
