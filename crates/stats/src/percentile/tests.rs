//! What a percentile needs, and the errors if it is missing.

use super::*;
use crate::estimate::CONFIDENCE;
use proptest::prelude::*;

/// `count` latencies spread over 0.5 to 1.5 times `scale`, deterministic; `turn` shifts them slightly.
fn spread(count: u64, scale: f64, turn: u64) -> Histogram {
    let mut histogram = Histogram::new();
    for index in 0..count {
        let part = ((index * 7919 + turn * 104_729) % 10_007) as f64 / 10_007.0;
        histogram.record((scale * (0.5 + part)) as u64, 1);
    }
    histogram
}

fn arms(rounds: u64, ios: u64, baseline: f64, candidate: f64) -> Vec<[Histogram; 2]> {
    (0..rounds).map(|round| [spread(ios, baseline, 2 * round), spread(ios, candidate, 2 * round + 1)]).collect()
}

fn paired(rounds: &[[Histogram; 2]]) -> Vec<LatencyRound<'_>> {
    rounds.iter().map(|[baseline, candidate]| LatencyRound { baseline, candidate }).collect()
}

#[test]
fn a_shift_is_found() {
    let rounds = arms(12, 3000, 1e6, 1.2e6);
    let found = percentile(&paired(&rounds), 99.0).unwrap();
    assert_eq!(found.units, 12);
    assert!((found.theta - 1.2f64.ln()).abs() < 0.01, "{found:?}");
    assert!((found.baseline_ticks / 1.49e6 - 1.0).abs() < 0.01, "{found:?}");
    assert!((found.candidate_ticks / found.baseline_ticks / found.theta.exp() - 1.0).abs() < 1e-12);
    let change = found.change(CONFIDENCE);
    assert!(change.low.unwrap() > 0.18 && change.high.unwrap() < 0.22, "{change:?}");
    assert!(found.p_value().unwrap() < 1e-9);
}

/// 8 of 1,000 I/Os are 50 times slower in each round: the 99th percentile is that of the fast ones, however many rounds
/// there are. The mean of the percentiles of rounds is not: with 8 ± 3 slow ones, some rounds have more than ten.
#[test]
fn rare_slow_ios_do_not_move_a_percentile_that_they_do_not_reach() {
    use rand_pcg::rand_core::SeedableRng;
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(7);
    let mut uniform = || -> f64 { rand_distr::Distribution::sample(&rand_distr::StandardUniform, &mut random) };
    let mut of = |slow: f64| {
        let mut histogram = Histogram::new();
        for _ in 0..1000 {
            let factor = if uniform() < slow { 50.0 } else { 1.0 };
            histogram.record((1e5 * factor * (0.9 + 0.2 * uniform())) as u64, 1);
        }
        histogram
    };
    let rounds: Vec<[Histogram; 2]> = (0..60).map(|_| [of(0.0), of(0.008)]).collect();
    // The fast ones reach 1.1e5; their 99.8th percentile is the 99th of all.
    let change = percentile(&paired(&rounds), 99.0).unwrap().change(CONFIDENCE);
    assert!(change.value.abs() < 0.02 && change.high.unwrap() < 0.05, "{change:?}");
    let few = percentile(&paired(&rounds[..6]), 99.0).unwrap().change(CONFIDENCE);
    assert!(few.value.abs() < 0.02 && few.high.unwrap() > 1.0, "six rounds do not exclude that it does: {few:?}");
}

#[test]
fn exactly_enough_is_enough() {
    assert!(percentile(&paired(&arms(6, 1000, 1e6, 1e6)), 99.0).is_ok());
    assert!(percentile(&paired(&arms(6, 10_000, 1e6, 1e6)), 99.9).is_ok());
    assert!(percentile(&paired(&arms(6, 20, 1e6, 1e6)), 50.0).is_ok(), "120 in all");
    assert!(percentile(&paired(&arms(60, 100, 1e6, 1e6)), 99.0).is_ok(), "however they are spread over rounds");
    assert!(percentile(&paired(&arms(6, 1000, 1e6, 1e6)), 1.0).is_ok(), "the low tail as the high one");
}

