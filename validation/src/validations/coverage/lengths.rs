//! Windows and rounds of unequal length, whose rates vary as much whatever their length.

use super::{Random, Scope, contains, grid, percent};
use crate::bench::evidence::Evidence;
use model::histogram::Histogram;
use model::stats::Evidence as _;
use model::stats::estimate::CONFIDENCE;
use model::stats::{
    Estimate, LatencyRound, Neighbours, Pair, PairedRound, Resolution, log_ratio, percentile, ratio_of_sums,
};

const UNITS: [usize; 3] = [10, 20, 60];
/// Standard deviation of the logarithm of a unit's level.
const LEVEL: f64 = 0.05;
/// I/Os of a unit of length 1.
const IOS: f64 = 100.0;

/// The lengths of this many units.
type Lengths = fn(usize, &mut Random) -> Vec<f64>;

const SHAPES: [(&str, Lengths); 3] = [
    ("equal", |units, _| vec![1.0; units]),
    ("lognormal, σ 1", |units, random| (0..units).map(|_| random.normal().exp()).collect()),
    ("the first × 20", |units, _| (0..units).map(|unit| if unit == 0 { 20.0 } else { 1.0 }).collect()),
];

/// What is estimated of units with these lengths.
type Figure = fn(&[f64], &mut Random) -> Estimate;

const FIGURES: [(&str, Figure); 3] = [("a cost", cost), ("a change", change), ("a change of p50", median)];

pub fn add(scope: Scope, evidence: &mut Evidence) {
    let mut least = 1.0_f64;
    let mut rows = Vec::new();
    for (shape, (name, lengths)) in (0..).zip(SHAPES) {
        for (figure, (what, estimate)) in (0..).zip(FIGURES) {
            rows.push((format!("{name}: {what}"), (shape << 16 | figure << 8, lengths, estimate)));
        }
    }
    grid(
        evidence,
        ("units of unequal length", " units"),
        &rows,
        &UNITS,
        |number, (figure, lengths, estimate), units| {
            let truth = if figure & 0xff00 == 0 { 1.0 } else { 0.0 };
            let covered = scope.share(7 << 24 | figure | number & 0xff, |random| {
                contains(&estimate(&lengths(*units, random), random), truth)
            });
            least = least.min(covered);
            percent(covered)
        },
    );
    let wanted = 0.93 - scope.chance();
    evidence
        .criterion(least >= wanted, format!("units of unequal length are covered in {} % or more", percent(wanted)));
}

fn arm(lengths: &[f64], random: &mut Random) -> Vec<Pair> {
    let unit = |&length: &f64| Pair { numerator: length * (1.0 + LEVEL * random.normal()), denominator: length };
    lengths.iter().map(unit).collect()
}

fn cost(lengths: &[f64], random: &mut Random) -> Estimate {
    let found = ratio_of_sums(&arm(lengths, random), Neighbours::Alike);
    found.map_or(Estimate::bare(f64::NAN), |found| found.estimate())
}

fn change(lengths: &[f64], random: &mut Random) -> Estimate {
    let arms = arm(lengths, random).into_iter().zip(arm(lengths, random));
    let rounds: Vec<PairedRound> = arms.map(|(baseline, candidate)| PairedRound { baseline, candidate }).collect();
    let found = log_ratio(&rounds, Resolution::default());
    found.map_or(Estimate::bare(f64::NAN), |found| found.change(CONFIDENCE))
}

fn median(lengths: &[f64], random: &mut Random) -> Estimate {
    let mut arm = || -> Vec<Histogram> {
        let round = |&length: &f64| {
            let (level, mut latencies) = (LEVEL * random.normal(), Histogram::new());
            for _ in 0..(IOS * length).ceil() as usize {
                latencies.record((1e5 * (level + 0.2 * random.normal()).exp()) as u64, 1);
            }
            latencies
        };
        lengths.iter().map(round).collect()
    };
    let (baseline, candidate) = (arm(), arm());
    let rounds = baseline.iter().zip(&candidate);
    let rounds: Vec<LatencyRound> = rounds.map(|(baseline, candidate)| LatencyRound { baseline, candidate }).collect();
    percentile(&rounds, 50.0).map_or(Estimate::bare(f64::NAN), |found| found.change(CONFIDENCE))
}
