//! An earlier measurement to compare a new one with.
//!
//! The two were not measured side by side, so their difference contains everything that changed between the sessions,
//! known or not. This module lists the known differences, for every kind of record.

pub mod machine;
pub mod work;

use crate::kind::{Head, Recorded};
use crate::stats::Estimate;
use crate::warning::{Code, Warning, gravest_first};
use serde::{Deserialize, Serialize};

/// An earlier record, and its path.
#[derive(Clone, Debug)]
pub struct Stored<R> {
    pub(crate) from: String,
    pub record: R,
}

impl<R> Stored<R> {
    /// Creates a stored record that was read from `from`.
    pub fn new(from: impl Into<String>, record: R) -> Self {
        Self { from: from.into(), record }
    }
}

impl<R: Recorded> Stored<R> {
    /// Says in the head of a finding of `now` what is known to differ from this record, and which caveats change the meaning of the
    /// difference: another method, or different work.
    pub fn stand_beside(&self, now: &R, differing_work: Vec<String>, head: &mut Head) {
        let (from, differs) = (self.from.clone(), self.record.differences(now));
        let started_unix_seconds = self.record.envelope().started_unix_seconds;
        head.stored = Some(StoredFinding { from, started_unix_seconds, differs });
        let [before, today] = [&self.record, now].map(|record| record.envelope().method_version);
        if before != today {
            let message = format!(
                "the stored record was measured with method {before}, this one with method {today}: numbers may have changed their \
                 meaning, and the difference includes that; see CHANGELOG.md"
            );
            head.warnings.push(Warning::new(Code::StoredMethodDiffers, message));
        }
        if !differing_work.is_empty() {
            let work = work::named(differing_work).join(", ");
            let message =
                format!("the stored measurement did different work: {work}; the difference includes the effect");
            head.warnings.push(Warning::new(Code::StoredWorkDiffers, message));
        }
        gravest_first(&mut head.warnings);
    }
}

/// The earlier measurement, as reported in a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredFinding {
    /// Path of its record, as given.
    pub from: String,
    /// When it was measured, in seconds since 1970.
    pub started_unix_seconds: f64,
    /// Known differences from then to now, in words: "kernel 6.9.1 → 6.18.44". Empty if none are known.
    pub differs: Vec<String>,
}

/// The change from `then` to `now`, whose errors are independent: the half-widths of their logarithms add as
/// squares, separately for each side. `None` if one of the values is not positive.
pub fn since(now: Estimate, then: Estimate) -> Option<Estimate> {
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
    Some(Estimate {
        value: theta.exp_m1(),
        low: end(below(now), above(then), -1.0),
        high: end(above(now), below(then), 1.0),
    })
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
        let change = since(estimate(120.0, three), estimate(100.0, four)).unwrap();
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-12;
        assert!(near(change.value, 0.2), "{change:?}");
        assert!(near(change.low.unwrap(), 1.2 * (-0.05_f64).exp() - 1.0), "{change:?}");
        assert!(near(change.high.unwrap(), 1.2 * 0.05_f64.exp() - 1.0), "{change:?}");
    }

    #[test]
    fn no_logarithm_gives_no_change_and_no_interval_none() {
        assert_eq!(since(estimate(-1.0, 1.1), estimate(100.0, 1.1)), None);
        assert_eq!(since(estimate(1.0, 1.1), estimate(0.0, 1.1)), None);
        let wide = Estimate { value: 10.0, low: Some(-5.0), high: Some(25.0) };
        let change = since(wide, estimate(10.0, 1.1)).unwrap();
        assert!(change.value == 0.0 && change.low.is_none() && change.high.unwrap() > 1.5, "{change:?}");
        let bare = Estimate { value: 10.0, low: None, high: None };
        let change = since(bare, estimate(10.0, 1.1)).unwrap();
        assert!(change.low.is_none() && change.high.is_none(), "{change:?}");
    }
}
