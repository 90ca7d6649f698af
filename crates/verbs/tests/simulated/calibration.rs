//! Checks that the statistics of a comparison are calibrated on noisy machines.
//!
//! Thousands of seeded simulated experiments for each figure use the real estimator and the real stopping rule. The
//! *negative controls* are common mistakes. They must fail here: if one passed, the simulated machines would be too
//! quiet for the other results to mean anything. Figures are written to `target/tmp/calibration`.

// clippy.toml allows these in test functions; everything here is one.
#![allow(clippy::unwrap_used)]

mod environment;
mod experiment;
mod latency;
mod noise;
mod rare;
mod score;
mod stored;
mod sweep;

use environment::{Start, step_after_25, warm_up};
use experiment::{
    CELLS, Design, Executions, METHOD, Order, Outcome, Spread, Until, experiment, one_after_the_other,
    sweep_of_identical_arms, whole_executions,
};
use model::experiment::Rules;
use model::stats::estimate::CONFIDENCE;
use model::stats::{
    Crossover, Estimate, Evidence, Neighbours, Pair, PairedRound, Resolution, Steady, Verdict, confidence_of_each,
    log_ratio, ratio_of_sums, shape_changed, typical,
};
use noise::{Noise, Random};
use score::{EXPERIMENTS, SLOW_EXPERIMENTS, Share, median, note, note_share, share, share_of, within};

/// Numbers of figures, which are also the upper halves of their seeds.
const NULL: u64 = 1;
const THREE: u64 = 2;
const TEN: u64 = 3;
const POWER: u64 = 4;
const CONTROL: u64 = 5;
const LATENCY: u64 = 6;
const SWEEP: u64 = 7;
const ENVIRONMENT: u64 = 8;
const SHAPE: u64 = 9;
const STORED: u64 = 10;
const WHOLE: u64 = 11;
const SPREAD: u64 = 12;
const RARE: u64 = 13;

fn contains(estimate: &Estimate, truth: f64) -> bool {
    estimate.contains(truth) == Some(true)
}

/// The claims of docs/method, on one machine.
fn promises(noise: Noise) {
    let name = |what: &str| format!("{noise:?} {what}");
    let found = |seed| experiment(METHOD, noise, 0.0, seed).ratio.excludes_zero(CONFIDENCE);
    let false_positives = share(NULL, found);
    within(&name("false positives"), false_positives, 2.5, 6.5);
    within(&name("coverage at 0"), Share { part: 1.0 - false_positives.part, ..false_positives }, 93.0, 97.0);
    for (figure, effect) in [(THREE, 0.03), (TEN, 0.1)] {
        let covered = |seed| contains(&experiment(METHOD, noise, effect, seed).ratio.change(CONFIDENCE), effect);
        within(&name(&format!("coverage at {effect}")), share(figure, covered), 93.0, 97.0);
    }
    let outcomes: Vec<Outcome> = (0..200).map(|seed| experiment(METHOD, noise, 0.0, POWER << 40 | seed)).collect();
    let mde80 = median(outcomes.iter().filter_map(|outcome| outcome.ratio.mde80(CONFIDENCE)).collect());
    let rounds = median(outcomes.iter().map(|outcome| outcome.rounds.len() as f64).collect());
    note(&name("typical experiment"), &format!("{rounds} rounds, MDE80 {:.2} %", 100.0 * mde80));
    let found = |seed| experiment(METHOD, noise, mde80.exp_m1(), seed).ratio.excludes_zero(CONFIDENCE);
    within(&name("power at MDE80"), share(POWER, found), 75.0, 85.0);
}

#[test]
fn promises_hold_on_every_machine() {
    std::thread::scope(|scope| Noise::ALL.into_iter().for_each(|noise| drop(scope.spawn(move || promises(noise)))));
}

