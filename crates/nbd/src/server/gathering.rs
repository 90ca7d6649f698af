//! How many bytes of requests are worth waiting for, and for how long, learnt from what a client sends.
//!
//! A client that sends its requests one by one (libnbd does) wakes the server for each. Its next ones are on the way while it has
//! several in flight, and whether it has shows: two requests are there at one time. Who never has two in flight is never held.
//!
//! Such a client is slower than the server, so that what is in flight is mostly replies that it has not come to yet. While half of that is
//! waited for it is at work with the other half. More would leave it with nothing to do, and so would anything when there is little in flight: then
//! both ends sleep in turn, and a hold costs more than it saves (experiments/path-hold-server.toml). How much is in flight shows when a wait is in
//! vain, so now and then more is waited for.
//!
//! A client that hands many requests over at one time (iotoll's engine does) has done the gathering itself: what a hold takes, timers and calls, is lost
//! there, an eighth of all cycles at depth 32. It shows in what comes without a hold, so now and then nothing is held.
//!
//! How long it takes until enough is there is learnt as well, and not much more is waited.

use crate::wire::REQUEST_BYTES;
use std::time::{Duration, Instant};

/// Fewer bytes are not worth a wait.
const LEAST: usize = 2 * REQUEST_BYTES;
/// More than this is never waited for: a thread receives 256 KiB at one go.
pub(super) const MOST: usize = 192 << 10;
/// After so many holds that were not in vain half as much again is waited for, while it is not known how much is in flight.
const STREAK: u32 = 8;
/// What is known to be in flight is taken for true for so many holds that are not in vain.
const SETTLED: u32 = 256;
/// After so many holds it is seen what comes without one.
const LOOK: u32 = 64;
/// So many requests at one time, again and again, were sent at one time.
const MANY: u64 = 4;
/// Nothing is held of a client that has fewer requests in flight. Measured were 8, which was too few, and 16, which was enough.
const FEWEST: u64 = 12;
/// For so many times that something is received it is not looked again whether a client still has too few; each time twice as many.
const FIRST_REST: u32 = 1024;
/// But not more than this.
const LONGEST_REST: u32 = 64 << 10;
/// While it is not known how long a hold takes, it may take this part of the longest one.
const FIRST: u32 = 4;
/// A hold may take so many times as long as it usually does.
const PATIENCE: u32 = 2;
/// A shorter limit than this is not worth its timer.
const SHORTEST: Duration = Duration::from_micros(20);
/// What comes so long after the end of a hold was not held for. A thread may be as late as this when it has to be woken first.
const LATE: Duration = Duration::from_millis(1);
/// What is there beside what was asked for changes what is asked for by this part.
const SLOWLY: usize = 4;
/// What a hold takes counts as this part of what it usually takes.
const WEIGHT: u32 = 8;

