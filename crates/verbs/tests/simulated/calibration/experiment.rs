//! One simulated comparison, from the first slice to the stopping rule.
//!
//! The default design is that of docs/method/comparing.md. The others are the mistakes of the negative controls.

use super::noise::{Machine, Noise, Random, STEP_SECONDS};
use model::experiment::Rules;
use model::stats::Evidence;
use model::stats::estimate::CONFIDENCE;
use model::stats::stopping::Goal;
use model::stats::{
    FEWEST_ROUNDS, LogRatio, Pair, PairedRound, Resolution, Uncertainty, confidence_of_each, log_ratio, precise_enough,
};
use rand_distr::{Distribution, StandardUniform};

/// Rounds of 1 s in the default budget of 60 s.
pub const MOST_ROUNDS: usize = 60;
/// Standard deviation of ln speed from one execution of the same program to the next.
const EXECUTION: f64 = 0.01;
/// Blocks in a round, each with one slice per arm.
const BLOCKS: usize = 10;
/// Length of a slice, 50 ms, of which the first 10 ms are discarded.
const STEPS_IN_SLICE: usize = 5;

/// Which arm is first in a block.
#[derive(Clone, Copy)]
pub enum Order {
    /// Random, with equal probability.
    Drawn,
    /// AB BA AB BA …
    Alternating,
    /// AB AB AB …
    Fixed,
}

impl Order {
    fn first(self, block: usize, random: &mut Random) -> usize {
        match self {
            Self::Drawn => {
                let coin: bool = StandardUniform.sample(&mut random.0);
                usize::from(coin)
            }
            Self::Alternating => block % 2,
            Self::Fixed => 0,
        }
    }
}

/// How often an arm's program is started.
#[derive(Clone, Copy)]
pub enum Executions {
    /// In every round.
    EachRound,
    /// Once for all rounds.
    Once,
}

/// When an experiment ends.
#[derive(Clone, Copy)]
pub enum Until {
    /// According to the stopping rule.
    Precise,
    /// As soon as a difference is significant.
    Significant,
    /// After this number of rounds.
    Rounds(usize),
}

/// The design of a comparison.
#[derive(Clone, Copy)]
pub struct Design {
    pub order: Order,
    pub executions: Executions,
    pub until: Until,
}

/// The design of docs/method/comparing.md.
pub const METHOD: Design = Design { order: Order::Drawn, executions: Executions::EachRound, until: Until::Precise };

/// The result of an experiment.
pub struct Outcome {
    pub ratio: LogRatio,
    pub rounds: Vec<PairedRound>,
}

/// Of one comparison, with the default margin.
const GOAL: Goal = Goal { half_width: Rules::MARGIN / 3.0, margin: Rules::MARGIN, confidence: CONFIDENCE };

/// Compares two arms, of which the candidate is faster by `effect`, a fraction.
pub fn experiment(design: Design, noise: Noise, effect: f64, seed: u64) -> Outcome {
    let random = &mut Random::new(seed);
    let machine = &mut Machine::new(noise, random);
    let first = executions(random);
    let mut rounds = Vec::with_capacity(MOST_ROUNDS);
    loop {
        let [baseline, candidate] = match design.executions {
            Executions::EachRound => executions(random),
            Executions::Once => first,
        };
        rounds.push(round(design.order, [baseline, candidate * (1.0 + effect)], machine, random));
        let Some(ratio) = log_ratio(&rounds, Resolution::default()) else { continue };
        let done = match design.until {
            Until::Precise => precise_enough(&ratio, GOAL),
            Until::Significant => rounds.len() >= FEWEST_ROUNDS && ratio.excludes_zero(CONFIDENCE),
            Until::Rounds(wanted) => rounds.len() >= wanted,
        };
        if done || rounds.len() >= MOST_ROUNDS {
            return Outcome { ratio, rounds };
        }
    }
}

/// Number of cells of [`sweep_of_identical_arms`].
pub const CELLS: u64 = 8;

/// The results of the cells of a sweep of identical arms, which ends when the last cell is precise enough.
pub fn sweep_of_identical_arms(noise: Noise, seed: u64) -> Vec<LogRatio> {
    let whole = Design { until: Until::Rounds(MOST_ROUNDS), ..METHOD };
    let cells: Vec<Vec<PairedRound>> =
        (0..CELLS).map(|cell| experiment(whole, noise, 0.0, seed * CELLS + cell).rounds).collect();
    let after = |count: usize| -> Vec<LogRatio> {
        cells.iter().map(|rounds| log_ratio(&rounds[..count], Resolution::default()).unwrap()).collect()
    };
    let goal = Goal { confidence: confidence_of_each(CELLS as usize), ..GOAL };
    let precise = |ratios: &[LogRatio]| ratios.iter().all(|ratio| precise_enough(ratio, goal));
    (FEWEST_ROUNDS..MOST_ROUNDS).map(after).find(|ratios| precise(ratios)).unwrap_or_else(|| after(MOST_ROUNDS))
}

/// Speeds of one execution of each arm.
pub fn executions(random: &mut Random) -> [f64; 2] {
    [(); 2].map(|()| (EXECUTION * random.normal()).exp())
}

