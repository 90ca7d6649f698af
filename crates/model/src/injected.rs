//! Busy work that is added to each I/O (`inject_ns`): what was asked for, and what it was measured to take.

use serde::{Deserialize, Serialize};

/// Of each I/O, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Injected {
    /// What was asked for.
    pub asked: f64,
    /// What is burnt on average, as the thread that burns it measured before it was measured itself.
    pub burnt: f64,
}

impl Injected {
    /// Above this, less cannot be burnt: calibration is better than that.
    const LEAST: f64 = 1.05;

    /// Of several threads or rounds alike.
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
        let least = if self.burnt > self.asked * Self::LEAST { ", no burn is shorter" } else { "" };
        let decimals = if self.burnt < 1000.0 { 1 } else { 0 };
        format!("burns {:.decimals$} ns per I/O{least}", self.burnt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burn_that_cannot_be_shorter_says_so() {
        assert_eq!(Injected { asked: 60.0, burnt: 60.31 }.in_words(), "burns 60.3 ns per I/O");
        assert_eq!(Injected { asked: 5.0, burnt: 24.4 }.in_words(), "burns 24.4 ns per I/O, no burn is shorter");
        assert_eq!(Injected { asked: 3000.0, burnt: 3001.4 }.in_words(), "burns 3001 ns per I/O");
    }

    #[test]
    fn threads_are_taken_together() {
        let all = [Injected { asked: 60.0, burnt: 61.0 }, Injected { asked: 60.0, burnt: 60.0 }];
        assert_eq!(Injected::mean(all), Some(Injected { asked: 60.0, burnt: 60.5 }));
        assert_eq!(Injected::mean([]), None);
    }
}
