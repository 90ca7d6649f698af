//! Rounds without a machine: rare slow states, and levels with a memory.

use super::noise::Random;
use model::experiment::Rules;
use model::stats::Evidence;
use model::stats::stopping::Goal;
use model::stats::{
    Good, LogRatio, Pair, PairedRound, Resolution, Verdict, confidence_of_each, log_ratio, precise_enough,
};

/// Standard deviation of a round's logarithm.
const NOISE: f64 = 0.01;
/// Rounds of the default budget.
const MOST: usize = 60;

/// When an experiment ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// By the rule.
    Precise,
    /// As soon as ten rounds are precise: the common mistake.
    TenRounds,
}

/// The verdict on a candidate of whose rounds each has a cost that `level` draws.
pub fn verdict(until: Until, random: &mut Random, margin: f64, mut level: impl FnMut(&mut Random) -> f64) -> Verdict {
    let mut rounds = Vec::new();
    loop {
        let mut pair = |level: f64| Pair { numerator: level * (NOISE * random.normal()).exp(), denominator: 1.0 };
        let baseline = pair(1.0);
        let noise = pair(1.0);
        let candidate = Pair { numerator: noise.numerator * level(random), denominator: 1.0 };
        rounds.push(PairedRound { baseline, candidate });
        let Some(found) = log_ratio(&rounds, Resolution::default()) else { continue };
        let goal = Goal { half_width: Rules::default().precision, margin, confidence: confidence_of_each(2) };
        let narrow = || found.stopping_half_width(goal.confidence).is_some_and(|half| half <= goal.half_width);
        let enough = match until {
            Until::Precise => precise_enough(&found, goal),
            Until::TenRounds => rounds.len() >= 10 && narrow(),
        };
        if enough || rounds.len() >= MOST {
            return model::stats::verdict(&found.change(confidence_of_each(2)), margin, Good::Lower);
        }
    }
}

/// The change between two arms whose levels are autoregressive from round to round.
pub fn correlated(rounds: usize, correlation: f64, seed: u64) -> LogRatio {
    let random = &mut Random::new(seed);
    let mut arm = || -> Vec<f64> {
        let mut state = random.normal();
        let own = (1.0 - correlation * correlation).sqrt();
        let next = |_| {
            let now = (0.02 * state).exp();
            state = correlation * state + own * random.normal();
            now
        };
        (0..rounds).map(next).collect()
    };
    let pair = |numerator: f64| Pair { numerator, denominator: 1.0 };
    let (baselines, candidates) = (arm(), arm());
    let both = baselines.into_iter().zip(candidates);
    let rounds: Vec<PairedRound> = both.map(|(a, b)| PairedRound { baseline: pair(a), candidate: pair(b) }).collect();
    log_ratio(&rounds, Resolution::default()).unwrap()
}
