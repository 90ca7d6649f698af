//! The metrics of runs and comparisons, one row of the table for each.

use crate::limit::Quantity;
use crate::stats::Good;
use serde::{Deserialize, Serialize};

/// Properties of a metric.
struct Row {
    name: &'static str,
    unit: &'static str,
    good: Good,
    percent: Option<f64>,
    words: [&'static str; 4],
    counts: [Term; 2],
}

/// What metrics divide, and by what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// Of the whole machine, net of the background.
    Cycles,
    /// The same over whole executions of a command.
    WholeCycles,
    /// Of the workload's own threads.
    ThreadCycles,
    /// Of the whole machine, net of the background.
    Switches,
    Latency,
    Ios,
    Bytes,
    Time,
    /// Of whole executions of a command.
    WholeTime,
    Executions,
}

impl Term {
    pub fn words(self) -> &'static str {
        match self {
            Self::Cycles | Self::WholeCycles => "cycles",
            Self::ThreadCycles => "cycles of its threads",
            Self::Switches => "context switches",
            Self::Latency => "latency",
            Self::Ios => "I/Os",
            Self::Bytes => "bytes",
            Self::Time | Self::WholeTime => "time",
            Self::Executions => "executions",
        }
    }
}

macro_rules! metrics {
    ($($(#[$doc:meta])* $variant:ident($name:literal, $unit:literal, $good:ident, $percent:expr, $words:expr, [$divided:ident, $by:ident]),)*) => {
        /// A metric of a run or a comparison.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Metric {
            $($(#[$doc])* $variant,)*
        }

        impl Metric {
            /// Every metric, in the order in which reports show them.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            const fn row(self) -> Row {
                match self {
                    $(Self::$variant => Row {
                        name: $name, unit: $unit, good: Good::$good, percent: $percent, words: $words,
                        counts: [Term::$divided, Term::$by],
                    },)*
                }
            }
        }
    };
}

metrics! {
    /// Cycles of the whole machine per I/O, net of the background.
    CyclesPerIo("cycles_per_io", "cycles/I/O", Lower, None,
        ["cycles/IO", "cycles per I/O", "costs", ""], [Cycles, Ios]),
    /// Cycles of the whole machine per byte, net of the background.
    CyclesPerByte("cycles_per_byte", "cycles/B", Lower, None,
        ["cycles/B", "cycles per byte", "costs", ""], [Cycles, Bytes]),
    /// I/Os per second.
    Iops("iops", "I/O/s", Higher, None,
        ["IOPS", "I/Os per second", "does", ""], [Ios, Time]),
    /// Bytes per second.
    BytesPerSecond("bytes_per_second", "B/s", Higher, None,
        ["bytes/s", "bytes per second", "moves", ""], [Bytes, Time]),
    /// Context switches of the whole machine per I/O, net of the background.
    ContextSwitchesPerIo("context_switches_per_io", "switches/I/O", Lower, None,
        ["switches/IO", "context switches per I/O", "makes", ""], [Switches, Ios]),
    /// Cycles of the workload's own threads per I/O.
    ThreadCyclesPerIo("thread_cycles_per_io", "cycles/I/O", Lower, None,
        ["own cyc/IO", "cycles of its own threads per I/O", "uses", ""], [ThreadCycles, Ios]),
    /// Mean latency from submission to completion, nanoseconds.
    LatencyMean("latency_mean", "ns", Lower, None,
        ["mean lat", "mean latency", "takes", "time for the mean I/O"], [Latency, Ios]),
    /// Median latency, nanoseconds.
    LatencyP50("latency_p50", "ns", Lower, Some(50.0),
        ["p50 lat", "median latency", "takes", "time for the median I/O"], [Latency, Ios]),
    /// 99th percentile of latency, nanoseconds.
    LatencyP99("latency_p99", "ns", Lower, Some(99.0),
        ["p99 lat", "p99 latency", "takes", "time at the 99th percentile"], [Latency, Ios]),
    /// 99.9th percentile of latency, nanoseconds.
    LatencyP999("latency_p999", "ns", Lower, Some(99.9),
        ["p99.9 lat", "p99.9 latency", "takes", "time at the 99.9th percentile"], [Latency, Ios]),
    /// Cycles of the whole machine for one execution of a command, net of the background.
    Cycles("cycles", "cycles", Lower, None,
        ["cycles", "cycles", "costs", ""], [WholeCycles, Executions]),
    /// Duration of one execution of a command, seconds.
    Seconds("seconds", "s", Lower, None,
        ["time", "seconds", "takes", "time"], [WholeTime, Executions]),
}

impl Metric {
    /// All metrics, for limits.
    pub fn quantities() -> Vec<Quantity> {
        Self::ALL.map(|metric| Quantity { name: metric.name(), unit: metric.unit() }).into()
    }

    /// Finds a metric by name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name)
    }

    /// The name in JSON and on the command line.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Its unit.
    pub fn unit(self) -> &'static str {
        self.row().unit
    }

    /// Whether lower or higher is better.
    pub fn good(self) -> Good {
        self.row().good
    }

    /// Whether it is a cost of the whole machine.
    pub fn is_of_whole_machine(self) -> bool {
        matches!(self.counts(), [Term::Cycles | Term::WholeCycles, _])
    }

    /// Whether it is of whole executions, which only commands have.
    pub fn is_of_commands(self) -> bool {
        matches!(self.counts(), [_, Term::Executions])
    }

    /// Whether it is per I/O or byte, or their number per second.
    pub fn is_of_work(self) -> bool {
        !matches!(self.counts(), [Term::Latency, _] | [_, Term::Executions])
    }

    /// Whether it is a latency, which belongs to a job and not to a phase.
    pub fn is_latency(self) -> bool {
        matches!(self.counts(), [Term::Latency, _])
    }

    /// Its words: in the header of a row or column; in a sentence; "*costs* 3 % more cycles per I/O"; and "takes 3 % more *time for the
    /// median I/O*", or nothing if that is the second.
    pub fn words(self) -> [&'static str; 4] {
        self.row().words
    }

    /// What its numerator and its denominator count. A percentile is no ratio of them.
    pub fn counts(self) -> [Term; 2] {
        self.row().counts
    }

    /// Its percentile, in percent, if it is a latency percentile.
    pub fn percent(self) -> Option<f64> {
        self.row().percent
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
