//! Windows and rounds of unequal length, whose rates vary as much whatever their length.

use super::{Random, Scope, contains, percent};
use crate::bench::evidence::Evidence;
use model::histogram::Histogram;
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
    let (mut rows, mut least) = (Vec::new(), 1.0_f64);
    for (shape, (name, lengths)) in (0..).zip(SHAPES) {
        for (figure, (what, estimate)) in (0..).zip(FIGURES) {
            let mut row = vec![format!("{name}: {what}")];
            for (number, units) in (0..).zip(UNITS) {
                let covered = scope.share(7 << 24 | shape << 16 | figure << 8 | number, |random| {
                    contains(&estimate(&lengths(units, random), random), if figure == 0 { 1.0 } else { 0.0 })
                });
                least = least.min(covered);
                row.push(percent(covered));
            }
            rows.push(row);
        }
    }
    let units = UNITS.map(|units| format!("{units} units"));
    let mut header = vec!["units of unequal length"];
    header.extend(units.iter().map(String::as_str));
    evidence.table(&header, &rows);
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
