//! The statistics of the method: estimates with their intervals, each from a documented formula.

pub mod crossover;
pub mod estimate;
pub mod holm;
pub mod jackknife;
pub mod line;
pub mod log_ratio;
pub mod percentile;
pub mod quantile;
pub mod ratio;
pub mod regimes;
pub mod scalability;
pub mod steady;
pub mod step;
pub mod stopping;
pub mod typical;
pub mod unpaired;
pub mod verdict;

pub use crossover::{Crossover, SweepPoint, Winner, crossover};
pub use estimate::Estimate;
pub use holm::holm;
pub use jackknife::jackknife;
pub use line::{CostLine, SizePoint, cost_line};
pub use log_ratio::{LogRatio, PairedRound, log_ratio};
pub use percentile::{LatencyRound, NotEnough, PercentileShift, percentile, shift_function};
pub use ratio::{Pair, Series, ratio_of_series, ratio_of_sums};
pub use regimes::regimes;
pub use scalability::{LoadPoint, Scalability, scalability};
pub use steady::{Steady, steady};
pub use step::{Step, step};
pub use stopping::{FEWEST_ROUNDS, precise_enough, seconds_to_decide, wanted_half_width};
pub use typical::{shape_changed, typical};
pub use unpaired::{LogLevel, log_level};
pub use verdict::{Good, Verdict, verdict};
