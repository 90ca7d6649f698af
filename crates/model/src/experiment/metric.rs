//! The metrics of comparisons, one row of the table for each.

use crate::limit::{Limit, Quantity};
use crate::stats::Good;
use serde::{Deserialize, Serialize};

/// A metric of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Metric {
    /// Cycles of the whole machine per I/O, net of the background.
    CyclesPerIo,
    /// Cycles of the whole machine per byte, net of the background.
    CyclesPerByte,
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    BytesPerSecond,
    /// Context switches of the whole machine per I/O, net of the background.
    ContextSwitchesPerIo,
    /// Cycles of the workload's own threads per I/O.
    ThreadCyclesPerIo,
    /// Mean latency from submission to completion, nanoseconds.
    LatencyMean,
    /// Median latency, nanoseconds.
    LatencyP50,
    /// 99th percentile of latency, nanoseconds.
    LatencyP99,
    /// 99.9th percentile of latency, nanoseconds.
    LatencyP999,
    /// Cycles of the whole machine for one execution of a command, net of the background.
    Cycles,
    /// Duration of one execution of a command, seconds.
    Seconds,
}

/// Properties of a metric.
struct Row {
    metric: Metric,
    name: &'static str,
    unit: &'static str,
    good: Good,
    percent: Option<f64>,
}

const fn row(metric: Metric, name: &'static str, unit: &'static str, good: Good, percent: Option<f64>) -> Row {
    Row { metric, name, unit, good, percent }
}

static TABLE: [Row; 12] = [
    row(Metric::CyclesPerIo, "cycles_per_io", "cycles/I/O", Good::Lower, None),
    row(Metric::CyclesPerByte, "cycles_per_byte", "cycles/B", Good::Lower, None),
    row(Metric::Iops, "iops", "I/O/s", Good::Higher, None),
    row(Metric::BytesPerSecond, "bytes_per_second", "B/s", Good::Higher, None),
    row(Metric::ContextSwitchesPerIo, "context_switches_per_io", "switches/I/O", Good::Lower, None),
    row(Metric::ThreadCyclesPerIo, "thread_cycles_per_io", "cycles/I/O", Good::Lower, None),
    row(Metric::LatencyMean, "latency_mean", "ns", Good::Lower, None),
    row(Metric::LatencyP50, "latency_p50", "ns", Good::Lower, Some(50.0)),
    row(Metric::LatencyP99, "latency_p99", "ns", Good::Lower, Some(99.0)),
    row(Metric::LatencyP999, "latency_p999", "ns", Good::Lower, Some(99.9)),
    row(Metric::Cycles, "cycles", "cycles", Good::Lower, None),
    row(Metric::Seconds, "seconds", "s", Good::Lower, None),
];

impl Metric {
    /// Every metric, in the order in which reports show them.
    pub const ALL: [Self; 12] = [
        Self::CyclesPerIo,
        Self::CyclesPerByte,
        Self::Iops,
        Self::BytesPerSecond,
        Self::ContextSwitchesPerIo,
        Self::ThreadCyclesPerIo,
        Self::LatencyMean,
        Self::LatencyP50,
        Self::LatencyP99,
        Self::LatencyP999,
        Self::Cycles,
        Self::Seconds,
    ];

    /// All metrics, for limits.
    pub fn quantities() -> Vec<Quantity> {
        TABLE.iter().map(|row| Quantity { name: row.name, unit: row.unit }).collect()
    }

    /// A limit on the change of a metric: `cycles_per_io > +3%`.
    ///
    /// # Errors
    /// If the text is none.
    pub fn limit(text: &str) -> Result<Limit, String> {
        Limit::parse_change(text, &Self::quantities())
    }

    /// Finds a metric by name.
    pub fn parse(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.metric)
    }

    /// The name in JSON and on the command line.
    pub fn name(self) -> &'static str {
        self.row().map_or("", |row| row.name)
    }

    /// Its unit.
    pub fn unit(self) -> &'static str {
        self.row().map_or("", |row| row.unit)
    }

    /// Whether lower or higher is better.
    pub fn good(self) -> Good {
        self.row().map_or(Good::Lower, |row| row.good)
    }

    /// Whether it is a cost of the whole machine.
    pub fn is_of_whole_machine(self) -> bool {
        matches!(self, Self::CyclesPerIo | Self::CyclesPerByte | Self::Cycles)
    }

    /// Whether it is per I/O or byte, or their number per second.
    pub fn is_of_work(self) -> bool {
        !matches!(self, Self::Cycles | Self::Seconds | Self::LatencyMean) && self.percent().is_none()
    }

    /// Whether it is per byte, or bytes per second.
    pub fn is_of_bytes(self) -> bool {
        matches!(self, Self::CyclesPerByte | Self::BytesPerSecond)
    }

    /// Its percentile, in percent, if it is a latency percentile.
    pub fn percent(self) -> Option<f64> {
        self.row().and_then(|row| row.percent)
    }

    fn row(self) -> Option<&'static Row> {
        TABLE.iter().find(|row| row.metric == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_its_row_and_its_name_in_json() {
        for metric in Metric::ALL {
            assert_eq!(Metric::parse(metric.name()), Some(metric));
            assert_eq!(serde_json::to_value(metric).unwrap(), metric.name());
            assert!(!metric.unit().is_empty());
        }
        assert_eq!(Metric::parse("speed"), None);
    }
}
