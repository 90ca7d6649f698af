//! The ratio of a rate or cost in one session to that in another, if the two were not measured side by side.
//!
//! The input is the rounds of one arm in each session. Nothing cancels as it does within a round, so the interval
//! covers the variation within each session, but no differences between the sessions.

use super::estimate::{Estimate, Neighbours, Pair, Uncertainty, ratio_of_sums};

/// As for the windows of a run: neighbouring rounds are not independent, groups of them nearly are.
const GROUPS: usize = 20;

/// ln(Σn/Σd) of one arm in one session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogLevel {
    pub log: f64,
    /// How far it may be off; `None` with fewer than two rounds.
    pub error: Option<Uncertainty>,
}

/// The level of one arm over the rounds of a session, in order of time.
///
/// The error is that of [`ratio_of_sums`] over at most 20 groups of rounds, divided by the ratio (the delta method for a
/// logarithm). Unlike the [jackknife](super::jackknife()), which assumes independent rounds, it grows with the correlation
/// of neighbours: drift from round to round cancels side by side, but not here. `None` if the ratio is not positive.
pub fn log_level(rounds: &[Pair]) -> Option<LogLevel> {
    let ratio = ratio_of_sums(&grouped(rounds), Neighbours::Alike)?;
    let log = ratio.value.ln();
    log.is_finite().then(|| LogLevel { log, error: ratio.error.map(|error| error.scaled(1.0 / ratio.value)) })
}

/// Merges neighbours into at most 20 groups of nearly equal size.
pub fn grouped(rounds: &[Pair]) -> Vec<Pair> {
    let count = rounds.len().min(GROUPS);
    let mut groups = vec![Pair { numerator: 0.0, denominator: 0.0 }; count];
    for (place, round) in rounds.iter().enumerate() {
        if let Some(group) = groups.get_mut(place * count / rounds.len()) {
            group.numerator += round.numerator;
            group.denominator += round.denominator;
        }
    }
    groups
}

impl LogLevel {
    /// The change from another session to this one, as a fraction, with its interval of this confidence. The errors of both
    /// add up.
    pub fn since(&self, then: &Self, confidence: f64) -> Estimate {
        let theta = self.log - then.log;
        let error = self.error.zip(then.error).map(|(now, then)| now.plus(then.scaled(-1.0)));
        Estimate::around(theta, error.as_ref(), confidence).map(f64::exp_m1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{CONFIDENCE, student_t};
    use proptest::prelude::*;

    fn level(log: f64, standard_error: f64, degrees_of_freedom: f64) -> LogLevel {
        LogLevel { log, error: Some(Uncertainty::new(standard_error, degrees_of_freedom)) }
    }

    fn rounds(values: &[f64]) -> Vec<Pair> {
        values.iter().map(|&numerator| Pair { numerator, denominator: 1.0 }).collect()
    }

    /// By hand: 21, 20, 19 over 10 each is 2 with se √3/30, so its logarithm has se √3/60; neighbours have uncorrelated
    /// errors.
    #[test]
    fn golden() {
        let pairs = [21.0, 20.0, 19.0].map(|numerator| Pair { numerator, denominator: 10.0 });
        let found = log_level(&pairs).unwrap();
        let error = found.error.unwrap();
        assert_eq!(found.log, 2f64.ln());
        assert!((error.degrees_of_freedom - 2.0).abs() < 1e-9);
        assert!((error.standard_error - 3f64.sqrt() / 60.0).abs() < 1e-15);
    }

    /// Welch's degrees for se 3 and 4 of 5 and 9: 625 / (81/5 + 256/9) = 14.0027…
    #[test]
    fn both_errors_count_and_so_do_their_degrees() {
        let (now, then) = (level(0.5, 0.03, 5.0), level(0.1, 0.04, 9.0));
        let half = student_t(0.975, 625.0 / (81.0 / 5.0 + 256.0 / 9.0)).unwrap() * 0.05;
        let found = now.since(&then, CONFIDENCE);
        assert!((found.value - 0.4f64.exp_m1()).abs() < 1e-12);
        assert!((found.high.unwrap().ln_1p() - 0.4 - half).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn a_higher_confidence_gives_a_wider_interval() {
        let (now, then) = (level(0.5, 0.03, 5.0), level(0.1, 0.04, 5.0));
        let half = |confidence| now.since(&then, confidence).high.unwrap().ln_1p() - 0.4;
        // The errors have 625 / (81/5 + 256/5) degrees.
        let t = |probability| student_t(probability, 625.0 / (337.0 / 5.0)).unwrap();
        assert!((half(0.99) / half(0.95) - t(0.995) / t(0.975)).abs() < 1e-9);
    }

    #[test]
    fn without_spread_the_interval_is_a_point_and_without_rounds_there_is_none() {
        let still = log_level(&rounds(&[5.0; 12])).unwrap();
        let found = still.since(&still, CONFIDENCE);
        assert_eq!((found.value, found.low, found.high), (0.0, Some(0.0), Some(0.0)));
        assert_eq!(log_level(&[]), None);
        assert_eq!(log_level(&rounds(&[-1.0, -2.0])), None);
        let one = log_level(&rounds(&[5.0])).unwrap();
        assert_eq!((one.since(&still, CONFIDENCE).value, one.since(&still, CONFIDENCE).low), (0.0, None));
    }

    #[test]
    fn correlated_neighbours_widen_the_interval() {
        let alike: Vec<f64> = (0..60).map(|round| if round < 30 { 11.0 } else { 9.0 }).collect();
        let unlike: Vec<f64> = (0..60).map(|round| if round % 2 == 0 { 11.0 } else { 9.0 }).collect();
        let error = |values: &[f64]| log_level(&rounds(values)).unwrap().error.unwrap().standard_error;
        assert!(error(&alike) > 4.0 * error(&unlike));
    }

    proptest! {
        #[test]
        fn groups_hold_all_rounds_evenly(count in 1usize..500) {
            let groups = grouped(&rounds(&vec![1.0; count]));
            let sizes: Vec<f64> = groups.iter().map(|group| group.denominator).collect();
            prop_assert_eq!(groups.len(), count.min(GROUPS));
            prop_assert_eq!(sizes.iter().sum::<f64>(), count as f64);
            let (least, most) = sizes.iter().fold((f64::MAX, 0f64), |(a, b), s| (a.min(*s), b.max(*s)));
            prop_assert!(most - least <= 1.0);
        }

        #[test]
        fn the_other_way_round_it_is_the_inverse(
            // Beyond this, the ends of an interval have no digits left.
            one in proptest::collection::vec(50.0f64..100.0, 2..40),
            other in proptest::collection::vec(50.0f64..100.0, 2..40),
        ) {
            let (one, other) = (log_level(&rounds(&one)).unwrap(), log_level(&rounds(&other)).unwrap());
            let (there, back) = (one.since(&other, CONFIDENCE), other.since(&one, CONFIDENCE));
            prop_assert!(((1.0 + there.value) * (1.0 + back.value) - 1.0).abs() < 1e-9);
            prop_assert!(((1.0 + there.low.unwrap()) * (1.0 + back.high.unwrap()) - 1.0).abs() < 1e-9);
        }
    }
}
