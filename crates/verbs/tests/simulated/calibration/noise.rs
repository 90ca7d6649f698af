//! Noisy machines, as docs/method/comparing.md lists them, each simulated in steps of 10 ms.
//!
//! The state of the machine affects the arm that runs at that moment. A statistic is calibrated if it is right on each
//! of them, not only on average.

pub use crate::random::Random;
use crate::random::wander;
use std::sync::LazyLock;

/// The step of the simulation.
pub const STEP_SECONDS: f64 = 0.01;

/// The disturbances of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// The speed wanders: 5 % with a memory of 20 s, and 3 % with a memory of 0.5 s (Ornstein-Uhlenbeck).
    Drift,
    /// Each step of 10 ms has its own speed, lognormal with 10 %.
    Grain,
    /// Every 2 s on average, the speed is halved for 200 ms on average.
    Bursts,
    /// Every 5 s on average, the speed becomes 0.85, 1 or 1.15.
    Levels,
    /// Every 200 ms exactly, nothing runs for 5 ms. A cycle of four slices always meets it in the same arm.
    Stalls,
    /// A recording of a real machine, from a random moment on (`recorded.txt` describes it).
    Recorded,
}

impl Noise {
    /// All disturbances.
    pub const ALL: [Self; 6] = [Self::Drift, Self::Grain, Self::Bursts, Self::Levels, Self::Stalls, Self::Recorded];
}

/// Speeds of a real machine in steps of 10 ms; their mean is 1.
static RECORDED: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let lines = include_str!("recorded.txt").lines().filter(|line| !line.starts_with('#'));
    let counts: Vec<f64> = lines.map(|line| line.parse().unwrap()).collect();
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    counts.iter().map(|count| count / mean).collect()
});

/// A simulated machine.
pub struct Machine {
    noise: Noise,
    /// Drift: ln speed, slow and fast. Levels: the speed. Stalls: position in the period. Recorded: the beginning.
    state: (f64, f64),
    /// Time until the burst or the level ends.
    seconds_left: f64,
    steps: u64,
}

const STALL_PERIOD_SECONDS: f64 = 0.2;
const STALL_SECONDS: f64 = 0.005;
const BURST_SECONDS: f64 = 0.2;
const BETWEEN_BURSTS_SECONDS: f64 = 2.0;
const LEVEL_SECONDS: f64 = 5.0;

impl Machine {
    /// A machine in its stationary state.
    pub fn new(noise: Noise, random: &mut Random) -> Self {
        let state = match noise {
            Noise::Drift => (0.05 * random.normal(), 0.03 * random.normal()),
            Noise::Levels => (level(random), 0.0),
            Noise::Stalls => (random.uniform() * STALL_PERIOD_SECONDS, 0.0),
            Noise::Recorded => ((random.uniform() * RECORDED.len() as f64).floor(), 0.0),
            Noise::Grain | Noise::Bursts => (0.0, 0.0),
        };
        let seconds_left = if noise == Noise::Levels { LEVEL_SECONDS * random.exponential() } else { 0.0 };
        Self { noise, state, seconds_left, steps: 0 }
    }

    /// Mean speed in the next 10 ms; a quiet machine has 1.
    pub fn speed(&mut self, random: &mut Random) -> f64 {
        self.steps += 1;
        match self.noise {
            Noise::Drift => {
                self.state.0 = wander(self.state.0, 0.05, 20.0, STEP_SECONDS, random);
                self.state.1 = wander(self.state.1, 0.03, 0.5, STEP_SECONDS, random);
                (self.state.0 + self.state.1).exp()
            }
            Noise::Grain => (0.1 * random.normal()).exp(),
            Noise::Bursts => {
                if self.seconds_left <= 0.0 && random.uniform() < STEP_SECONDS / BETWEEN_BURSTS_SECONDS {
                    self.seconds_left = BURST_SECONDS * random.exponential();
                }
                self.seconds_left -= STEP_SECONDS;
                if self.seconds_left > -STEP_SECONDS { 0.5 } else { 1.0 }
            }
            Noise::Levels => {
                self.seconds_left -= STEP_SECONDS;
                if self.seconds_left < 0.0 {
                    self.seconds_left = LEVEL_SECONDS * random.exponential();
                    self.state.0 = level(random);
                }
                self.state.0
            }
            Noise::Recorded => RECORDED[(self.state.0 as usize + self.steps as usize) % RECORDED.len()],
            Noise::Stalls => 1.0 - stalled(self.state.0 + (self.steps as f64) * STEP_SECONDS) / STEP_SECONDS,
        }
    }
}

fn level(random: &mut Random) -> f64 {
    [0.85, 1.0, 1.15][(random.uniform() * 3.0) as usize % 3]
}

/// Seconds of stall in the step that ends at `seconds`.
fn stalled(seconds: f64) -> f64 {
    let before = |seconds: f64| {
        let periods = (seconds / STALL_PERIOD_SECONDS).floor();
        periods * STALL_SECONDS + (seconds - periods * STALL_PERIOD_SECONDS).min(STALL_SECONDS)
    };
    before(seconds) - before(seconds - STEP_SECONDS)
}