#[test]
fn missing_samples_are_reported() {
    let message = |rounds: &[[Histogram; 2]], percent| percentile(&paired(rounds), percent).unwrap_err().to_string();
    assert_eq!(message(&arms(6, 999, 1e6, 1e6), 99.0), "p99 needs 6000 I/Os of each arm; there were 5994");
    assert_eq!(message(&arms(5, 9000, 1e6, 1e6), 99.0), "p99 needs 6 rounds or more; there were 5");
    assert!(message(&arms(6, 9000, 1e6, 1e6), 100.0).starts_with("p100 is an extreme"));
    assert!(message(&arms(6, 9000, 1e6, 1e6), f64::NAN).contains("extreme"));
    let mut one_arm = arms(6, 1000, 1e6, 1e6);
    one_arm.iter_mut().for_each(|[_, candidate]| candidate.clear());
    assert!(message(&one_arm, 99.0).ends_with("there were 0"), "the arm with fewer I/Os counts");
}

/// Both arms fall into one bucket in every round. This proves neither a difference below the bucket's width nor none.
#[test]
fn the_interval_includes_the_bucket_width() {
    let one = |value: u64| {
        let mut histogram = Histogram::new();
        histogram.record(value, 1000);
        histogram
    };
    let rounds: Vec<[Histogram; 2]> = (0..10).map(|_| [one(1_000_000), one(1_007_000)]).collect();
    let found = percentile(&paired(&rounds), 50.0).unwrap();
    let change = found.change(CONFIDENCE);
    assert!(change.contains(0.007) == Some(true), "{change:?}");
    assert!(change.half_width().unwrap() >= 0.99 * BUCKET_ERROR, "{change:?}");
    assert_eq!(found.p_value(), Some(1.0));
}

/// What moves both arms of a round alike is not an error of the change.
#[test]
fn rounds_that_move_both_arms_alike_do_not_widen_the_interval() {
    let level = |round: u64| 1.0 + 0.05 * ((round * 7) % 12) as f64;
    let alike: Vec<[Histogram; 2]> =
        (0..12).map(|round| [1, 2].map(|turn| spread(3000, 1e6 * level(round), 2 * round + turn))).collect();
    let apart: Vec<[Histogram; 2]> = (0..12)
        .map(|round| [spread(3000, 1e6 * level(round), round), spread(3000, 1e6 * level(round + 5), round)])
        .collect();
    let width = |rounds: &[[Histogram; 2]]| percentile(&paired(rounds), 50.0).unwrap().half_width(CONFIDENCE).unwrap();
    assert!(3.0 * width(&alike) < width(&apart), "{} {}", width(&alike), width(&apart));
}

#[test]
fn an_interval_and_its_p_value_are_the_same_statement() {
    let level = |round: u64, step: u64| 1.0 + 0.05 * ((round * step) % 12) as f64;
    let arm = |round: u64, step: u64, scale: f64| spread(700, scale * level(round, step), round);
    let rounds: Vec<[Histogram; 2]> = (0..12).map(|round| [arm(round, 5, 1e6), arm(round, 7, 1.1e6)]).collect();
    let found = percentile(&paired(&rounds), 50.0).unwrap();
    let p = found.p_value().unwrap();
    assert!((1e-9..1.0).contains(&p), "{p}");
    for (confidence, excludes) in [(1.0 - p * 1.05, true), (1.0 - p * 0.95, false)] {
        let change = found.change(confidence);
        assert_eq!(change.contains(0.0), Some(!excludes), "p {p}: {change:?}");
    }
}

proptest! {
    #[test]
    fn exchanging_the_arms_mirrors_the_interval(scale in 0.5f64..2.0, rounds in 6u64..12) {
        let mut arms = arms(rounds, 200, 1e6, 1e6 * scale);
        let there = percentile(&paired(&arms), 90.0).unwrap();
        arms.iter_mut().for_each(|round| round.reverse());
        let back = percentile(&paired(&arms), 90.0).unwrap();
        prop_assert!((there.theta + back.theta).abs() < 1e-12);
        prop_assert_eq!(there.baseline_ticks, back.candidate_ticks);
        let (there, back) = (there.change(CONFIDENCE), back.change(CONFIDENCE));
        // The integral runs over the baseline's rank, so the two agree to its steps.
        let width = there.high.unwrap().ln_1p() - there.low.unwrap().ln_1p();
        prop_assert!((there.low.unwrap().ln_1p() + back.high.unwrap().ln_1p()).abs() < 0.05 * width);
    }
}