/// Foreign programs cannot be divided into slices: each of their executions is one.
#[test]
fn promises_hold_for_whole_executions() {
    for (noise, spread) in Noise::ALL.into_iter().flat_map(|noise| Spread::ALL.map(|spread| (noise, spread))) {
        let name = |what: &str| format!("{noise:?} {spread:?} whole executions {what}");
        // A few slow executions, or bursts, increase the spread, and make the intervals wider than necessary.
        let least = if matches!(spread, Spread::Large) { 2.5 } else { 0.0 };
        let found = |seed| whole_executions(Order::Drawn, noise, [spread; 2], 0.0, seed).excludes_zero(CONFIDENCE);
        within(&name("false positives"), share(WHOLE, found), least, 6.5);
    }
    // One arm is irregular and the other is not: the mean changes, and the distribution is not symmetric.
    let truth = Spread::Skewed.mean() / Spread::Small.mean() - 1.0;
    for noise in Noise::ALL {
        let spreads = [Spread::Small, Spread::Skewed];
        let covered =
            |seed| contains(&whole_executions(Order::Drawn, noise, spreads, 0.0, seed).change(CONFIDENCE), truth);
        // Rare slow executions are often not seen in nine rounds; docs/method/comparing.md documents this.
        let name = format!("{noise:?} whole executions coverage of an arm with rare slow ones");
        note_share(&name, share(SPREAD, covered));
        let wider = [Spread::Small, Spread::Large];
        let truth = Spread::Large.mean() / Spread::Small.mean() - 1.0;
        let covered =
            |seed| contains(&whole_executions(Order::Drawn, noise, wider, 0.0, seed).change(CONFIDENCE), truth);
        within(
            &format!("{noise:?} whole executions coverage of an arm that varies more"),
            share(SPREAD, covered),
            93.0,
            100.0,
        );
    }
}

/// Negative control: the baseline is always first, and rounds are in step with a disturbance of the machine.
#[test]
fn whole_executions_in_a_fixed_order_find_differences_between_identical_arms_under_periodic_stalls() {
    let found =
        |seed| whole_executions(Order::Fixed, Noise::Stalls, [Spread::Small; 2], 0.0, seed).excludes_zero(CONFIDENCE);
    within("Stalls control whole executions in a fixed order", share(WHOLE, found), 10.0, 100.0);
}

#[test]
fn typical_rounds_are_covered_and_noise_does_not_change_the_shape() {
    for noise in Noise::ALL {
        let outcomes: Vec<(Estimate, Estimate)> = (0..EXPERIMENTS)
            .map(|seed| experiment(METHOD, noise, 0.03, SHAPE << 32 | seed))
            .map(|outcome| (outcome.ratio.change(CONFIDENCE), typical(&outcome.rounds).unwrap()))
            .collect();
        let part = |holds: fn(&(Estimate, Estimate)) -> bool| Share {
            part: outcomes.iter().filter(|outcome| holds(outcome)).count() as f64 / outcomes.len() as f64,
            of: EXPERIMENTS,
        };
        let covered = part(|(_, typical)| contains(typical, 0.03));
        within(&format!("{noise:?} coverage of the typical round"), covered, 93.0, 98.0);
        let changed = part(|(sums, typical)| shape_changed(sums, typical));
        within(&format!("{noise:?} false changes of shape"), changed, 0.0, 1.0);
    }
}

/// Negative control: the typical round used for all rounds. The candidate stalls for half of every tenth round.
#[test]
fn typical_rounds_miss_rare_stalls_and_the_shape_changes() {
    let stalled = |seed: u64| {
        let random = &mut Random::new(!seed);
        let mut outcome = experiment(Design { until: Until::Rounds(60), ..METHOD }, Noise::Grain, 0.0, seed);
        for round in &mut outcome.rounds {
            round.candidate.numerator *= if random.uniform() < 0.1 { 0.5 } else { 1.0 };
        }
        outcome.rounds
    };
    let missed = share(SHAPE, |seed| !contains(&typical(&stalled(seed)).unwrap(), -0.05));
    within("Grain control typical round of a load with rare stalls", missed, 10.0, 100.0);
    let sums = |rounds: &[PairedRound]| log_ratio(rounds, Resolution::default()).unwrap().change(CONFIDENCE);
    let told = share(SHAPE, |seed| {
        let rounds = stalled(seed);
        shape_changed(&sums(&rounds), &typical(&rounds).unwrap())
    });
    note_share("Grain rare stalls told as a change of shape", told);
    // With six stalls, the spread of the sums is not normal yet, and their coverage is slightly below 95 %.
    let covered = share(SHAPE, |seed| contains(&sums(&stalled(seed)), -0.05));
    note_share("Grain coverage of the sums of a load with rare stalls", covered);
}

