//! What a percentile needs, and the errors if it is missing.

use super::*;
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
fn a_shift_is_found_with_as_many_groups_as_there_are() {
    let rounds = arms(12, 3000, 1e6, 1.2e6);
    let found = percentile(&paired(&rounds), 99.0).unwrap();
    assert_eq!(found.ratio.units, 12, "3,000 I/Os a round are enough for p99");
    assert!((found.ratio.theta - 1.2f64.ln()).abs() < 0.01, "{found:?}");
    assert!((found.baseline_ticks / 1.49e6 - 1.0).abs() < 0.01, "{found:?}");
    assert!((found.candidate_ticks / found.baseline_ticks / found.ratio.theta.exp() - 1.0).abs() < 1e-12);
    assert!(found.ratio.excludes_zero());
    let fewer = percentile(&paired(&arms(12, 700, 1e6, 1.2e6)), 99.0).unwrap();
    assert_eq!(fewer.ratio.units, 6, "two rounds of 700 make a group of 1,400");
}

#[test]
fn exactly_enough_is_enough() {
    assert!(percentile(&paired(&arms(6, 1000, 1e6, 1e6)), 99.0).is_ok());
    assert!(percentile(&paired(&arms(6, 10_000, 1e6, 1e6)), 99.9).is_ok());
    assert!(percentile(&paired(&arms(6, 20, 1e6, 1e6)), 50.0).is_ok());
    assert!(percentile(&paired(&arms(6, 1000, 1e6, 1e6)), 1.0).is_ok(), "the low tail as the high one");
}

#[test]
fn missing_samples_are_reported() {
    let message = |rounds: &[[Histogram; 2]], percent| percentile(&paired(rounds), percent).unwrap_err().to_string();
    assert_eq!(
        message(&arms(6, 999, 1e6, 1e6), 99.0),
        "p99 needs 6000 I/Os of each arm, 1000 in each of 6 groups of rounds; there were 5994, 999 in the group with \
         the fewest"
    );
    assert_eq!(message(&arms(5, 9000, 1e6, 1e6), 99.0), "p99 needs 6 rounds or more; there were 5");
    assert!(message(&arms(6, 9000, 1e6, 1e6), 100.0).starts_with("p100 is an extreme"));
    assert!(message(&arms(6, 9000, 1e6, 1e6), f64::NAN).contains("extreme"));
    let mut one_arm = arms(6, 1000, 1e6, 1e6);
    one_arm.iter_mut().for_each(|[_, candidate]| candidate.clear());
    assert!(message(&one_arm, 99.0).contains("there were 0, 0 in"), "the arm with fewer I/Os counts");
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
    let change = found.ratio.change();
    assert!(change.contains(0.007) == Some(true), "{change:?}");
    assert!(change.half_width().unwrap() >= 0.99 * BUCKET_ERROR, "{change:?}");
    assert!(!found.ratio.excludes_zero());
}

#[test]
fn a_shift_function_has_a_row_for_each_percentile() {
    let rounds = arms(6, 1000, 1e6, 1.1e6);
    let rows = shift_function(&paired(&rounds), &[50.0, 99.0, 99.9]);
    let [Ok(p50), Ok(p99), Err(NotEnough::Ios { percent, .. })] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((p50.percent, p99.percent, *percent), (50.0, 99.0, 99.9));
    assert!(p50.baseline_ticks < p99.baseline_ticks);
}

proptest! {
    #[test]
    fn exchanging_the_arms_negates_theta(scale in 0.5f64..2.0, rounds in 6u64..12) {
        let mut arms = arms(rounds, 200, 1e6, 1e6 * scale);
        let there = percentile(&paired(&arms), 90.0).unwrap();
        arms.iter_mut().for_each(|round| round.reverse());
        let back = percentile(&paired(&arms), 90.0).unwrap();
        prop_assert!((there.ratio.theta + back.ratio.theta).abs() < 1e-12);
        prop_assert_eq!(there.baseline_ticks, back.candidate_ticks);
        let (a, b) = (there.ratio.standard_error.unwrap(), back.ratio.standard_error.unwrap());
        prop_assert!((a - b).abs() < 1e-12);
    }

    #[test]
    fn groups_hold_every_round_once(rounds in 6usize..40, groups in 6usize..40) {
        let groups = groups.min(rounds);
        let histogram = Histogram::new();
        let all = vec![LatencyRound { baseline: &histogram, candidate: &histogram }; rounds];
        let lengths: Vec<usize> = grouped(&all, groups).map(<[_]>::len).collect();
        prop_assert_eq!(lengths.len(), groups);
        prop_assert_eq!(lengths.iter().sum::<usize>(), rounds);
        prop_assert!(lengths.iter().max().unwrap() - lengths.iter().min().unwrap() <= 1);
    }
}
