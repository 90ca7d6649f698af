//! Golden values of scipy, and properties for arbitrary rounds.

use super::*;
use crate::estimate::{CONFIDENCE, Pair};
use crate::evidence::{Evidence, Resolution, log_ratio};
use proptest::prelude::*;

fn of_ratios(ratios: &[f64]) -> Vec<PairedRound> {
    let round = |&ratio: &f64| PairedRound {
        baseline: Pair { numerator: 3.0, denominator: 1.0 },
        candidate: Pair { numerator: 6.0 * ratio, denominator: 2.0 },
    };
    ratios.iter().map(round).collect()
}

/// For each number of rounds the largest k for which scipy.stats.wilcoxon's exact two-sided p of W = k is at most 0.05,
/// scipy 1.17.1; these are also the critical values of printed tables.
#[test]
fn cuts_agree_with_scipy() {
    let rounds = [6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50];
    let expected = [0, 2, 3, 5, 8, 13, 25, 52, 89, 137, 264, 434];
    assert_eq!(rounds.map(cut), expected.map(Some));
    for rounds in 0..6 {
        assert_eq!(cut(rounds), None, "{rounds} rounds cannot give 95 %");
    }
}

/// The exact cut, by the same recursion in numpy, for more rounds than this code computes exactly.
#[test]
fn the_normal_cut_errs_by_one_at_most_and_to_the_safe_side() {
    for (rounds, exact) in [(101, 1997), (120, 2881), (200, 8444)] {
        let found = cut(rounds).unwrap();
        assert!(found == exact || found + 1 == exact, "{rounds} rounds: {found} for {exact}");
    }
}

/// Median of the 55 Walsh averages of the logs, and the 9th from below and from above, numpy 2.4.6.
#[test]
fn golden() {
    let found = typical(&of_ratios(&[1.02, 1.05, 0.99, 1.04, 1.31, 1.03, 1.06, 1.01, 1.045, 1.025])).unwrap();
    for (found, expected) in [
        (found.value, 0.034951689693774955),
        (found.low.unwrap(), 0.017128310489881074),
        (found.high.unwrap(), 0.15026083999369694),
    ] {
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }
}

#[test]
fn few_rounds_have_a_value_without_an_interval() {
    let found = typical(&of_ratios(&[1.1, 1.1, 1.1])).unwrap();
    assert!((found.value - 0.1).abs() < 1e-12);
    assert_eq!((found.low, found.high), (None, None));
    assert_eq!(typical(&[]), None);
}

#[test]
fn a_negative_round_has_no_logarithm() {
    assert_eq!(typical(&of_ratios(&[1.0, 1.0, -0.1, 1.0, 1.0, 1.0, 1.0])), None);
    assert_eq!(typical(&of_ratios(&[1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0])), None);
}

/// 10⁵ rounds have 5·10⁹ Walsh averages: storing them would need 40 GB, and sorting them minutes.
#[test]
fn the_rounds_of_a_day_are_fast() {
    const ROUNDS: usize = 100_001;
    // Symmetric around 0.03, in no particular order.
    let log = |i: usize| 0.03 + 0.2 * ((i * 7919 % ROUNDS) as f64 / (ROUNDS - 1) as f64 - 0.5).powi(3);
    let ratios: Vec<f64> = (0..ROUNDS).map(|i| log(i).exp()).collect();
    let rounds = of_ratios(&ratios);
    let begun = std::time::Instant::now();
    let found = typical(&rounds).unwrap();
    assert!(begun.elapsed().as_secs_f64() < 10.0, "{:?}", begun.elapsed());
    let mut sorted = ratios;
    sorted.sort_by(f64::total_cmp);
    let median = sorted[ROUNDS / 2] - 1.0;
    assert!((found.value - median).abs() < 1e-9, "{found:?} {median}");
    let (low, high) = (found.low.unwrap(), found.high.unwrap());
    assert!(low < median && median < high && high - low < 1e-4, "{found:?}");
}

/// The median by storing and sorting all Walsh averages.
fn sorted_averages(sorted: &[f64]) -> Vec<f64> {
    let pairs = (0..sorted.len()).flat_map(|i| (i..sorted.len()).map(move |j| (i, j)));
    let mut averages: Vec<f64> = pairs.map(|(i, j)| (sorted[i] + sorted[j]) / 2.0).collect();
    averages.sort_by(f64::total_cmp);
    averages
}

/// Six of sixty rounds are a tenth as fast: the sums show it, the typical round does not, and the disagreement is
/// reported.
#[test]
fn rare_stalls_change_the_shape() {
    let wobble = |i: usize| 1.0 + 0.001 * ((i * 37 % 11) as f64 - 5.0);
    let with_stalls = |stalled: f64| -> Vec<PairedRound> {
        let ratios: Vec<f64> = (0..60).map(|i| if i % 10 == 3 { stalled } else { wobble(i) }).collect();
        of_ratios(&ratios)
    };
    let sums = |rounds: &[PairedRound]| log_ratio(rounds, Resolution::default()).unwrap().change(CONFIDENCE);
    let told = |rounds: &[PairedRound]| shape_changed(&sums(rounds), &typical(rounds).unwrap());
    assert!(told(&with_stalls(0.1)));
    assert!(!told(&with_stalls(1.0)));
    assert!(typical(&with_stalls(0.1)).unwrap().value.abs() < 0.002);
    assert!(!shape_changed(&Estimate::bare(0.5), &Estimate::bare(0.0)), "without intervals nothing is told");
}

proptest! {
    #[test]
    fn counting_finds_what_sorting_finds(
        values in proptest::collection::vec(prop_oneof![-1.0f64..1.0, Just(0.0), Just(-0.0), Just(0.25)], 1..20),
    ) {
        let mut sorted = values;
        sorted.sort_by(f64::total_cmp);
        for (rank, expected) in sorted_averages(&sorted).into_iter().enumerate() {
            prop_assert_eq!(walsh_average(&sorted, rank), Some(expected));
        }
    }

    #[test]
    fn exchanging_the_arms_inverts_the_ratio(ratios in proptest::collection::vec(0.5f64..2.0, 6..40)) {
        let rounds = of_ratios(&ratios);
        let swapped: Vec<PairedRound> = rounds.iter().map(|round| round.swapped()).collect();
        let (there, back) = (typical(&rounds).unwrap(), typical(&swapped).unwrap());
        let inverse = |a: f64, b: f64| ((1.0 + a) * (1.0 + b) - 1.0).abs() < 1e-9;
        prop_assert!(inverse(there.value, back.value));
        prop_assert!(inverse(there.low.unwrap(), back.high.unwrap()));
        prop_assert!(inverse(there.high.unwrap(), back.low.unwrap()));
    }

    #[test]
    fn one_round_as_bad_as_can_be_hardly_moves_it(ratios in proptest::collection::vec(0.99f64..1.01, 10..40)) {
        let mut worse = ratios.clone();
        worse[0] = 1e-9;
        let (plain, worse) = (typical(&of_ratios(&ratios)).unwrap(), typical(&of_ratios(&worse)).unwrap());
        prop_assert!((plain.value - worse.value).abs() < 0.02);
    }
}
