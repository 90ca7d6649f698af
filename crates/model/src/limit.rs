//! Limits that make the exit code fail a build: on a change (`cycles_per_io > +3%`), or on a value (`cycles_per_io > 30k`).
//!
//! A limit is exceeded or kept if the whole interval is on one side of it. Without an interval it is undecided.

use crate::stats::Estimate;
use serde::{Deserialize, Serialize};

/// Unit of parts of a whole: a percentage of one is its value, not its change.
const FRACTION: &str = "fraction";
/// [`LimitFinding::unit`] of a change.
pub const CHANGE: &str = "change";

/// A metric that a limit can be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// The name in a limit.
    pub name: &'static str,
    /// The unit of its values: `ns`, `s` and `fraction` have suffixes of their own.
    pub unit: &'static str,
}

/// A limit on a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// As the user wrote it.
    #[serde(default)]
    pub text: String,
    /// The metric's name.
    pub metric: String,
    /// Which side fails.
    pub beyond: Beyond,
    /// The limit.
    #[serde(flatten)]
    pub bound: Bound,
}

/// Which side of a limit fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Beyond {
    /// `>`: what is larger fails.
    Above,
    /// `<`: what is smaller fails.
    Below,
}

/// What is limited, and where the limit lies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The change, as a fraction: now ÷ before − 1.
    Change(f64),
    /// The value itself.
    Value {
        /// The value.
        amount: f64,
        /// The metric's unit.
        unit: String,
    },
}

/// What a measurement says of a metric at one place.
#[derive(Clone, Debug)]
pub struct AtPlace {
    /// See [`LimitFinding::cell`].
    pub cell: String,
    /// See [`LimitFinding::arm`].
    pub arm: String,
    /// The value, or why it is unknown.
    pub value: Result<Estimate, String>,
    /// The change, or why it is unknown; `None` at a place that others are compared with.
    pub change: Option<Result<Estimate, String>>,
}

/// A limit of `--fail-on` at one place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LimitFinding {
    /// The limit: `cycles_per_io > +3%`.
    pub limit: String,
    /// The limited metric.
    pub metric: String,
    /// Where it was judged, in words: the cell of a sweep, the jobs of a phase, a job, a method with its submitters. Empty if there
    /// is only one.
    pub cell: String,
    /// Name of the arm; empty if the measurement has none.
    pub arm: String,
    /// What was measured: the change, or the value. `null` if it is unknown.
    pub found: Option<Estimate>,
    /// Unit of `found`: that of the metric, or `change` for a change as a fraction.
    pub unit: String,
    /// Why it is undecided, unless the interval contains the limit; `null` otherwise.
    pub reason: Option<String>,
    /// Whether the limit was exceeded.
    pub state: LimitState,
}

/// The state of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitState {
    /// The whole interval is within the limit.
    Kept,
    /// The interval contains the limit, or there is none.
    #[default]
    Undecided,
    /// The whole interval exceeds the limit.
    Exceeded,
}

