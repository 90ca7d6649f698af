//! Two independent sessions: the stored baseline on a machine in one state, and today's on a machine in another.

use super::experiment::{Design, METHOD, Until, experiment};
use super::noise::Noise;
use model::stats::estimate::CONFIDENCE;
use model::stats::{Estimate, Pair, log_level};

/// The true change: how much faster today's machine is than the stored one, a fraction.
pub const ENVIRONMENT: f64 = 0.69;

/// The environment as estimated between two sessions that end by `until`.
pub fn environment(until: Until, noise: Noise, seed: u64) -> Estimate {
    let session = |seed: u64, faster: f64| -> Vec<Pair> {
        let outcome = experiment(Design { until, ..METHOD }, noise, 0.04, seed);
        let baselines = outcome.rounds.into_iter().map(|round| round.baseline);
        baselines.map(|round| Pair { numerator: round.numerator * faster, ..round }).collect()
    };
    let (then, now) = (session(2 * seed, 1.0), session(2 * seed + 1, 1.0 + ENVIRONMENT));
    log_level(&now).unwrap().since(&log_level(&then).unwrap(), CONFIDENCE)
}
