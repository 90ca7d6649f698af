//! What a comparison found out about one metric, whether it is a ratio of sums or a percentile.

use super::estimate::Estimate;
use super::log_ratio::LogRatio;
use super::percentile::PercentileShift;
use super::serial::independent;

/// The change of a metric, with everything that an interval and a verdict need.
#[derive(Clone, Debug)]
pub enum Evidence {
    /// Of a ratio of sums, or of one value for each round.
    Ratio(LogRatio),
    /// Of a percentile of latency.
    Percentile(PercentileShift),
}

impl Evidence {
    /// The change as a fraction, with its interval of this confidence.
    pub fn change(&self, confidence: f64) -> Estimate {
        match self {
            Self::Ratio(ratio) => ratio.change(confidence),
            Self::Percentile(shift) => shift.change(confidence),
        }
    }

    /// Whether the interval of this confidence excludes 0, so that the difference is *detected*.
    pub fn excludes_zero(&self, confidence: f64) -> bool {
        match self {
            Self::Ratio(ratio) => ratio.excludes_zero(confidence),
            Self::Percentile(shift) => shift.change(confidence).contains(0.0) == Some(false),
        }
    }

    /// Two-sided p-value of no change.
    pub fn p_value(&self) -> Option<f64> {
        match self {
            Self::Ratio(ratio) => ratio.p_value(),
            Self::Percentile(shift) => shift.p_value(),
        }
    }

    /// The smallest change that an interval of this confidence excludes 0 for with 80 % probability.
    pub fn mde80(&self, confidence: f64) -> Option<f64> {
        match self {
            Self::Ratio(ratio) => ratio.mde80(confidence),
            Self::Percentile(shift) => shift.mde80(confidence),
        }
    }

    /// Half of the width of the interval of this confidence, in logarithms.
    pub fn half_width(&self, confidence: f64) -> Option<f64> {
        match self {
            Self::Ratio(ratio) => ratio.error?.half_width(confidence),
            Self::Percentile(shift) => shift.half_width(confidence),
        }
    }

    /// Number of independent units: rounds, or boots.
    pub fn units(&self) -> usize {
        match self {
            Self::Ratio(ratio) => ratio.units,
            Self::Percentile(shift) => shift.units,
        }
    }

    /// How many independent units these are worth.
    pub fn independent_units(&self) -> f64 {
        independent(self.units(), self.correlation())
    }

    /// The correlation of consecutive rounds, if it is evident.
    pub fn correlation(&self) -> Option<f64> {
        match self {
            Self::Ratio(ratio) => ratio.correlation,
            Self::Percentile(shift) => shift.correlation,
        }
    }
}
