//! Busy work that is added to each I/O (`inject_ns`): requested and measured duration.

use serde::{Deserialize, Serialize};

/// Busy work per I/O, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Injected {
    /// Requested duration.
    pub asked: f64,
    /// Mean measured duration, calibrated by the burning thread before the measurement.
    pub burnt: f64,
}

impl Injected {
    /// Ratio of measured to requested duration above which the requested duration is too short to burn: calibration is
    /// more precise than this.
    const LEAST: f64 = 1.05;

    /// The mean over several threads or rounds.
    pub fn mean(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        let (mut count, mut asked, mut burnt) = (0.0, 0.0, 0.0);
        for one in all {
            count += 1.0;
            asked += one.asked;
            burnt += one.burnt;
        }
        (count > 0.0).then(|| Self { asked: asked / count, burnt: burnt / count })
    }

    /// In a sentence: "burns 60.3 ns per I/O".
    pub fn in_words(self) -> String {
        let least = if self.burnt > self.asked * Self::LEAST { ", the shortest possible burn" } else { "" };
        let decimals = if self.burnt < 1000.0 { 1 } else { 0 };
        format!("burns {:.decimals$} ns per I/O{least}", self.burnt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minimal_burn_is_reported() {
        assert_eq!(Injected { asked: 60.0, burnt: 60.31 }.in_words(), "burns 60.3 ns per I/O");
        assert_eq!(
            Injected { asked: 5.0, burnt: 24.4 }.in_words(),
            "burns 24.4 ns per I/O, the shortest possible burn"
        );
        assert_eq!(Injected { asked: 3000.0, burnt: 3001.4 }.in_words(), "burns 3001 ns per I/O");
    }

    #[test]
    fn threads_are_averaged() {
        let all = [Injected { asked: 60.0, burnt: 61.0 }, Injected { asked: 60.0, burnt: 60.0 }];
        assert_eq!(Injected::mean(all), Some(Injected { asked: 60.0, burnt: 60.5 }));
        assert_eq!(Injected::mean([]), None);
    }
}
