//! An earlier measurement that a new one stands beside.
//!
//! What differs between the two was not measured side by side: it is everything that changed between the two sessions, whether
//! iotoll can name it or not. What can be named is named here, of every kind alike.

pub(crate) mod machine;
pub(crate) mod work;

use crate::envelope::Envelope;
use crate::stats::Estimate;
use crate::warning::{Code, Warning};
use serde::{Deserialize, Serialize};

/// An earlier record, and where it was read from.
#[derive(Clone, Debug)]
pub struct Stored<R> {
    pub(crate) from: String,
    pub(crate) record: R,
}

impl<R> Stored<R> {
    /// What a report says of it.
    pub(crate) fn finding(&self, envelope: &Envelope, differs: Vec<String>) -> StoredFinding {
        StoredFinding { from: self.from.clone(), started_unix_seconds: envelope.started_unix_seconds, differs }
    }
}

/// The earlier measurement, in a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredFinding {
    /// Its record's path, as given.
    pub from: String,
    /// When it was measured.
    pub started_unix_seconds: f64,
    /// What is known to differ between then and now, in words: "kernel 6.9.1 → 6.18.44". Empty when nothing is.
    pub differs: Vec<String>,
}

/// A change between two sessions. Its interval holds what varied within each, not what else differs between them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnpairedChange {
    /// The change.
    pub change: f64,
    /// Lower end of its 95 % interval; `null` where one of the two has none.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl UnpairedChange {
    /// From `then` to `now`, whose errors are independent: the half-widths of their logarithms add as squares, each side by
    /// itself. `None` where one is not positive.
    pub(crate) fn since(now: Estimate, then: Estimate) -> Option<Self> {
        if now.value <= 0.0 || then.value <= 0.0 {
            return None;
        }
        let log = |upper: f64, lower: f64| (lower > 0.0).then(|| (upper / lower).ln());
        let theta = (now.value / then.value).ln();
        let end = |of_now: Option<f64>, of_then: Option<f64>, sign: f64| {
            of_now.zip(of_then).map(|(of_now, of_then)| (theta + sign * of_now.hypot(of_then)).exp_m1())
        };
        let below = |of: Estimate| log(of.value, of.low?);
        let above = |of: Estimate| log(of.high?, of.value);
        Some(Self {
            change: theta.exp_m1(),
            low: end(below(now), above(then), -1.0),
            high: end(above(now), below(then), 1.0),
        })
    }
}

/// What would make another thing of the difference than it is called: another method, other work.
pub(crate) fn warnings(then: &Envelope, now: &Envelope, differing_work: &[String]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let (before, today) = (then.method_version, now.method_version);
    if before != today {
        let message = format!(
            "the stored record is of method {before} and this one of method {today}: a number may have changed its meaning in \
             between, and that would be in the difference; CHANGELOG.md lists such changes"
        );
        warnings.push(Warning::new(Code::StoredMethodDiffers, message));
    }
    if !differing_work.is_empty() {
        let message = format!(
            "the stored measurement did not do the same work as today's: {}; what that changes is in the difference",
            differing_work.join(", ")
        );
        warnings.push(Warning::new(Code::StoredWorkDiffers, message));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, half: f64) -> Estimate {
        Estimate { value, low: Some(value / half), high: Some(value * half) }
    }

    #[test]
    fn half_widths_of_logarithms_add_as_squares() {
        let (three, four) = (0.03_f64.exp(), 0.04_f64.exp());
        let change = UnpairedChange::since(estimate(120.0, three), estimate(100.0, four)).unwrap();
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-12;
        assert!(near(change.change, 0.2), "{change:?}");
        assert!(near(change.low.unwrap(), 1.2 * (-0.05_f64).exp() - 1.0), "{change:?}");
        assert!(near(change.high.unwrap(), 1.2 * 0.05_f64.exp() - 1.0), "{change:?}");
    }

    #[test]
    fn what_has_no_logarithm_has_no_change_and_what_has_no_interval_gives_none() {
        assert_eq!(UnpairedChange::since(estimate(-1.0, 1.1), estimate(100.0, 1.1)), None);
        assert_eq!(UnpairedChange::since(estimate(1.0, 1.1), estimate(0.0, 1.1)), None);
        let wide = Estimate { value: 10.0, low: Some(-5.0), high: Some(25.0) };
        let change = UnpairedChange::since(wide, estimate(10.0, 1.1)).unwrap();
        assert!(change.change == 0.0 && change.low.is_none() && change.high.unwrap() > 1.5, "{change:?}");
        let bare = Estimate { value: 10.0, low: None, high: None };
        let change = UnpairedChange::since(bare, estimate(10.0, 1.1)).unwrap();
        assert!(change.low.is_none() && change.high.is_none(), "{change:?}");
    }
}