/// Identical arms in all cells: the probability of a detection in any of them is that of a single cell.
#[test]
fn sweeps_find_no_more_than_single_cells() {
    for noise in [Noise::Drift, Noise::Grain] {
        let any =
            |seed, confidence| sweep_of_identical_arms(noise, seed).iter().any(|ratio| ratio.excludes_zero(confidence));
        let corrected = share_of(SLOW_EXPERIMENTS, SWEEP, |seed| any(seed, confidence_of_each(CELLS as usize)));
        within(&format!("{noise:?} sweeps with a false detection"), corrected, 2.0, 6.5);
        let uncorrected = share_of(SLOW_EXPERIMENTS, SWEEP, |seed| any(seed, CONFIDENCE));
        within(&format!("{noise:?} control sweeps of intervals of 95 %"), uncorrected, 10.0, 100.0);
    }
}

/// Negative control: one arm after the other. It fails if the machine's state lasts longer than a sample, or if
/// executions differ more than samples.
#[test]
fn sequential_measurement_finds_differences_between_identical_arms() {
    for noise in Noise::ALL {
        let found = share(CONTROL, |seed| one_after_the_other(noise, seed) < 0.05);
        let name = format!("{noise:?} control sequential");
        match noise {
            // Noise that averages out within a sample of one second, and hides the difference between executions.
            Noise::Bursts => note_share(&name, found),
            _ => within(&name, found, 10.0, 100.0),
        }
    }
}

/// Negative controls: a fixed alternation, in step with a disturbance of the machine; each arm's program started once; and testing after
/// every round, stopping at the first significant result.
#[test]
fn common_mistakes_find_differences_between_identical_arms() {
    for (name, noise, design) in [
        ("ABBA", Noise::Stalls, Design { order: Order::Alternating, ..METHOD }),
        ("one execution", Noise::Grain, Design { executions: Executions::Once, ..METHOD }),
        ("stopping on significance", Noise::Drift, Design { until: Until::Significant, ..METHOD }),
    ] {
        let found = share(CONTROL, |seed| experiment(design, noise, 0.0, seed).ratio.excludes_zero(CONFIDENCE));
        within(&format!("{noise:?} control {name}"), found, 10.0, 100.0);
    }
}

/// How often the interval of the environment contains the true one.
fn environments(until: Until, noise: Noise) -> Share {
    share(STORED, |seed| contains(&stored::environment(until, noise, seed), stored::ENVIRONMENT))
}

/// All disturbances average out within a session.
#[test]
fn environments_between_sessions_are_covered() {
    for noise in [Noise::Grain, Noise::Bursts] {
        let covered = environments(Until::Rounds(30), noise);
        within(&format!("{noise:?} coverage of the environment"), covered, 92.0, 98.0);
    }
    // As in `compare`. A session that ends when its rounds look similar had too few bursts, so the coverage is below 95
    // %.
    for noise in Noise::ALL {
        let covered = environments(Until::Precise, noise);
        note_share(&format!("{noise:?} coverage of the environment by the stopping rule"), covered);
    }
}

