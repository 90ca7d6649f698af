//! Latencies on a noisy machine, and two tests of their p99: iotoll's, by rounds, and one that treats I/Os as independent.

use super::experiment::{Order, executions, slices};
use super::noise::{Machine, Noise, Random};
use model::histogram::Histogram;
use model::stats::{LatencyRound, PercentileShift, percentile};
use statrs::distribution::{ContinuousCDF, Normal};

const ROUNDS: usize = 30;
/// I/Os completed in 10 ms: 400 per arm and round, 12,000 in all.
const IOS_IN_STEP: usize = 10;
/// A latency of 10 µs on a quiet machine, and the standard deviation of its logarithm.
const TICKS: f64 = 30_000.0;
const SPREAD: f64 = 0.3;

/// Both arms' latencies in each round; the candidate's are longer by `effect`, a fraction.
pub fn latencies(noise: Noise, effect: f64, seed: u64) -> Vec<[Histogram; 2]> {
    let random = &mut Random::new(seed);
    let machine = &mut Machine::new(noise, random);
    let rounds = (0..ROUNDS).map(|_| {
        let [baseline, candidate] = executions(random);
        let scales = [TICKS / baseline, TICKS * (1.0 + effect) / candidate];
        let mut histograms = [Histogram::new(), Histogram::new()];
        slices(Order::Drawn, machine, random, |arm, speed, random| {
            for _ in 0..IOS_IN_STEP {
                let ticks = scales[arm] / speed * (SPREAD * random.normal()).exp();
                histograms[arm].record(ticks as u64, 1);
            }
        });
        histograms
    });
    rounds.collect()
}

/// iotoll's test.
pub fn p99_by_rounds(rounds: &[[Histogram; 2]]) -> PercentileShift {
    let rounds: Vec<LatencyRound> =
        rounds.iter().map(|[baseline, candidate]| LatencyRound { baseline, candidate }).collect();
    percentile(&rounds, 99.0).unwrap()
}

/// iotoll's test of a candidate of whose I/Os a part is 50 times slower, and the true change of p99.
pub fn p99_with_rare_slow_ios(rounds: usize, slow: f64, seed: u64) -> (PercentileShift, f64) {
    const NARROW: f64 = 0.1;
    let random = &mut Random::new(seed);
    let mut arm = |slow: f64| {
        let mut histogram = Histogram::new();
        for _ in 0..1000 {
            let factor = if random.uniform() < slow { 50.0 } else { 1.0 };
            histogram.record((TICKS * factor * (NARROW * random.normal()).exp()) as u64, 1);
        }
        histogram
    };
    let measured: Vec<[Histogram; 2]> = (0..rounds).map(|_| [arm(0.0), arm(slow)]).collect();
    // The 99th percentile of all is another one of the fast or of the slow ones.
    let z = |fraction: f64| Normal::standard().inverse_cdf(fraction);
    let candidate = match slow < 0.01 {
        true => NARROW * z(0.99 / (1.0 - slow)),
        false => 50.0_f64.ln() + NARROW * z((slow - 0.01) / slow),
    };
    (p99_by_rounds(&measured), (candidate - NARROW * z(0.99)).exp_m1())
}

/// Whether order statistics of all I/Os, treated as independent, find a difference of p99.
pub fn p99_differs_by_order_statistics(rounds: &[[Histogram; 2]]) -> bool {
    let [(baseline, baseline_error), (candidate, candidate_error)] = [0, 1].map(|arm| {
        let mut all = Histogram::new();
        rounds.iter().for_each(|round| all.merge(&round[arm]));
        // The binomial interval of the rank of p99; its ends in latencies are ± 1.96 standard errors.
        let reach = 1.96 * (0.99 * 0.01 / all.total() as f64).sqrt();
        let log = |fraction: f64| (all.percentile(100.0 * fraction).unwrap() as f64).ln();
        (log(0.99), (log(0.99 + reach) - log(0.99 - reach)) / (2.0 * 1.96))
    });
    (candidate - baseline).abs() > 1.96 * baseline_error.hypot(candidate_error)
}
