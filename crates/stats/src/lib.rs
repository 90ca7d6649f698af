//! The statistics of the method: estimates with their intervals, each from a documented formula.

pub mod basics;
pub mod change_points;
pub mod common_shift;
pub mod crossover;
pub mod curves;
pub mod estimate;
pub mod evidence;
pub mod histogram;
pub mod percentile;
pub mod regimes;
pub mod series;
pub mod steady;
pub mod stopping;
pub mod typical;
pub mod unpaired;

pub use basics::{holm, jackknife, rank_sum_p, wilson};
pub use change_points::{Change, change_points};
pub use common_shift::{CommonShift, common_shift};
pub use crossover::{Between, Crossover, Winner, crossover};
pub use curves::{CostLine, Scalability, cost_line, scalability};
pub use estimate::{
    Dominant, Estimate, Neighbours, Pair, Ratio, Serial, Uncertainty, confidence_of_each, dominant, exceeds_background,
    ratio_of_sums, serial,
};
pub use evidence::{
    Difference, Evidence, Good, LogRatio, PairedRound, Resolution, Verdict, difference, log_ratio, verdict,
};
pub use percentile::{LatencyRound, NotEnough, PercentileShift, percentile};
pub use regimes::regimes;
pub use steady::{Steady, steady};
pub use stopping::{FEWEST_ROUNDS, precise_enough, seconds_to_decide, wanted_half_width};
pub use typical::{shape_changed, typical};
pub use unpaired::{LogLevel, log_level};
