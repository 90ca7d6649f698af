//! How many bytes of requests are worth waiting for, learnt from what a client sends at one go.
//!
//! A client that sends its requests one by one (libnbd does) wakes the server for each. Its next ones are on the way while it has
//! several in flight, and whether it has shows: two requests are there at one time. Who never has two in flight is never held.
//!
//! Such a client is slower than the server, so that what is in flight is mostly replies that it has not come to yet. While half of that is
//! waited for it is at work with the other half. More would leave it with nothing to do, and so would anything when there is little in flight: then
//! both ends sleep in turn, and a hold costs more than it saves (experiments/path-hold-server.toml). How much is in flight shows when a wait is in
//! vain, so now and then more is waited for.
//!
//! How long it takes until enough is there is learnt as well, and not much more is waited.

use crate::wire::REQUEST_BYTES;
use std::time::{Duration, Instant};

/// Fewer are not worth a wait.
const LEAST: usize = 2 * REQUEST_BYTES;
/// More than this is not waited for: a wake-up for each costs little then.
const MOST: usize = 128 << 10;
/// So many holds that were not in vain, and half as much again is waited for,
const STREAK: u32 = 8;
/// unless it is known how much is in flight: that is taken for true for so many holds,
const SETTLED: u32 = 256;
/// and where it is less than so many requests nothing is held,
const FEWEST: u64 = 12;
/// for so many times that something was received, then for twice as many, and so on.
const FIRST_REST: u32 = 1024;
const LONGEST_REST: u32 = 64 << 10;
/// While it is not known how long a hold takes, it may take this part of the longest one.
const FIRST: u32 = 4;
/// A hold may take so many times as long as it usually does.
const PATIENCE: u32 = 2;
/// A shorter limit than this is not worth its timer.
const SHORTEST: Duration = Duration::from_micros(20);
/// What a hold takes counts as this part of what it usually takes.
const WEIGHT: u32 = 8;

/// What is waited for on one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gathering {
    /// Bytes; less than [`LEAST`]: it is not worth it.
    goal: usize,
    /// So many holds that are not in vain, until more is waited for.
    settled: u32,
    /// So many times that something is received, until anything is waited for.
    rest: u32,
    last_rest: u32,
    held: Option<Instant>,
    /// What it takes until enough is there.
    usual: Option<Duration>,
}

/// A wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    /// For so much.
    pub(super) bytes: usize,
    /// For so long at most.
    pub(super) limit: Duration,
}

impl Gathering {
    /// What is worth waiting for from `now` on, but not longer than `most`. It is taken for granted that it is waited for then.
    pub(super) fn hold(&mut self, most: Duration, now: Instant) -> Option<Hold> {
        self.held = (self.goal >= LEAST && self.rest == 0).then_some(now);
        let limit = self.usual.map_or(most / FIRST, |usual| (usual * PATIENCE).max(SHORTEST));
        self.held.map(|_| Hold { bytes: self.goal, limit: limit.min(most) })
    }

