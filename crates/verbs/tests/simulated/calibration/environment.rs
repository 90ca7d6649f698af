//! The common mode: warm-ups, and steps of the machine's speed.

use super::experiment::{METHOD, Until, experiment};
use super::noise::{Machine, Noise, Random, STEP_SECONDS};
use model::stats::{CommonShift, Pair, Steady, common_shift, steady};

/// Number of readings of 100 ms each (a block of both arms): one minute.
const READINGS: usize = 600;
const STEPS_IN_READING: usize = 10;
/// A machine starts 30 % slower, and approaches its speed with a time constant of 1.5 s.
const COLD: f64 = 0.3;
const WARM_UP_SECONDS: f64 = 1.5;

/// How a machine starts.
#[derive(Clone, Copy)]
pub enum Start {
    Warm,
    Cold,
}

/// The result of MSER-5 for a series of speeds, and the relative error of the mean of what it keeps.
pub fn warm_up(start: Start, noise: Noise, seed: u64) -> (Steady, f64) {
    let random = &mut Random::new(seed);
    let machine = &mut Machine::new(noise, random);
    let (mut speeds, mut cold) = (Vec::with_capacity(READINGS), Vec::with_capacity(READINGS));
    for reading in 0..READINGS {
        cold.push(match start {
            Start::Warm => 0.0,
            Start::Cold => COLD * (-((reading * STEPS_IN_READING) as f64) * STEP_SECONDS / WARM_UP_SECONDS).exp(),
        });
        let speed = (0..STEPS_IN_READING).map(|_| machine.speed(random)).sum::<f64>() / STEPS_IN_READING as f64;
        speeds.push(speed * (1.0 - cold[reading]));
    }
    let found = steady(&speeds);
    let kept = match found {
        Steady::From(reading) => &cold[reading..],
        Steady::Never | Steady::TooShort => &cold,
    };
    (found, kept.iter().sum::<f64>() / kept.len() as f64)
}

/// The step found in the common mode of 60 rounds if the machine becomes faster by `change` after 25 of them.
pub fn step_after_25(noise: Noise, change: f64, seed: u64) -> Option<CommonShift> {
    let mut design = METHOD;
    design.until = Until::Rounds(60);
    let faster = |index: usize| if index < 25 { 1.0 } else { 1.0 + change };
    let rounds = experiment(design, noise, 0.0, seed)
        .rounds
        .into_iter()
        .map(|round| Pair::sum([round.baseline, round.candidate].into_iter()));
    let rounds = rounds.enumerate().map(|(index, round)| Pair { numerator: round.numerator * faster(index), ..round });
    common_shift(&rounds.collect::<Vec<_>>())
}