/// A round: work done (numerator) over seconds, for both arms.
fn round(order: Order, speeds: [f64; 2], machine: &mut Machine, random: &mut Random) -> PairedRound {
    let mut work = [0.0; 2];
    slices(order, machine, random, |arm, machine_speed, _| work[arm] += speeds[arm] * machine_speed * STEP_SECONDS);
    let denominator = (BLOCKS * (STEPS_IN_SLICE - 1)) as f64 * STEP_SECONDS;
    let [baseline, candidate] = work.map(|numerator| Pair { numerator, denominator });
    PairedRound { baseline, candidate }
}

/// Calls back for the steps of a round's slices, with arm and machine speed, without the discarded beginning.
pub fn slices(order: Order, machine: &mut Machine, random: &mut Random, mut step: impl FnMut(usize, f64, &mut Random)) {
    for block in 0..BLOCKS {
        let first = order.first(block, random);
        for arm in [first, 1 - first] {
            machine.speed(random); // discarded
            for _ in 1..STEPS_IN_SLICE {
                let speed = machine.speed(random);
                step(arm, speed, random);
            }
        }
    }
}

/// How the speed varies between executions of a foreign program.
#[derive(Clone, Copy, Debug)]
pub enum Spread {
    /// Slightly: ln speed has a standard deviation of 1 %.
    Small,
    /// Like unmodified fio on this machine in executions of 250 ms: half-widths of ±10 to ±12 % from nine rounds
    /// (docs/validation) correspond to 10 %.
    Large,
    /// One in seven is slow, by a factor whose logarithm is 0.5 on average.
    Skewed,
}

impl Spread {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Small, Self::Large, Self::Skewed];

    /// Mean speed.
    pub fn mean(self) -> f64 {
        match self {
            // exp(σ²/2), and for one in seven E exp(−x/2) = 2/3 for a standard exponential x.
            Self::Small => (EXECUTION * EXECUTION / 2.0).exp(),
            Self::Large => (0.1_f64 * 0.1 / 2.0).exp(),
            Self::Skewed => (6.0 * Self::Small.mean() + 2.0 / 3.0) / 7.0,
        }
    }

    fn speed(self, random: &mut Random) -> f64 {
        match self {
            Self::Small => (EXECUTION * random.normal()).exp(),
            Self::Large => (0.1 * random.normal()).exp(),
            Self::Skewed if random.uniform() < 1.0 / 7.0 => (-0.5 * random.exponential()).exp(),
            Self::Skewed => (EXECUTION * random.normal()).exp(),
        }
    }
}

/// Compares whole executions: one of each arm per round in random order, followed by the idle machine. The work of the
/// arms' executions may differ. Nine rounds of 1.6 s are a budget of 15 s, after which such comparisons end.
pub fn whole_executions(order: Order, noise: Noise, spreads: [Spread; 2], effect: f64, seed: u64) -> LogRatio {
    const ROUNDS: usize = 9;
    /// Start-up, which is not counted, then the time of I/O.
    const STARTING: usize = 30;
    const STEPS: usize = 25;
    /// Includes the time to settle.
    const ALONE: usize = 50;
    let random = &mut Random::new(seed);
    let machine = &mut Machine::new(noise, random);
    let pass = |steps: usize, machine: &mut Machine, random: &mut Random| -> f64 {
        (0..steps).map(|_| machine.speed(random) * STEP_SECONDS).sum()
    };
    let rounds: Vec<PairedRound> = (0..ROUNDS)
        .map(|round| {
            let first = order.first(round, random);
            let mut arms = [Pair { numerator: 0.0, denominator: STEPS as f64 * STEP_SECONDS }; 2];
            for arm in [first, 1 - first] {
                pass(STARTING, machine, random);
                let speed = spreads[arm].speed(random) * if arm == 1 { 1.0 + effect } else { 1.0 };
                arms[arm].numerator = speed * pass(STEPS, machine, random);
            }
            pass(ALONE, machine, random);
            let [baseline, candidate] = arms;
            PairedRound { baseline, candidate }
        })
        .collect();
    log_ratio(&rounds, Resolution::default()).unwrap()
}

/// The common mistake: 10 s of one arm, then 10 s of the other, samples of 1 s, Welch's t test.
/// Returns the p-value.
pub fn one_after_the_other(noise: Noise, seed: u64) -> f64 {
    const SAMPLES: usize = 10;
    let random = &mut Random::new(seed);
    let machine = &mut Machine::new(noise, random);
    let samples = executions(random).map(|speed| -> Vec<f64> {
        let mut sample = || (0..100).map(|_| speed * machine.speed(random)).sum::<f64>() / 100.0;
        (0..SAMPLES).map(|_| sample()).collect()
    });
    let [(baseline, baseline_error), (candidate, candidate_error)] = samples.map(|values| {
        let mean = values.iter().sum::<f64>() / SAMPLES as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (mean, squares / (SAMPLES - 1) as f64 / SAMPLES as f64)
    });
    let square = baseline_error + candidate_error;
    let degrees = square.powi(2) * (SAMPLES - 1) as f64 / (baseline_error.powi(2) + candidate_error.powi(2));
    Uncertainty::new(square.sqrt(), degrees).p_value(candidate - baseline).unwrap_or(1.0)
}