/// Negative control: states of the machine that last longer than a session, and stalls in step with its slices, are
/// differences between sessions, and no interval from within them covers those. docs/method/stored.md documents this.
#[test]
fn environments_do_not_cover_differences_between_sessions() {
    for noise in [Noise::Drift, Noise::Stalls] {
        let covered = environments(Until::Rounds(30), noise);
        within(&format!("{noise:?} control environments covered"), covered, 0.0, 90.0);
    }
}

#[test]
fn p99_by_rounds_is_calibrated() {
    for noise in [Noise::Drift, Noise::Bursts, Noise::Levels] {
        let found =
            |seed| !contains(&latency::p99_by_rounds(&latency::latencies(noise, 0.0, seed)).change(CONFIDENCE), 0.0);
        within(&format!("{noise:?} false positives of p99"), share_of(SLOW_EXPERIMENTS, LATENCY, found), 2.5, 6.5);
    }
    let covered =
        |seed| contains(&latency::p99_by_rounds(&latency::latencies(Noise::Bursts, 0.1, seed)).change(CONFIDENCE), 0.1);
    within("Bursts coverage of p99 at 0.1", share_of(SLOW_EXPERIMENTS, LATENCY, covered), 93.0, 97.0);
}

/// The arms' latencies have different shapes. `validation coverage` has more of them.
#[test]
fn percentiles_of_unequal_shapes_are_covered() {
    for (name, slow) in [("0.8 %", 0.008), ("1.2 %", 0.012)] {
        for rounds in [6, 40] {
            let covered = share_of(SLOW_EXPERIMENTS.min(500), LATENCY, |seed| {
                let (found, truth) = latency::p99_with_rare_slow_ios(rounds, slow, seed);
                contains(&found.change(CONFIDENCE), truth)
            });
            // Above, the interval is the width of a histogram's bucket.
            within(&format!("coverage of p99 with {name} slow ones in {rounds} rounds"), covered, 91.0, 100.0);
        }
    }
}

/// Rounds of the candidate are sometimes 1.5 times slower. Where the mean changes by 5 %, "no difference" is wrong.
#[test]
fn no_difference_is_not_said_before_a_rare_state_had_the_chance_to_show() {
    let margin = Rules::MARGIN;
    let verdict_of = |until, part: f64, seed: u64| {
        let random = &mut Random::new(!seed);
        rare::verdict(until, random, margin, |random| if random.uniform() < part { 1.5 } else { 1.0 })
    };
    let none =
        |until, part| share_of(SLOW_EXPERIMENTS, RARE, |seed| verdict_of(until, part, seed) == Verdict::NoDifference);
    within("no difference in spite of a rare slow state", none(rare::Until::Precise, 0.1), 0.0, 4.0);
    within("control: the same after ten rounds", none(rare::Until::TenRounds, 0.1), 20.0, 100.0);
    within("no difference between equal arms", none(rare::Until::Precise, 0.0), 95.0, 100.0);
}

/// Each arm's level has a memory of its own from round to round.
#[test]
fn correlated_rounds_are_named_and_widen_the_interval() {
    for (correlation, least, named) in [(0.0, 93.0, 0.0..8.0), (0.5, 91.0, 90.0..100.1), (0.9, 85.0, 99.0..100.1)] {
        let found = |seed| rare::correlated(60, correlation, seed);
        let covered = share_of(SLOW_EXPERIMENTS, RARE, |seed| contains(&found(seed).change(CONFIDENCE), 0.0));
        within(&format!("coverage of 60 rounds with a correlation of {correlation}"), covered, least, 98.0);
        let told = share_of(SLOW_EXPERIMENTS, RARE, |seed| found(seed).correlation.is_some());
        within(&format!("60 rounds with a correlation of {correlation} are named"), told, named.start, named.end);
    }
}

/// Costs have a long upper tail. Student's interval covers a lognormal mean (σ 1) in 86 % of experiments.
#[test]
fn long_tails_are_covered() {
    let covered = share_of(SLOW_EXPERIMENTS, RARE, |seed| {
        let random = &mut Random::new(seed);
        let pairs: Vec<Pair> = (0..20).map(|_| Pair { numerator: random.normal().exp(), denominator: 1.0 }).collect();
        contains(&ratio_of_sums(&pairs, Neighbours::Alike).unwrap().estimate(), 0.5_f64.exp())
    });
    within("coverage of a lognormal mean of 20 windows", covered, 89.0, 97.0);
}