/// What is waited for on one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gathering {
    /// Bytes; less than [`LEAST`]: it is not worth it.
    goal: usize,
    /// In flight; 0: not known.
    all: usize,
    /// Whether it is looked for more.
    probing: bool,
    /// So many holds that are not in vain, until more is waited for.
    settled: u32,
    /// Whether the last hold in vain found few requests, and none since then has found enough.
    few: bool,
    /// So many times that something is received, until anything is waited for.
    rest: u32,
    last_rest: u32,
    /// So many holds since it was seen what comes without one.
    holds: u32,
    /// So many times in a row that was enough.
    enough: u32,
    /// Since when it is held, and for how long at most.
    held: Option<(Instant, Duration)>,
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
        let limit = self.usual.map_or(most / FIRST, |usual| usual * PATIENCE).max(SHORTEST).min(most);
        let may = self.goal >= LEAST && self.rest == 0 && self.holds < LOOK;
        self.held = may.then_some((now, limit));
        self.holds += u32::from(may);
        self.held.map(|_| Hold { bytes: self.goal, limit })
    }

    /// It is not waited for after all.
    pub(super) fn forget(&mut self) {
        self.held = None;
    }

    /// So many bytes came together until `now`, with so many requests in them.
    pub(super) fn received(&mut self, bytes: usize, requests: u64, now: Instant) {
        self.rest = self.rest.saturating_sub(1);
        let Some((since, limit)) = self.held.take() else {
            if self.rest > 0 {
                return;
            }
            if self.holds >= LOOK {
                self.look(bytes, requests);
            }
            if requests >= 2 {
                self.goal = self.goal.max(bytes.min(MOST / 2));
            }
            return;
        };
        let took = now.saturating_duration_since(since);
        if took > limit + LATE {
            // Nothing had come by the end of it, or this thread was elsewhere: that says nothing of the client.
        } else if bytes >= self.goal {
            let took = took.min(limit);
            self.usual = Some(self.usual.map_or(took, |usual| usual - usual / WEIGHT + took / WEIGHT));
            self.few &= requests < FEWEST;
            self.settled = self.settled.saturating_sub(1);
            if self.settled == 0 {
                self.ask_for_more();
            } else if self.all > 0 && !self.probing {
                // More comes until this thread is awake: half should be there then.
                let half = self.all / 2;
                self.goal = (self.goal + half / SLOWLY).saturating_sub(bytes / SLOWLY).clamp(LEAST, half.max(LEAST));
            }
        } else {
            // What came is most likely all that is in flight. If the client was only slower, the next limit is longer.
            // Who was held up once does not have so little in flight at once.
            self.all = bytes.max(self.all - self.all / 4);
            (self.goal, self.probing, self.settled, self.usual) = (self.all / 2, false, SETTLED, Some(limit));
            if requests >= FEWEST {
                (self.few, self.last_rest) = (false, 0);
                return;
            }
            self.settled = STREAK;
            // Once may be chance.
            if std::mem::replace(&mut self.few, true) {
                (self.few, self.all, self.goal) = (false, 0, 0);
                self.take_a_rest();
            }
        }
    }

    /// So much came without a hold. Of who sends that much at one time, again and again, there is nothing to be gathered.
    fn look(&mut self, bytes: usize, requests: u64) {
        if bytes * 2 < self.goal || requests < MANY {
            (self.holds, self.enough) = (0, 0);
            return;
        }
        self.enough += 1;
        if self.enough >= STREAK {
            self.enough = 0;
            self.take_a_rest();
        }
    }

    /// Nothing is held for a while, each time for longer.
    fn take_a_rest(&mut self) {
        self.last_rest = (self.last_rest * 2).clamp(FIRST_REST, LONGEST_REST);
        self.rest = self.last_rest;
    }

    /// All that was waited for came often enough.
    fn ask_for_more(&mut self) {
        let more = self.goal + self.goal / 2;
        (self.goal, self.probing, self.settled) =
            if more <= MOST { (more, true, STREAK) } else { (self.goal / 2, false, SETTLED) };
        if !self.probing {
            self.all = self.goal * 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_micros(200);
    const FAST: Duration = Duration::from_nanos(100);

    /// A client that sends a request in each `pace` until so many are in flight.
    #[derive(Clone, Copy)]
    struct Client {
        in_flight: usize,
        pace: Duration,
        request: usize,
        /// So many requests come while the server wakes up.
        late: usize,
    }

    /// How a client was served: how many requests were waited for in each turn, how many waits were in vain, and the last limit.
    struct Served {
        waited: Vec<usize>,
        in_vain: usize,
        limit: Duration,
    }

    impl Served {
        fn held(&self) -> usize {
            self.waited.iter().filter(|goal| **goal > 0).count()
        }
    }

    impl Client {
        fn new(in_flight: usize, pace: Duration) -> Self {
            Self { in_flight, pace, request: REQUEST_BYTES, late: 0 }
        }

        fn play(self, gathering: &mut Gathering, turns: usize) -> Served {
            let mut served = Served { waited: Vec::new(), in_vain: 0, limit: Duration::ZERO };
            let mut now = Instant::now();
            for turn in 0..turns {
                let hold = gathering.hold(LONGEST, now);
                served.waited.push(hold.map_or(0, |hold| hold.bytes) / self.request);
                let there = match hold {
                    Some(hold) => {
                        let asked = hold.bytes.div_ceil(self.request);
                        let until = self.pace * asked as u32;
                        let enough = until <= hold.limit && asked <= self.in_flight;
                        served.limit = hold.limit;
                        served.in_vain += usize::from(!enough);
                        now += if enough { until } else { hold.limit };
                        let paced = (hold.limit.as_nanos() / self.pace.as_nanos()) as usize;
                        if enough { (asked + self.late).min(self.in_flight) } else { paced.clamp(1, self.in_flight) }
                    }
                    // Now and then two meet by chance.
                    None => 1 + usize::from(turn % 10 == 0 && self.in_flight > 1),
                };
                gathering.received(there * self.request, there as u64, now);
            }
            served
        }
    }

    #[test]
    fn one_in_flight_is_never_held() {
        let served = Client::new(1, FAST).play(&mut Gathering::default(), 10_000);
        assert_eq!((served.held(), served.in_vain), (0, 0));
    }

    #[test]
    fn half_of_what_is_in_flight_is_waited_for_and_hardly_ever_in_vain() {
        for (in_flight, request) in [(16, 28), (32, 28), (200, 28), (16, 540), (32, 4124), (40, 4124)] {
            let client = Client { request, ..Client::new(in_flight, FAST) };
            let served = client.play(&mut Gathering::default(), 10_000);
            let late = &served.waited[2_000..];
            let half = late.iter().filter(|goal| **goal * 2 <= in_flight && **goal * 2 + 2 >= in_flight).count();
            assert!(half * 10 >= late.len() * 8, "{in_flight} of {request}: {half} of {}", late.len());
            assert!(late.iter().all(|goal| *goal <= in_flight * 3 / 2 + 1), "{in_flight} of {request}");
            assert!(served.in_vain * 100 <= late.len(), "{in_flight} of {request}: {}", served.in_vain);
        }
    }

    #[test]
    fn half_is_there_when_the_server_has_woken_up() {
        let client = Client { late: 10, ..Client::new(32, FAST) };
        let late = client.play(&mut Gathering::default(), 10_000).waited.split_off(2_000);
        let right = late.iter().filter(|goal| (5..=7).contains(*goal)).count();
        assert!(right * 10 >= late.len() * 8, "{right} of {}", late.len());
    }

    /// A client that sends all that it has in flight, or half of it, at one time.
    #[test]
    fn who_sends_many_at_one_time_is_hardly_ever_held() {
        for (most, least) in [(32, 32), (32, 16), (16, 9)] {
            let (mut gathering, mut now, mut held) = (Gathering::default(), Instant::now(), 0);
            for turn in 0..100_000 {
                held += usize::from(gathering.hold(LONGEST, now).is_some());
                now += FAST;
                let there = if turn % 2 == 0 { most } else { least };
                gathering.received(there * REQUEST_BYTES, there as u64, now);
            }
            assert!(held <= 2 * LOOK as usize, "{most} and {least}: {held}");
        }
    }

    /// There is no memory to see all that is in flight.
    #[test]
    fn of_much_data_no_more_is_waited_for_than_there_is_room_for() {
        let client = Client { request: 65_564, ..Client::new(64, FAST) };
        let mut gathering = Gathering::default();
        client.play(&mut gathering, 10_000);
        assert!((LEAST..=MOST).contains(&gathering.goal), "{gathering:?}");
    }

    #[test]
    fn who_has_few_in_flight_is_hardly_ever_held() {
        for in_flight in [2, 4, 11] {
            let served = Client::new(in_flight, FAST).play(&mut Gathering::default(), 100_000);
            assert!(served.held() * 100 <= served.waited.len(), "{in_flight}: {}", served.held());
            assert!((1..=20).contains(&served.in_vain), "{in_flight}: {} in vain", served.in_vain);
        }
    }

    #[test]
    fn a_slow_client_is_held_for_as_many_as_it_sends_in_the_longest_hold_or_half() {
        let served = Client::new(100, Duration::from_micros(10)).play(&mut Gathering::default(), 10_000);
        let late = &served.waited[2_000..];
        let mean = late.iter().sum::<usize>() as f64 / late.len() as f64;
        assert!((6.0..=20.0).contains(&mean), "{mean}");
        assert!(served.in_vain * 50 <= late.len(), "{}", served.in_vain);
    }

    #[test]
    fn who_comes_to_have_more_in_flight_is_held_again() {
        let mut gathering = Gathering::default();
        Client::new(4, FAST).play(&mut gathering, 1_000_000);
        let served = Client::new(32, FAST).play(&mut gathering, 100_000);
        let held = served.waited[LONGEST_REST as usize + 100..].iter().filter(|goal| **goal >= 15).count();
        assert!(held > 30_000, "{held}");
    }

    #[test]
    fn who_becomes_faster_or_slower_is_held_for_as_long_as_that_takes() {
        let (fast, slow) = (Client::new(100, FAST), Client::new(100, Duration::from_micros(10)));
        let mut gathering = Gathering::default();
        slow.play(&mut gathering, 10_000);
        assert!(gathering.usual > Some(LONGEST / 4), "{gathering:?}");
        assert_eq!(fast.play(&mut gathering, 100).limit, SHORTEST);
        let served = slow.play(&mut gathering, 10_000);
        assert!(served.held() > 8_000 && gathering.usual > Some(LONGEST / 4), "{} {gathering:?}", served.held());
    }

    /// A client that thinks for a second between bursts: what comes after a hold in which nothing came says nothing.
    #[test]
    fn pauses_teach_nothing() {
        let client = Client::new(32, Duration::from_micros(1));
        let mut gathering = Gathering::default();
        client.play(&mut gathering, 10_000);
        let known = gathering;
        for requests in [1, 32] {
            let now = Instant::now();
            assert!(gathering.hold(LONGEST, now).is_some());
            gathering.received(requests * REQUEST_BYTES, requests as u64, now + Duration::from_secs(1));
            assert_eq!((gathering.goal, gathering.usual, gathering.rest), (known.goal, known.usual, 0));
        }
    }

    /// The thread was stolen from once, and found less than there is.
    #[test]
    fn one_wait_in_vain_is_no_rest() {
        let client = Client::new(32, FAST);
        let mut gathering = Gathering::default();
        client.play(&mut gathering, 10_000);
        let now = Instant::now();
        let limit = gathering.hold(LONGEST, now).unwrap().limit;
        gathering.received(3 * REQUEST_BYTES, 3, now + limit);
        assert!(client.play(&mut gathering, 1_000).held() > 950);
    }
}
