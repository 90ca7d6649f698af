//! When an experiment ends and what counts as a difference: as somebody asked for it, and as it is.
//!
//! Flags and files are read by the same functions here, and what nobody asked for is decided here alone.

use super::Metric;
use crate::plan::value::{self, TimeUnit, Wrong};
use crate::stats::wanted_half_width;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// When an experiment ends and what counts as a difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// Metrics that must reach the precision before the budget ends.
    pub targets: Vec<Metric>,
    /// A change below this is of no interest, as a fraction.
    pub margin: f64,
    /// Half-width of the interval at which the experiment may end, as a fraction.
    pub precision: f64,
    /// Seconds of measuring in all, at most.
    pub budget_seconds: f64,
    /// Seconds that one command, worker or toggle is waited for before it counts as hanging; see [`Rules::hang_timeout`].
    #[serde(default)]
    pub hang_timeout_seconds: Option<f64>,
    /// Seconds of a slice of jobs, where it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_seconds: Option<f64>,
}

impl Rules {
    /// METHOD.md: a change within ±3 % is no difference.
    pub const MARGIN: f64 = 0.03;
    /// Seconds.
    pub const BUDGET: f64 = 60.0;
    /// Seconds that a budget or hang timeout may be: less holds too few rounds, more is surely a slip of the hand.
    pub const TIMES: RangeInclusive<f64> = 1.0..=86_400.0;
    /// Seconds that a slice may be: reading the clocks is most of a shorter one, and longer ones make too few rounds.
    pub const SLICES: RangeInclusive<f64> = 0.001..=60.0;
    /// What may be asked for as margin or precision: less than 0.01 % would never be reached.
    pub const FRACTIONS: RangeInclusive<f64> = 0.0001..=1.0;

    /// Seconds that one command, worker or toggle is waited for. Unless it was said, twice the budget and a minute: a sync
    /// of what was written in a second may take a slow disk that minute.
    pub fn hang_timeout(&self) -> f64 {
        self.hang_timeout_seconds.unwrap_or(60.0 + 2.0 * self.budget_seconds)
    }

    /// Seconds of a budget or hang timeout: `90s`, `2min`, `1h 30m`, as in a job `2m`, or a bare number of seconds.
    ///
    /// # Errors
    /// What was expected: it is no time, or outside [`Rules::TIMES`].
    pub fn parse_time(text: &str) -> Result<f64, Wrong> {
        let seconds = seconds(text).ok_or_else(|| Wrong::new("expected a time such as 60s, 2min, 1h 30m"))?;
        if Self::TIMES.contains(&seconds) { Ok(seconds) } else { Err(Wrong::new("expected at least 1s, at most 1d")) }
    }

    /// Seconds of a slice, written as those of a budget: `20ms`, `1s`.
    ///
    /// # Errors
    /// What was expected: it is no time, or outside [`Rules::SLICES`].
    pub fn parse_slice(text: &str) -> Result<f64, Wrong> {
        let slice = seconds(text).filter(|seconds| Self::SLICES.contains(seconds));
        slice.ok_or_else(|| Wrong::new("expected a time from 1ms to 60s, such as 20ms"))
    }

    /// A margin or precision as a fraction: `3%`, `3 %` or `3` as 0.03.
    ///
    /// # Errors
    /// What was expected: it is no number, or outside [`Rules::FRACTIONS`].
    pub fn parse_percent(text: &str) -> Result<f64, Wrong> {
        let text = text.trim();
        let percent = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
        let fraction = percent.ok().map(|percent| percent / 100.0).filter(|it| Self::FRACTIONS.contains(it));
        fraction.ok_or_else(|| Wrong::new("expected 0.01% to 100%"))
    }

    /// Whether an experiment can be measured by them: in a record that is gone on with they may be anybody's.
    ///
    /// # Errors
    /// Which of them cannot be.
    pub fn check(&self) -> Result<(), Wrong> {
        let Self { margin, precision, budget_seconds, hang_timeout_seconds, slice_seconds, targets: _ } = self;
        if let Some(seconds) = slice_seconds.filter(|seconds| !Self::SLICES.contains(seconds)) {
            return Err(Wrong::new(format!("slice of {seconds} s: expected 1ms to 60s")));
        }
        for (name, seconds) in [("budget", Some(budget_seconds)), ("hang_timeout", hang_timeout_seconds.as_ref())] {
            if let Some(seconds) = seconds.filter(|seconds| !Self::TIMES.contains(seconds)) {
                return Err(Wrong::new(format!("{name} of {seconds} s: expected at least 1s, at most 1d")));
            }
        }
        if !Self::FRACTIONS.contains(margin) {
            return Err(Wrong::new(format!("margin of {} %: expected 0.01% to 100%", margin * 100.0)));
        }
        // A third of the smallest margin is less than can be asked for.
        if !(*precision > 0.0 && precision <= Self::FRACTIONS.end()) {
            return Err(Wrong::new(format!("precision of {} %: expected 0.01% to 100%", precision * 100.0)));
        }
        Ok(())
    }
}

/// Seconds as a job writes them (`2m`) or in words (`1h 30m`).
fn seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let in_words = || humantime::parse_duration(text).ok().map(|duration| duration.as_secs_f64());
    value::time(text, TimeUnit::Seconds).ok().map(|nanos| nanos.seconds()).or_else(in_words)
}

