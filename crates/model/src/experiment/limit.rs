//! A limit that makes the exit code fail a build: `cycles_per_io > +3%`.

use super::metric::Metric;
use crate::plan::value::Wrong;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A limit on the change of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limit {
    /// The metric.
    pub metric: Metric,
    /// Which changes fail.
    pub beyond: Beyond,
    /// The limit, as candidate ÷ baseline − 1.
    pub change: f64,
}

/// Which side of a limit fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Beyond {
    /// `>`: larger changes fail.
    Above,
    /// `<`: smaller changes fail.
    Below,
}

impl Limit {
    /// Parses `METRIC > +3%` or `METRIC < -5%`.
    ///
    /// # Errors
    /// If the metric is unknown, or the text is not a limit.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let expected =
            || Wrong::new(format!("'{text}': expected a limit such as 'cycles_per_io > +3%' or 'iops < -5%'"));
        let (place, sign) = text.char_indices().find(|(_, c)| "<>".contains(*c)).ok_or_else(expected)?;
        let (name, rest) = text.split_at(place);
        let name = name.trim();
        let metric = Metric::parse(name).ok_or_else(|| {
            let names: Vec<&str> = Metric::ALL.iter().map(|metric| metric.name()).collect();
            Wrong::new(format!("'{name}' is not a metric; expected one of {}", names.join(", ")))
        })?;
        let percent = rest.trim_start_matches(sign).trim().strip_suffix('%').ok_or_else(expected)?;
        let percent: f64 = percent.trim().parse().map_err(|_| expected())?;
        if !percent.is_finite() || percent <= -100.0 {
            return Err(expected());
        }
        let beyond = if sign == '>' { Beyond::Above } else { Beyond::Below };
        Ok(Self { metric, beyond, change: percent / 100.0 })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let sign = if self.beyond == Beyond::Above { '>' } else { '<' };
        write!(formatter, "{} {sign} {:+}%", self.metric.name(), (self.change * 1e8).round() / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_written() {
        for (text, metric, beyond, change) in [
            ("cycles_per_io > +3%", Metric::CyclesPerIo, Beyond::Above, 0.03),
            ("iops<-5%", Metric::Iops, Beyond::Below, -0.05),
            ("latency_p99 > 0.5 %", Metric::LatencyP99, Beyond::Above, 0.005),
        ] {
            assert_eq!(Limit::parse(text).unwrap(), Limit { metric, beyond, change }, "{text}");
        }
        assert_eq!(Limit::parse("iops < -5%").unwrap().to_string(), "iops < -5%");
    }

    #[test]
    fn invalid_limits_are_refused() {
        for wrong in ["", "iops", "iops > 3", "iops > x%", "iops > -100%", "iops > NaN%"] {
            assert!(Limit::parse(wrong).unwrap_err().to_string().contains("expected a limit"), "{wrong}");
        }
        assert!(Limit::parse("speed > 3%").unwrap_err().to_string().contains("'speed' is not a metric"));
    }
}
