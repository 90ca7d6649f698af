//! What is known of each metric of a phase.

use crate::experiment::Metric;
use crate::stats::Estimate;
use serde::de::IgnoredAny;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// What is known of a metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// The value and its interval. Where the value is not told, the interval may still be known.
    pub estimate: Option<Estimate>,
    /// Why the value is not told.
    pub why_not: Option<String>,
}

impl Figure {
    /// What is told.
    pub fn told(&self) -> Option<Estimate> {
        self.estimate.filter(|_| self.why_not.is_none())
    }
}

/// The figures of a phase. The keys of a metric are its name with the value, which is `null` where it is not told; `NAME_low` and
/// `NAME_high`, the ends of its 95 % interval; `NAME_reason`, why the value is `null` although the number of I/Os may be known.
#[derive(Clone, Debug, Default)]
pub struct Figures(BTreeMap<Metric, Figure>);

impl Figures {
    /// What is known of a metric.
    pub fn of(&self, metric: Metric) -> Figure {
        self.0.get(&metric).cloned().unwrap_or_default()
    }

    /// Tells a metric.
    pub fn set(&mut self, metric: Metric, estimate: Option<Estimate>) {
        self.0.insert(metric, Figure { estimate, why_not: None });
    }

    /// Says why a metric is not told; without its interval, if there was one.
    pub(crate) fn withhold(&mut self, metric: Metric, why_not: &str) {
        self.0.insert(metric, Figure { estimate: None, why_not: Some(why_not.to_owned()) });
    }
}

impl FromIterator<(Metric, Figure)> for Figures {
    fn from_iter<I: IntoIterator<Item = (Metric, Figure)>>(figures: I) -> Self {
        Self(figures.into_iter().collect())
    }
}

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for metric in Metric::ALL.into_iter().filter(|metric| !metric.is_latency()) {
            let (name, figure) = (metric.name(), self.of(metric));
            map.serialize_entry(name, &figure.told().map(|told| told.value))?;
            map.serialize_entry(&format!("{name}_low"), &figure.estimate.and_then(|known| known.low))?;
            map.serialize_entry(&format!("{name}_high"), &figure.estimate.and_then(|known| known.high))?;
            map.serialize_entry(&format!("{name}_reason"), &figure.why_not)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Figures {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// All members of the phase are offered.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Member {
            Number(f64),
            Text(String),
            Other(IgnoredAny),
        }
        let all = BTreeMap::<String, Member>::deserialize(deserializer)?;
        let number = |key: String| match all.get(&key) {
            Some(Member::Number(number)) => Some(*number),
            _ => None,
        };
        let figure = |metric: Metric| {
            let name = metric.name();
            let (low, high) = (number(format!("{name}_low")), number(format!("{name}_high")));
            let why_not = match all.get(&format!("{name}_reason")) {
                Some(Member::Text(why)) => Some(why.clone()),
                _ => None,
            };
            let middle = low.zip(high).filter(|_| why_not.is_some()).map(|(low, high)| (low + high) / 2.0);
            let value = number(name.to_owned()).or(middle);
            (metric, Figure { estimate: value.map(|value| Estimate { value, low, high }), why_not })
        };
        Ok(Metric::ALL.into_iter().map(figure).collect())
    }
}