impl Default for Rules {
    fn default() -> Self {
        DraftRules::default().resolve()
    }
}

/// Rules as far as somebody said them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DraftRules {
    /// Metrics that decide when it ends.
    pub targets: Option<Vec<Metric>>,
    /// A fraction.
    pub margin: Option<f64>,
    /// A fraction.
    pub precision: Option<f64>,
    /// Seconds.
    pub budget_seconds: Option<f64>,
    /// Seconds.
    pub hang_timeout_seconds: Option<f64>,
    /// Seconds.
    pub slice_seconds: Option<f64>,
}

impl DraftRules {
    /// These, and the others' where these say nothing.
    pub fn or(self, others: Self) -> Self {
        Self {
            targets: self.targets.or(others.targets),
            margin: self.margin.or(others.margin),
            precision: self.precision.or(others.precision),
            budget_seconds: self.budget_seconds.or(others.budget_seconds),
            hang_timeout_seconds: self.hang_timeout_seconds.or(others.hang_timeout_seconds),
            slice_seconds: self.slice_seconds.or(others.slice_seconds),
        }
    }

    /// What they come to, with METHOD.md's choice where nothing was said.
    pub fn resolve(self) -> Rules {
        let margin = self.margin.unwrap_or(Rules::MARGIN);
        Rules {
            targets: self.targets.unwrap_or_else(|| vec![Metric::CyclesPerIo, Metric::Iops]),
            margin,
            precision: self.precision.unwrap_or_else(|| wanted_half_width(margin)),
            budget_seconds: self.budget_seconds.unwrap_or(Rules::BUDGET),
            hang_timeout_seconds: self.hang_timeout_seconds,
            slice_seconds: self.slice_seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_flags_and_as_jobs_write_them() {
        for (text, seconds) in [
            ("60s", 60.0),
            ("2min", 120.0),
            ("2m", 120.0),
            ("1h 30m", 5400.0),
            ("5 min", 300.0),
            ("60", 60.0),
            ("1500ms", 1.5),
            ("1.5s", 1.5),
            ("1d", 86_400.0),
            (" 1 day", 86_400.0),
        ] {
            assert_eq!(Rules::parse_time(text), Ok(seconds), "{text}");
        }
        for text in ["", "soon", "-5s", "5 parsecs"] {
            assert!(Rules::parse_time(text).unwrap_err().to_string().contains("such as 60s"), "{text}");
        }
        assert_eq!((Rules::parse_slice("20ms"), Rules::parse_slice("1")), (Ok(0.02), Ok(1.0)));
        for text in ["", "soon", "0", "999us", "61s"] {
            assert!(Rules::parse_slice(text).unwrap_err().to_string().contains("1ms to 60s"), "{text}");
        }
        for text in ["0s", "999ms", "2d", "400d", "99999999999999999999s"] {
            let why = Rules::parse_time(text).unwrap_err().to_string();
            assert!(why.starts_with("expected"), "{text}: {why}");
        }
    }

    #[test]
    fn percents_are_read_with_and_without_their_sign() {
        for text in ["3%", "3 %", "3", " 3.0% "] {
            assert_eq!(Rules::parse_percent(text), Ok(0.03), "{text}");
        }
        assert_eq!((Rules::parse_percent("0.01%"), Rules::parse_percent("100")), (Ok(0.0001), Ok(1.0)));
        for text in ["", "%", "0", "0.009%", "101%", "-3%", "NaN%", "inf", "3%%"] {
            assert!(Rules::parse_percent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_precision_is_that_of_the_margin_unless_it_was_said() {
        let file = DraftRules { margin: Some(0.03), precision: Some(0.005), ..DraftRules::default() };
        let flags = DraftRules { margin: Some(0.06), ..DraftRules::default() };
        let rules = flags.clone().or(file).resolve();
        assert_eq!((rules.margin, rules.precision), (0.06, 0.005));
        assert_eq!(flags.resolve().precision, 0.02);
        assert_eq!(Rules::default().precision, wanted_half_width(Rules::MARGIN));
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let sound = Rules::default();
        assert_eq!(sound.check(), Ok(()));
        let least = DraftRules { margin: Some(*Rules::FRACTIONS.start()), ..DraftRules::default() };
        assert_eq!(least.resolve().check(), Ok(()));
        let cases = [
            ("budget", Rules { budget_seconds: -1.0, ..sound.clone() }),
            ("budget", Rules { budget_seconds: 1e6, ..sound.clone() }),
            ("hang_timeout", Rules { hang_timeout_seconds: Some(f64::NAN), ..sound.clone() }),
            ("slice", Rules { slice_seconds: Some(0.0), ..sound.clone() }),
            ("margin", Rules { margin: 0.0, ..sound.clone() }),
            ("precision", Rules { precision: 0.0, ..sound.clone() }),
            ("precision", Rules { precision: f64::NAN, ..sound }),
        ];
        for (name, rules) in cases {
            let why = rules.check().unwrap_err().to_string();
            assert!(why.starts_with(name) && why.contains("expected"), "{why}");
        }
    }
}