impl Limit {
    /// Parses `METRIC > +3%` (a change), or `METRIC < 30k` (a value).
    ///
    /// # Errors
    /// If the metric is none of `metrics`, or the text is not a limit.
    pub fn parse(text: &str, metrics: &[Quantity]) -> Result<Self, String> {
        let expected =
            |what: &str| format!("'{text}': expected a limit such as 'cycles_per_io > +3%' or 'iops < -5%'{what}");
        let is_sign = |c: char| "<>=!".contains(c);
        let place = text.find(is_sign).ok_or_else(|| expected(", or on a value 'iops < 100k'"))?;
        let (name, rest) = text.split_at(place);
        let (sign, rest) = rest.split_at(rest.find(|c| !is_sign(c)).unwrap_or(rest.len()));
        let (name, rest) = (name.trim(), rest.trim());
        let beyond = match sign {
            ">" => Beyond::Above,
            "<" => Beyond::Below,
            _ => return Err(expected(&format!(": '{sign}' is none of > and <"))),
        };
        let quantity = metrics.iter().find(|quantity| quantity.name == name).ok_or_else(|| {
            let names: Vec<String> = metrics.iter().map(|Quantity { name, unit }| format!("{name} ({unit})")).collect();
            format!("'{name}' is not a metric; expected one of {}", names.join(", "))
        })?;
        let bound = quantity.bound(rest).ok_or_else(|| expected(&format!(", or on a value {}", quantity.example())))?;
        let never = match (&bound, beyond) {
            (Bound::Value { amount, .. }, Beyond::Below) => *amount <= 0.0,
            (Bound::Value { amount, unit }, Beyond::Above) => unit == FRACTION && *amount >= 1.0,
            (Bound::Change(_), _) => false,
        };
        if never {
            return Err(expected(&format!("; {name} is never {sign} {rest}, so this one cannot fail")));
        }
        Ok(Self { text: text.trim().to_owned(), metric: name.to_owned(), beyond, bound })
    }

    /// Whether it limits a change.
    pub fn is_on_change(&self) -> bool {
        matches!(self.bound, Bound::Change(_))
    }

    fn judge(&self, reading: AtPlace) -> Option<LimitFinding> {
        let (found, at, unit) = match &self.bound {
            Bound::Change(at) => (reading.change?, *at, CHANGE),
            Bound::Value { amount, unit } => (reading.value, *amount, unit.as_str()),
        };
        let (found, mut reason) = match found {
            Ok(found) => (Some(found), None),
            Err(why) => (None, Some(why)),
        };
        let interval = found.and_then(|found| found.low.zip(found.high));
        let state = match (interval, self.beyond) {
            (Some((low, _)), Beyond::Above) if low > at => LimitState::Exceeded,
            (Some((_, high)), Beyond::Above) if high <= at => LimitState::Kept,
            (Some((_, high)), Beyond::Below) if high < at => LimitState::Exceeded,
            (Some((low, _)), Beyond::Below) if low >= at => LimitState::Kept,
            _ => LimitState::Undecided,
        };
        if found.is_some() && interval.is_none() {
            reason = Some("it has no interval".to_owned());
        }
        let (limit, metric, unit) = (self.text.clone(), self.metric.clone(), unit.to_owned());
        Some(LimitFinding { limit, metric, cell: reading.cell, arm: reading.arm, found, unit, reason, state })
    }
}

impl Quantity {
    /// Reads what follows the sign. `None` if it is no limit on this metric.
    fn bound(self, text: &str) -> Option<Bound> {
        let value = |amount: f64| Some(Bound::Value { amount, unit: self.unit.to_owned() });
        if let Some(percent) = text.strip_suffix('%') {
            let part = percent.trim().parse::<f64>().ok().filter(|percent| percent.is_finite())? / 100.0;
            if self.unit == FRACTION {
                return if text.starts_with(['+', '-']) { None } else { value(part) };
            }
            return (part > -1.0).then_some(Bound::Change(part));
        }
        let (number, suffix) = text.split_at(text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len()));
        let amount = number.trim().parse::<f64>().ok()? * factor(self.unit, suffix)?;
        if amount.is_finite() && amount >= 0.0 && !number.starts_with('+') { value(amount) } else { None }
    }

    /// A limit on its value, for messages.
    fn example(self) -> String {
        let value = match self.unit {
            "ns" | "s" => "200us",
            FRACTION => "1%",
            _ => "30k",
        };
        format!("'{} > {value}'", self.name)
    }
}