/// Negative control: I/Os treated as independent.
#[test]
fn order_statistics_find_differences_of_p99_between_identical_arms() {
    let found = |seed| latency::p99_differs_by_order_statistics(&latency::latencies(Noise::Bursts, 0.0, seed));
    within("Bursts control order statistics of p99", share_of(SLOW_EXPERIMENTS, LATENCY, found), 10.0, 100.0);
}

#[test]
fn cost_lines_are_covered() {
    let per_io = share(SWEEP, |seed| contains(&sweep::line(seed).per_io, sweep::PER_IO));
    within("line coverage of the cost per IO", per_io, 93.0, 97.0);
    let per_byte = share(SWEEP, |seed| contains(&sweep::line(seed).per_byte, sweep::PER_BYTE));
    within("line coverage of the cost per byte", per_byte, 93.0, 97.0);
}

#[test]
fn crossovers_are_covered() {
    for (times, rounds) in [(2.0, 10), (2.0, 60), (4.0, 10), (4.0, 60)] {
        let found = |seed| sweep::crossing(times, rounds, seed);
        let told = |seed| matches!(found(seed), Crossover::At { .. });
        let covered = |seed| matches!(found(seed), Crossover::At { at, .. } if contains(&at, sweep::CROSSES_AT));
        let (told, covered) = (share(SWEEP, told), share(SWEEP, covered));
        let of_told = Share { part: covered.part / told.part, ..told };
        let name = format!("{rounds} rounds of sizes × {times}");
        note_share(&format!("crossover told in {name}"), told);
        within(&format!("crossover coverage in {name}"), of_told, 93.0, 97.0);
    }
}

#[test]
fn steps_are_found_and_noise_is_none() {
    for noise in [Noise::Grain, Noise::Bursts, Noise::Stalls] {
        let alarms = share(ENVIRONMENT, |seed| step_after_25(noise, 0.0, seed).is_some());
        within(&format!("{noise:?} false steps"), alarms, 0.0, 1.0);
    }
    for noise in [Noise::Grain, Noise::Stalls] {
        let found = |seed| step_after_25(noise, 0.15, seed).is_some_and(|step| step.after_round.abs_diff(25) <= 2);
        within(&format!("{noise:?} steps of 15 % found"), share(ENVIRONMENT, found), 99.0, 100.0);
    }
    // Slow drift is correlated from round to round, and may really be a step of 10 %: no claim, only a figure.
    let drift = share(ENVIRONMENT, |seed| step_after_25(Noise::Drift, 0.0, seed).is_some());
    note_share("Drift steps without a step", drift);
}

#[test]
fn warm_ups_are_discarded() {
    for noise in [Noise::Grain, Noise::Bursts, Noise::Stalls] {
        let never = |start| share(ENVIRONMENT, |seed| warm_up(start, noise, seed).0 == Steady::Never);
        within(&format!("{noise:?} steady load called unsteady"), never(Start::Warm), 0.0, 1.0);
        within(&format!("{noise:?} warm-up called unsteady"), never(Start::Cold), 0.0, 1.0);
        let warm = |seed| warm_up(Start::Cold, noise, seed).1.abs() < 0.005;
        let warm = share(ENVIRONMENT, warm);
        note_share(&format!("{noise:?} warm-ups discarded to within 0.5 %"), warm);
    }
    // On these machines, a minute often has no steady state.
    for noise in [Noise::Drift, Noise::Levels] {
        let never = share(ENVIRONMENT, |seed| warm_up(Start::Warm, noise, seed).0 == Steady::Never);
        note_share(&format!("{noise:?} called unsteady"), never);
    }
}
