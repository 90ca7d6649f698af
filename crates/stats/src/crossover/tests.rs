//! When a crossing is found, and when not.

use super::*;
use crate::estimate::Pair;
use proptest::prelude::*;

const ROUNDS: usize = 10;

/// Rounds whose θ is `theta`, with a standard error of about `error`; deterministic.
fn rounds(theta: f64, error: f64, turn: usize) -> Vec<PairedRound> {
    let wobble = |round: usize| ((round * 7 + turn * 3) % ROUNDS) as f64 / (ROUNDS - 1) as f64 - 0.5;
    let round = |round: usize| PairedRound {
        baseline: Pair { numerator: 1000.0, denominator: 1.0 },
        candidate: Pair { numerator: 1000.0 * (theta + 9.0 * error * wobble(round)).exp(), denominator: 1.0 },
    };
    (0..ROUNDS).map(round).collect()
}

/// Points with these θ at the powers of a number.
fn points(thetas: &[f64], error: f64, base: f64) -> Vec<SweepPoint> {
    let point = |(turn, theta): (usize, &f64)| (base.powi(turn as i32), rounds(*theta, error, turn));
    thetas.iter().enumerate().map(point).collect()
}

fn between(points: &[SweepPoint], good: Good) -> Option<Crossover> {
    crossover(points, Resolution::default(), good, Between::CostPerIo)
}

/// The crossover of points at 1, 2, 4, 8 … with these θ.
fn of(thetas: &[f64], error: f64, good: Good) -> Crossover {
    between(&points(thetas, error, 2.0), good).unwrap()
}

#[test]
fn a_crossing_lies_where_straight_costs_meet() {
    let found = of(&[-0.2, -0.1, 0.1, 0.2], 1e-4, Good::Higher);
    let Crossover::At { at, winner_above } = found else { panic!("{found:?}") };
    assert_eq!(winner_above, Winner::Candidate);
    let (above, below) = (0.1_f64.exp_m1(), (-0.1_f64).exp_m1());
    assert!((at.value - (2.0 + 2.0 * above / (above - below))).abs() < 0.01, "a bit above 3: {at:?}");
    assert!(at.low.unwrap() < at.value && at.value < at.high.unwrap(), "{at:?}");
    assert!(at.half_width().unwrap() < 0.01, "{at:?}");
}

/// 9 + 6·b and 21 + 2·b cross at 3, in whichever metric.
#[test]
fn every_metric_of_a_line_crosses_at_the_same_size() {
    let crossing = |good, between, pair: fn(f64, f64) -> (f64, f64)| {
        let cell = |size: f64| -> Vec<PairedRound> {
            let round = |place: usize| {
                let arm = |cost: f64, turn: usize| {
                    let (numerator, denominator) = pair(cost * (1.0 + 1e-4 * ((place + turn) % 3) as f64), size);
                    Pair { numerator, denominator }
                };
                PairedRound { baseline: arm(9.0 + 6.0 * size, 0), candidate: arm(21.0 + 2.0 * size, 1) }
            };
            (0..12).map(round).collect()
        };
        let points = [1.0, 16.0].map(|size| (size, cell(size)));
        match crossover(&points, Resolution::default(), good, between) {
            Some(Crossover::At { at, .. }) => at,
            other => panic!("{other:?}"),
        }
    };
    for found in [
        crossing(Good::Lower, Between::CostPerIo, |cost, _| (cost, 1.0)),
        crossing(Good::Lower, Between::CostPerByte, |cost, size| (cost, size)),
        crossing(Good::Higher, Between::CostPerIo, |cost, _| (1.0, cost)),
        crossing(Good::Higher, Between::CostPerByte, |cost, size| (size, cost)),
    ] {
        assert!((found.value - 3.0).abs() < 0.001 && found.half_width().unwrap() < 0.01, "{found:?}");
    }
    let anywhere = crossing(Good::Lower, Between::Anything, |cost, _| (cost, 1.0));
    assert_eq!((anywhere.low, anywhere.high), (Some(1.0), Some(16.0)));
}

#[test]
fn a_lower_cost_wins() {
    let found = of(&[-0.2, -0.1, 0.1, 0.2], 1e-4, Good::Lower);
    assert!(matches!(found, Crossover::At { winner_above: Winner::Baseline, .. }), "{found:?}");
}

#[test]
fn noise_widens_the_interval_without_extra_crossings() {
    let narrow = of(&[-0.2, -0.1, 0.1, 0.2], 0.001, Good::Higher);
    let wide = of(&[-0.2, -0.01, 0.01, -0.01, 0.01, 0.2], 0.02, Good::Higher);
    let (Crossover::At { at: narrow, .. }, Crossover::At { at: wide, .. }) = (&narrow, &wide) else {
        panic!("{narrow:?} {wide:?}")
    };
    assert!(wide.half_width() > narrow.half_width());
    assert!(wide.low.unwrap() < 2.0 && wide.high.unwrap() > 16.0, "all of the flat part may be it: {wide:?}");
}