/// What a suffix of values in a unit multiplies by; `None` if it is none.
fn factor(unit: &str, suffix: &str) -> Option<f64> {
    const TIMES: [(&str, f64); 5] = [("ns", 1.0), ("µs", 1e3), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    const PLAIN: [(&str, f64); 9] = [
        ("", 1.0),
        ("K", 1e3),
        ("k", 1e3),
        ("KiB", 1024.0),
        ("M", 1e6),
        ("MiB", 1_048_576.0),
        ("G", 1e9),
        ("GiB", 1_073_741_824.0),
        ("T", 1e12),
    ];
    let (all, smallest): (&[(&str, f64)], f64) = match unit {
        "ns" => (&TIMES, 1.0),
        "s" => (&TIMES, 1e-9),
        _ => (&PLAIN, 1.0),
    };
    all.iter().find(|(known, _)| *known == suffix).map(|(_, factor)| factor * smallest)
}

/// Every limit at every place that has its metric, the worst place first. The intervals of one measurement are read as they
/// are reported.
pub fn judge(limits: &[Limit], readings: impl Fn(&str) -> Vec<AtPlace>) -> Vec<LimitFinding> {
    let mut all = Vec::new();
    for limit in limits {
        let mut found: Vec<LimitFinding> =
            readings(&limit.metric).into_iter().filter_map(|reading| limit.judge(reading)).collect();
        let far = |finding: &LimitFinding| {
            let value = finding.found.map_or(0.0, |found| found.value);
            if limit.beyond == Beyond::Above { value } else { -value }
        };
        found.sort_by(|one, other| other.state.cmp(&one.state).then_with(|| far(other).total_cmp(&far(one))));
        if found.is_empty() {
            let reason = Some("nothing that was measured tells it".to_owned());
            found.push(LimitFinding {
                limit: limit.text.clone(),
                metric: limit.metric.clone(),
                reason,
                ..LimitFinding::default()
            });
        }
        all.extend(found);
    }
    all
}

/// The worst place of each limit that is not kept.
pub fn not_kept(limits: &[LimitFinding]) -> Vec<&LimitFinding> {
    let mut worst: Vec<&LimitFinding> = Vec::new();
    for finding in limits.iter().filter(|finding| finding.state != LimitState::Kept) {
        if worst.iter().all(|other| other.limit != finding.limit) {
            worst.push(finding);
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: [Quantity; 5] = [
        Quantity { name: "cycles_per_io", unit: "cycles/I/O" },
        Quantity { name: "iops", unit: "I/O/s" },
        Quantity { name: "latency_p99", unit: "ns" },
        Quantity { name: "seconds", unit: "s" },
        Quantity { name: "loss_share", unit: "fraction" },
    ];

    fn limit(text: &str) -> Limit {
        Limit::parse(text, &METRICS).unwrap()
    }

    #[test]
    fn limits_are_read() {
        for (text, change) in [("cycles_per_io > +3%", 0.03), ("iops<-5%", -0.05), ("latency_p99 > 0.5 %", 0.005)] {
            assert_eq!((limit(text).bound, limit(text).text.as_str()), (Bound::Change(change), text));
        }
        for (text, value) in [
            ("cycles_per_io > 30k", 30_000.0),
            ("iops < 1.5 M", 1.5e6),
            ("iops < 1MiB", 1_048_576.0),
            ("iops > 0", 0.0),
            ("latency_p99>200us", 200_000.0),
            ("latency_p99 > 1500 ms", 1.5e9),
            ("seconds > 20ms", 0.02),
            ("loss_share > 1%", 0.01),
            ("loss_share > 0.01", 0.01),
            ("iops > 0.0000001", 1e-7),
        ] {
            let Bound::Value { amount, .. } = limit(text).bound else { panic!("{text}") };
            assert!((amount - value).abs() <= 1e-12 * value, "{text}: {amount}");
        }
    }

    #[test]
    fn invalid_limits_are_refused() {
        let wrong = [
            "",
            "iops",
            "iops > x%",
            "iops > -100%",
            "iops > NaN%",
            "iops > 3 fish",
            "iops > -3",
            "latency_p99 > 200",
            "seconds > 1k",
            "loss_share > +1%",
            "iops > inf",
            "iops > +3",
        ];
        for wrong in wrong {
            assert!(Limit::parse(wrong, &METRICS).unwrap_err().contains("expected a limit"), "{wrong}");
        }
        for (wrong, why) in [
            ("iops >> 30k", "'>>' is none of > and <"),
            ("iops >= 30k", "'>=' is none of > and <"),
            ("iops == 3", "'==' is none of > and <"),
            ("iops <> 3", "'<>' is none of > and <"),
            ("iops < 0", "iops is never < 0, so this one cannot fail"),
            ("loss_share > 100%", "loss_share is never > 100%"),
            ("loss_share < 0%", "loss_share is never < 0%"),
        ] {
            let refusal = Limit::parse(wrong, &METRICS).unwrap_err();
            assert!(refusal.contains(why) && refusal.lines().count() == 1, "{refusal}");
        }
        let unknown = Limit::parse("speed > 3%", &METRICS).unwrap_err();
        assert!(unknown.contains("'speed' is not a metric") && unknown.contains("latency_p99 (ns)"), "{unknown}");
    }

    #[test]
    fn a_limit_is_stored_as_records_of_comparisons_have_it() {
        let text = r#"{"text":"cycles_per_io > +3%","metric":"cycles_per_io","beyond":"above","change":0.03}"#;
        assert_eq!(serde_json::to_string(&limit("cycles_per_io > +3%")).unwrap(), text);
        for limit in [limit("cycles_per_io > +3%"), limit("latency_p99 < 200us")] {
            let again: Limit = serde_json::from_str(&serde_json::to_string(&limit).unwrap()).unwrap();
            assert_eq!(again, limit);
        }
    }

    fn reading(cell: &str, low: f64, high: f64) -> AtPlace {
        let value = Ok(Estimate { value: (low + high) / 2.0, low: Some(low), high: Some(high) });
        AtPlace { cell: cell.to_owned(), arm: String::new(), change: Some(value.clone()), value }
    }

    #[test]
    fn the_interval_decides_and_the_worst_place_is_first() {
        let states = |text: &str, readings: &[AtPlace]| -> Vec<(String, LimitState)> {
            let found = judge(&[limit(text)], |_| readings.to_vec());
            found.into_iter().map(|finding| (finding.cell, finding.state)).collect()
        };
        let all = [reading("a", 1.0, 2.0), reading("b", 4.0, 6.0), reading("c", 7.0, 7.0), reading("d", 6.0, 9.0)];
        let named = |cells: [(&str, LimitState); 4]| cells.map(|(cell, state)| (cell.to_owned(), state)).to_vec();
        use LimitState::{Exceeded, Kept, Undecided};
        assert_eq!(states("iops > 5", &all), named([("d", Exceeded), ("c", Exceeded), ("b", Undecided), ("a", Kept)]));
        assert_eq!(states("iops < 5", &all), named([("a", Exceeded), ("b", Undecided), ("c", Kept), ("d", Kept)]));
        assert_eq!(states("cycles_per_io > +700%", &all[2..3]), [("c".to_owned(), Kept)], "at the limit");
    }

    #[test]
    fn what_is_unknown_is_undecided_and_tells_why() {
        let unknown = AtPlace { value: Err("not counted".to_owned()), ..reading("", 0.0, 0.0) };
        let bare = AtPlace { value: Ok(Estimate::bare(9.0)), change: None, ..reading("", 0.0, 0.0) };
        for (readings, why) in [
            (vec![unknown], "not counted"),
            (vec![bare.clone()], "it has no interval"),
            (Vec::new(), "nothing that was measured tells it"),
        ] {
            let found = judge(&[limit("iops > 5")], |_| readings.clone());
            assert_eq!((found[0].state, found[0].reason.as_deref()), (LimitState::Undecided, Some(why)));
        }
        let baseline = judge(&[limit("iops > +5%")], |_| vec![bare.clone(), reading("b", 0.0, 0.0)]);
        assert_eq!(baseline.len(), 1, "the baseline has no change");
    }
}
