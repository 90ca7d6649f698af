//! Simulated sweeps whose cells share their rounds: a cost line and a crossover with known truths.

use super::experiment::executions;
use super::noise::Random;
use model::stats::{Between, CostLine, Crossover, Good, Pair, PairedRound, Resolution, cost_line, crossover};

const ROUNDS: usize = 10;
/// Variation of a whole round, the same in all of its cells.
const OF_A_ROUND: f64 = 0.05;
/// Variation of a cell's slices relative to the round.
const OF_A_CELL: f64 = 0.01;

/// Cost of an I/O.
pub const PER_IO: f64 = 10_000.0;
/// Cost of a byte.
pub const PER_BYTE: f64 = 0.5;

/// The line through the costs of five sizes.
pub fn line(seed: u64) -> CostLine {
    const SIZES: [f64; 5] = [512.0, 4096.0, 16384.0, 65536.0, 262144.0];
    let random = &mut Random::new(seed);
    let mut cells: [(f64, Vec<Pair>); 5] = SIZES.map(|size| (size, Vec::new()));
    for _ in 0..ROUNDS {
        let of_round = (OF_A_ROUND * random.normal()).exp();
        for (size, cell) in &mut cells {
            let [execution, _] = executions(random);
            let factor = of_round * execution * (OF_A_CELL * random.normal()).exp();
            let denominator = 1e9 / (PER_IO + PER_BYTE * *size);
            cell.push(Pair { numerator: denominator * (PER_IO + PER_BYTE * *size) * factor, denominator });
        }
    }
    cost_line(&cells).unwrap()
}

/// Where the lines of [`crossing`] meet.
pub const CROSSES_AT: f64 = PER_IO / 4.0 / (PER_BYTE / 2.0);

/// Eight sizes from 512 bytes up, each `times` the one before. The candidate costs a quarter more per I/O and half as much per
/// byte.
pub fn crossing(times: f64, rounds: usize, seed: u64) -> Crossover {
    let random = &mut Random::new(seed);
    let mut cells: Vec<(f64, Vec<PairedRound>)> =
        (0..8).map(|power| (512.0 * f64::powi(times, power), Vec::new())).collect();
    for _ in 0..rounds {
        let of_round = (OF_A_ROUND * random.normal()).exp();
        for (size, cell) in &mut cells {
            let [baseline, candidate] = executions(random).map(|speed| of_round * speed);
            let of_cell = (OF_A_CELL * random.normal()).exp();
            let rate = |speed: f64, cost: f64| Pair { numerator: 1e9 * speed / cost, denominator: 1.0 };
            cell.push(PairedRound {
                baseline: rate(baseline, PER_IO + PER_BYTE * *size),
                candidate: rate(candidate * of_cell, 1.25 * PER_IO + 0.5 * PER_BYTE * *size),
            });
        }
    }
    crossover(&cells, Resolution::default(), Good::Higher, Between::CostPerIo).unwrap()
}