#[test]
fn without_a_crossing_the_winner_is_named() {
    let everywhere = |thetas: &[f64], good| match of(thetas, 0.001, good) {
        Crossover::Everywhere { winner } => winner,
        other => panic!("{other:?}"),
    };
    assert_eq!(everywhere(&[0.1, 0.2, 0.05], Good::Higher), Winner::Candidate);
    assert_eq!(everywhere(&[0.1, 0.2, 0.05], Good::Lower), Winner::Baseline);
    assert_eq!(everywhere(&[-0.1, -0.02, -0.05], Good::Higher), Winner::Baseline);
}

/// A crossing that the rounds do not resolve: the other arm may be better at 2.
#[test]
fn a_point_without_a_difference_leaves_the_winner_open() {
    let expected = Crossover::Unresolved { winner: Winner::Baseline, undecided: vec![2.0] };
    assert_eq!(of(&[-0.1, 0.0001, -0.05], 0.001, Good::Higher), expected);
    let expected = Crossover::Unresolved { winner: Winner::Candidate, undecided: vec![4.0] };
    assert_eq!(of(&[0.1, 0.05, -0.0001], 0.001, Good::Higher), expected);
}

#[test]
fn several_and_undecided() {
    assert_eq!(of(&[0.1, -0.1, 0.1], 0.001, Good::Higher), Crossover::Several { changes: 2 });
    assert_eq!(of(&[0.01, -0.01, 0.01], 0.1, Good::Higher), Crossover::Undecided);
}

#[test]
fn invalid_points_have_no_crossover() {
    let cell = rounds(0.1, 0.001, 0);
    let point = |at| (at, cell.clone());
    let none = |points: &[SweepPoint]| assert_eq!(between(points, Good::Higher), None, "{points:?}");
    none(&[]);
    none(&[point(1.0)]);
    none(&[point(0.0), point(1.0)]);
    none(&[point(1.0), point(1.0)]);
    none(&[point(f64::NAN), point(1.0)]);
    none(&[point(1.0), (2.0, cell[1..].to_vec())]);
}

/// Noise of a round that all cells share moves θ equally everywhere, and the interval must account for that.
#[test]
fn common_errors_of_cells_widen_the_interval() {
    let (same, different) = ([5, 5], [5, 10]);
    let width = |turns: [usize; 2]| {
        let points = [(1.0, rounds(-0.05, 0.01, turns[0])), (2.0, rounds(0.05, 0.01, turns[1]))];
        match between(&points, Good::Higher) {
            Some(Crossover::At { at, .. }) => at.high.unwrap().ln() - at.low.unwrap().ln(),
            other => panic!("{other:?}"),
        }
    };
    assert!(width(same) > 1.2 * width(different), "{} {}", width(same), width(different));
}

#[test]
fn the_words_in_json() {
    let text = serde_json::to_string(&Crossover::Everywhere { winner: Winner::Candidate }).unwrap();
    assert_eq!(text, r#"{"kind":"everywhere","winner":"candidate"}"#);
}

proptest! {
    #[test]
    fn exchanging_the_arms_changes_the_winner_and_not_the_place(
        thetas in proptest::collection::vec(-0.2f64..0.2, 2..8),
    ) {
        let points = points(&thetas, 0.01, 1.5);
        let swap = |(at, rounds): &SweepPoint| (*at, rounds.iter().map(|round| round.swapped()).collect());
        let swapped: Vec<SweepPoint> = points.iter().map(swap).collect();
        match (between(&points, Good::Higher).unwrap(), between(&swapped, Good::Higher).unwrap()) {
            (Crossover::At { at, winner_above }, Crossover::At { at: other, winner_above: loser }) => {
                prop_assert_ne!(winner_above, loser);
                prop_assert!((at.value / other.value - 1.0).abs() < 1e-9);
                prop_assert!(at.low.unwrap() <= at.value && at.value <= at.high.unwrap());
                prop_assert!((at.low.unwrap() / other.low.unwrap() - 1.0).abs() < 1e-6);
            }
            (Crossover::Everywhere { winner }, Crossover::Everywhere { winner: loser }) => {
                prop_assert_ne!(winner, loser);
            }
            (
                Crossover::Unresolved { winner, undecided },
                Crossover::Unresolved { winner: loser, undecided: as_well },
            ) => {
                prop_assert_ne!(winner, loser);
                prop_assert_eq!(undecided, as_well);
            }
            (there, back) => prop_assert_eq!(there, back),
        }
    }
}
