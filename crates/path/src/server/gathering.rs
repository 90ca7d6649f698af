//! How many bytes of requests are worth waiting for, learnt from what a client sends at one go.
//!
//! A client that sends its requests one by one (libnbd does) wakes the server for each. Its next ones are on the way while it has
//! several in flight, and whether it has shows: two requests are there at one time. Who never has two in flight is never held.

use crate::wire::REQUEST_BYTES;

/// Fewer are not worth a wait.
const LEAST: usize = 2 * REQUEST_BYTES;
/// More than this is not waited for: a wake-up for each costs little then.
const MOST: usize = 128 << 10;
/// So many holds that were not in vain, and a little more is waited for.
const STREAK: u32 = 32;

/// What is waited for on one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gathering {
    /// Bytes; less than [`LEAST`]: it is not worth it.
    goal: usize,
    streak: u32,
    held: bool,
}

impl Gathering {
    /// What is worth waiting for. It is taken for granted that it is waited for then.
    pub(super) fn hold(&mut self) -> Option<usize> {
        self.held = self.goal >= LEAST;
        self.held.then_some(self.goal)
    }

    /// So many bytes came together, with so many requests in them.
    pub(super) fn received(&mut self, bytes: usize, requests: u64) {
        let held = std::mem::take(&mut self.held);
        if held && bytes >= self.goal {
            self.streak += 1;
            if self.streak >= STREAK {
                self.streak = 0;
                self.goal = (self.goal + self.goal / 4).min(MOST);
            }
        } else if held {
            // It took too long. What came is most likely all that is in flight; half of it keeps both ends at work.
            (self.goal, self.streak) = (bytes / 2, 0);
        } else if requests >= 2 {
            self.goal = self.goal.max(bytes.min(MOST));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client with so many requests in flight, which it sends one by one; how many bytes are waited for over time.
    fn play(in_flight: usize, turns: usize) -> (Vec<usize>, usize) {
        let (mut gathering, mut waited, mut in_vain) = (Gathering::default(), Vec::new(), 0);
        for turn in 0..turns {
            let goal = gathering.hold();
            waited.push(goal.unwrap_or(0) / REQUEST_BYTES);
            let there = match goal {
                Some(goal) => goal.div_ceil(REQUEST_BYTES).min(in_flight),
                // Now and then two meet by chance.
                None => 1 + usize::from(turn % 10 == 0 && in_flight > 1),
            };
            in_vain += usize::from(goal.is_some_and(|goal| there * REQUEST_BYTES < goal));
            gathering.received(there * REQUEST_BYTES, there as u64);
        }
        (waited, in_vain)
    }

    #[test]
    fn one_in_flight_is_never_held() {
        assert_eq!(play(1, 10_000), (vec![0; 10_000], 0));
    }

    #[test]
    fn half_or_more_of_what_is_in_flight_is_waited_for_and_hardly_ever_in_vain() {
        for in_flight in [2, 4, 32, 200] {
            let (waited, in_vain) = play(in_flight, 10_000);
            let late = &waited[2_000..];
            let enough = late.iter().filter(|goal| **goal * 2 >= in_flight).count();
            assert!(enough * 10 >= late.len() * 7, "{in_flight}: {enough} of {}", late.len());
            assert!(late.iter().all(|goal| *goal <= in_flight * 5 / 4 + 1), "{in_flight}");
            assert!(in_vain * 32 <= waited.len(), "{in_flight}: {in_vain}");
        }
    }
}