    /// So many bytes came together until `now`, with so many requests in them.
    pub(super) fn received(&mut self, bytes: usize, requests: u64, now: Instant) {
        self.rest = self.rest.saturating_sub(1);
        match self.held.take() {
            Some(since) if bytes >= self.goal => {
                let took = now.saturating_duration_since(since);
                self.usual = Some(self.usual.map_or(took, |usual| usual - usual / WEIGHT + took / WEIGHT));
                self.settled = self.settled.saturating_sub(1);
                if self.settled == 0 {
                    self.settled = STREAK;
                    self.goal = (self.goal + self.goal / 2).min(MOST);
                }
            }
            // It took too long. What came is most likely all that is in flight.
            Some(_) if requests < FEWEST => {
                self.last_rest = (self.last_rest * 2).clamp(FIRST_REST, LONGEST_REST);
                (self.goal, self.settled, self.rest) = (0, STREAK, self.last_rest);
            }
            Some(_) => (self.goal, self.settled, self.last_rest) = (bytes / 2, SETTLED, 0),
            None if requests >= 2 && self.rest == 0 => self.goal = self.goal.max(bytes.min(MOST)),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_micros(200);

    /// A client that sends a request in each `pace` until so many are in flight.
    struct Client {
        in_flight: usize,
        pace: Duration,
    }

    impl Client {
        /// It is served for so many turns: how many requests are waited for in each, how many waits were in vain, and the last limit.
        fn play(&self, gathering: &mut Gathering, turns: usize) -> (Vec<usize>, usize, Duration) {
            let (mut waited, mut in_vain, mut limit) = (Vec::new(), 0, Duration::ZERO);
            let mut now = Instant::now();
            for turn in 0..turns {
                let hold = gathering.hold(MOST, now);
                waited.push(hold.map_or(0, |hold| hold.bytes) / REQUEST_BYTES);
                let there = match hold {
                    Some(hold) => {
                        let asked = hold.bytes.div_ceil(REQUEST_BYTES);
                        let until = self.pace * asked as u32;
                        let enough = until <= hold.limit && asked <= self.in_flight;
                        limit = hold.limit;
                        in_vain += usize::from(!enough);
                        now += if enough { until } else { hold.limit };
                        let paced = (hold.limit.as_nanos() / self.pace.as_nanos()) as usize;
                        if enough { asked } else { paced.clamp(1, self.in_flight) }
                    }
                    // Now and then two meet by chance.
                    None => 1 + usize::from(turn % 10 == 0 && self.in_flight > 1),
                };
                gathering.received(there * REQUEST_BYTES, there as u64, now);
            }
            (waited, in_vain, limit)
        }
    }

    const FAST: Duration = Duration::from_nanos(100);

    #[test]
    fn one_in_flight_is_never_held() {
        let (waited, in_vain, _) = Client { in_flight: 1, pace: FAST }.play(&mut Gathering::default(), 10_000);
        assert_eq!((waited, in_vain), (vec![0; 10_000], 0));
    }

    #[test]
    fn half_of_what_is_in_flight_is_waited_for_and_hardly_ever_in_vain() {
        for in_flight in [16, 32, 200] {
            let (waited, in_vain, _) = Client { in_flight, pace: FAST }.play(&mut Gathering::default(), 10_000);
            let late = &waited[2_000..];
            let half = late.iter().filter(|goal| **goal * 2 <= in_flight && **goal * 2 + 2 >= in_flight).count();
            assert!(half * 10 >= late.len() * 8, "{in_flight}: {half} of {}", late.len());
            assert!(late.iter().all(|goal| *goal <= in_flight * 3 / 2 + 1), "{in_flight}");
            assert!(in_vain * 100 <= waited.len(), "{in_flight}: {in_vain}");
        }
    }

    #[test]
    fn who_has_few_in_flight_is_hardly_ever_held() {
        for in_flight in [2, 4, 11] {
            let (waited, in_vain, _) = Client { in_flight, pace: FAST }.play(&mut Gathering::default(), 10_000);
            let held = waited.iter().filter(|goal| **goal > 0).count();
            assert!(held * 50 <= waited.len() && (1..=5).contains(&in_vain), "{in_flight}: {held}, {in_vain} in vain");
        }
    }

    #[test]
    fn a_slow_client_is_held_for_as_many_as_it_sends_in_the_longest_hold_or_half() {
        let slow = Client { in_flight: 100, pace: Duration::from_micros(10) };
        let (waited, in_vain, _) = slow.play(&mut Gathering::default(), 10_000);
        let late = &waited[2_000..];
        let mean = late.iter().sum::<usize>() as f64 / late.len() as f64;
        assert!((9.0..=20.0).contains(&mean), "{mean}");
        assert!(in_vain * 100 <= waited.len(), "{in_vain}");
    }

    #[test]
    fn who_comes_to_have_more_in_flight_is_held_again() {
        let mut gathering = Gathering::default();
        Client { in_flight: 4, pace: FAST }.play(&mut gathering, 1_000_000);
        let (waited, _, _) = Client { in_flight: 32, pace: FAST }.play(&mut gathering, 100_000);
        let held = waited[LONGEST_REST as usize + 100..].iter().filter(|goal| **goal >= 15).count();
        assert!(held > 30_000, "{held}");
    }

    #[test]
    fn who_becomes_faster_is_not_held_for_as_long_as_before() {
        let mut gathering = Gathering::default();
        let (_, _, slow) = Client { in_flight: 100, pace: Duration::from_micros(10) }.play(&mut gathering, 10_000);
        let (_, _, fast) = Client { in_flight: 100, pace: FAST }.play(&mut gathering, 100);
        assert!(slow > MOST / 2 && fast == SHORTEST, "{slow:?}, then {fast:?}");
    }
}
