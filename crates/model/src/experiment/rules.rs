//! When an experiment ends and what counts as a difference: as requested (`DraftRules`), and resolved (`Rules`).
//!
//! Flags and experiment files use the same parsers here, and only this file contains the defaults.

use super::{EndSignal, Metric, Slices, work_counter};
use crate::plan::value::{self, TimeUnit, Wrong};
use crate::stats::wanted_half_width;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// When an experiment ends and what counts as a difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// Metrics that must reach the precision before the budget is used up.
    pub targets: Vec<Metric>,
    /// Changes smaller than this do not matter, as a fraction.
    pub margin: f64,
    /// Half-width of the interval at which the experiment may end, as a fraction.
    pub precision: f64,
    /// Maximum measuring time, seconds.
    pub budget_seconds: f64,
    /// Seconds after which a command, worker or toggle counts as hung. `None` means the default; see
    /// [`Rules::hang_timeout`].
    pub hang_timeout_seconds: Option<f64>,
    /// Length of a slice of jobs, seconds, if given.
    pub slice_seconds: Option<f64>,
    /// Whether commands take turns in slices.
    pub slices: Slices,
    /// Name of the counter of the I/Os of commands; `None` means that the rehearsal chooses one.
    pub count: Option<String>,
    /// I/Os of each whole execution of every command, as the user states; `None` if they are counted.
    pub ios: Option<u64>,
    /// Bytes likewise.
    pub bytes: Option<u64>,
    /// The signal that ends a sliced command at the end of a round.
    pub end_signal: EndSignal,
}

impl Rules {
    /// docs/method/verdicts.md: a change within ±3 % counts as no difference.
    pub const MARGIN: f64 = 0.03;
    /// Seconds.
    pub const BUDGET: f64 = 60.0;
    /// Range of the budget and of the hang timeout, seconds. A shorter budget has too few rounds; a longer one is
    /// probably a typing error.
    pub const TIMES: RangeInclusive<f64> = 1.0..=86_400.0;
    /// Range of the slice length, seconds. In shorter slices, reading the clocks takes most of the time; longer ones
    /// leave too few rounds.
    pub const SLICES: RangeInclusive<f64> = 0.001..=60.0;
    /// Range of margin and precision. Less than 0.01 % would never be reached.
    pub const FRACTIONS: RangeInclusive<f64> = 0.0001..=1.0;

    /// Seconds after which a command, worker or toggle counts as hung. The default is twice the budget plus one minute:
    /// a slow disk may need that minute to sync what was written in a second.
    pub fn hang_timeout(&self) -> f64 {
        self.hang_timeout_seconds.unwrap_or(60.0 + 2.0 * self.budget_seconds)
    }

    /// Whether the user states what a whole execution of a command does.
    pub fn states_work(&self) -> bool {
        self.ios.is_some() || self.bytes.is_some()
    }

    /// Parses a budget or hang timeout: `90s`, `2min`, `1h 30m`, `2m` as in a job, or a bare number of seconds. Returns
    /// seconds.
    ///
    /// # Errors
    /// If it is not a time, or outside [`Rules::TIMES`].
    pub fn parse_time(text: &str) -> Result<f64, Wrong> {
        let seconds = seconds(text).ok_or_else(|| Wrong::new("expected a time, for example 60s, 2min, 1h 30m"))?;
        if Self::TIMES.contains(&seconds) { Ok(seconds) } else { Err(Wrong::new("expected 1s to 1d")) }
    }

    /// Parses a slice length like a budget: `20ms`, `1s`. Returns seconds.
    ///
    /// # Errors
    /// If it is not a time, or outside [`Rules::SLICES`].
    pub fn parse_slice(text: &str) -> Result<f64, Wrong> {
        let slice = seconds(text).filter(|seconds| Self::SLICES.contains(seconds));
        slice.ok_or_else(|| Wrong::new("expected a time from 1ms to 60s, for example 20ms"))
    }

    /// Parses a margin or precision: `3%`, `3 %` or `3` gives 0.03.
    ///
    /// # Errors
    /// If it is not a number, or outside [`Rules::FRACTIONS`].
    pub fn parse_percent(text: &str) -> Result<f64, Wrong> {
        let text = text.trim();
        let percent = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
        let fraction = percent.ok().map(|percent| percent / 100.0).filter(|it| Self::FRACTIONS.contains(it));
        fraction.ok_or_else(|| Wrong::new("expected 0.01% to 100%"))
    }
}

/// Parses seconds as in a job (`2m`) or in words (`1h 30m`).
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

/// The rules that the user gave, as in [`Rules`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DraftRules {
    pub targets: Option<Vec<Metric>>,
    pub margin: Option<f64>,
    pub precision: Option<f64>,
    pub budget_seconds: Option<f64>,
    pub hang_timeout_seconds: Option<f64>,
    pub slice_seconds: Option<f64>,
    pub slices: Option<Slices>,
    /// A counter's name, or `auto`.
    pub count: Option<String>,
    pub ios: Option<u64>,
    pub bytes: Option<u64>,
    pub end_signal: Option<EndSignal>,
}

impl DraftRules {
    /// Whether one of them is about commands only.
    pub(super) fn are_of_commands(&self) -> bool {
        let Self { slices, count, ios, bytes, end_signal, .. } = self;
        slices.is_some() || count.is_some() || ios.is_some() || bytes.is_some() || end_signal.is_some()
    }

    /// These rules, with docs/method/verdicts.md's defaults for missing ones.
    pub fn resolve(self) -> Rules {
        let margin = self.margin.unwrap_or(Rules::MARGIN);
        Rules {
            targets: self.targets.unwrap_or_else(|| vec![Metric::CyclesPerIo, Metric::Iops]),
            margin,
            precision: self.precision.unwrap_or_else(|| wanted_half_width(margin)),
            budget_seconds: self.budget_seconds.unwrap_or(Rules::BUDGET),
            hang_timeout_seconds: self.hang_timeout_seconds,
            slice_seconds: self.slice_seconds,
            slices: self.slices.unwrap_or_default(),
            count: self.count.filter(|name| name != work_counter::AUTO),
            ios: self.ios,
            bytes: self.bytes,
            end_signal: self.end_signal.unwrap_or_default(),
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
            assert!(Rules::parse_time(text).unwrap_err().to_string().contains("for example 60s"), "{text}");
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
    fn the_default_precision_follows_from_the_margin() {
        let flags = DraftRules { margin: Some(0.06), ..DraftRules::default() };
        assert_eq!(flags.resolve().precision, 0.02);
        assert_eq!(Rules::default().precision, wanted_half_width(Rules::MARGIN));
        let flags = DraftRules { count: Some(work_counter::AUTO.to_owned()), ..DraftRules::default() };
        assert_eq!(flags.resolve().count, None, "auto is no counter");
    }
}
