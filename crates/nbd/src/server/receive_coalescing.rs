//! Receive coalescing on the server: how many bytes of requests to wait for, and for how long, learned from what a
//! client sends. No I/O: the connection reports what arrived and when.
//!
//! A client that sends its requests one by one (as libnbd does) wakes the server for each. While it has several in
//! flight, the next ones are about to arrive. Two requests that arrive together show that it has several in flight; a
//! client that never does this is never waited for.
//!
//! The target is half of what is in flight. Such a client is slower than the server, so most of what is in flight is
//! replies that it has not processed yet: while the server waits for half, the client works on the other half. With
//! little in flight, both ends would sleep in turn (experiments/path-coalesce-server.toml). A wait that times out shows
//! how much is in flight, so the target grows from time to time.
//!
//! A client that sends many requests at once (as iotoll's engine does) has already coalesced them, and timers and
//! system calls would be wasted: an eighth of all cycles at depth 32. What arrives without a wait shows this, so some
//! rounds do not wait.

use crate::wire::REQUEST_BYTES;
use std::time::{Duration, Instant};

/// Fewer bytes are not worth a wait.
const MIN_BYTES: usize = 2 * REQUEST_BYTES;
/// Largest target: a thread receives up to 256 KiB per call.
pub(super) const MAX_BYTES: usize = 192 << 10;
/// Smallest number of requests in flight to wait for: 8 were measured to be too few, and 16 enough.
const MIN_IN_FLIGHT: u64 = 12;
/// A shorter timeout is not worth its timer.
const MIN_TIMEOUT: Duration = Duration::from_micros(20);
/// A growing target (not known to be half of what is in flight) grows by half after this many successful waits.
const GROW_AFTER: u32 = 8;
/// A target known to be half of what is in flight is kept for this many waits.
const KEEP_FOR: u32 = 256;
/// After this many waits, the server checks what arrives without one.
const LOOK_AFTER: u32 = 64;
/// Receives without a wait after waits proved useless; the pause doubles each time.
const FIRST_PAUSE: u32 = 1024;
const LONGEST_PAUSE: u32 = 64 << 10;
/// Data that arrive this long after the timeout are ignored: this thread or the client had no CPU.
const LATE: Duration = Duration::from_millis(1);

/// What the server has learned about one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Target {
    /// Bytes to wait for; below [`MIN_BYTES`]: unknown.
    bytes: usize,
    /// Half of what is in flight; 0: unknown.
    half: usize,
    /// Whether `bytes` grows to find out how much is in flight.
    growing: bool,
    /// Successful waits left until `bytes` grows.
    until_growth: u32,
    /// Whether the last wait that timed out found few requests, and none since has found enough.
    few: bool,
    /// Receives left until waiting resumes.
    pause: u32,
    last_pause: u32,
    /// Waits since the last check of what arrives without one; above [`LOOK_AFTER`], how many times in a row that was
    /// enough.
    waits: u32,
    /// Usual time until enough has arrived.
    usual: Option<Duration>,
    /// Start and timeout of the current wait.
    waiting: Option<(Instant, Duration)>,
}

/// A wait to perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// Bytes to wait for.
    pub(super) bytes: usize,
    /// Longest time to wait.
    pub(super) timeout: Duration,
}

impl Target {
    /// The wait to perform from `now`, at most `most` long; `None`: do not wait. The caller is assumed to perform it.
    pub(super) fn wait(&mut self, most: Duration, now: Instant) -> Option<Wait> {
        // Twice the usual time; until that is known, a quarter of the maximum.
        let timeout = self.usual.map_or(most / 4, |usual| usual * 2).max(MIN_TIMEOUT).min(most);
        let worth = self.bytes >= MIN_BYTES && self.pause == 0 && self.waits < LOOK_AFTER;
        self.waiting = worth.then_some((now, timeout));
        self.waits += u32::from(worth);
        worth.then_some(Wait { bytes: self.bytes, timeout })
    }

    /// Cancels the wait: the caller did not perform it, or nothing arrived.
    pub(super) fn cancel(&mut self) {
        self.waiting = None;
    }

    /// Records that `bytes` with `requests` requests in them arrived together at `now`.
    pub(super) fn received(&mut self, bytes: usize, requests: u64, now: Instant) {
        self.pause = self.pause.saturating_sub(1);
        match self.waiting.take() {
            None if self.pause > 0 => {}
            None => self.came_without_a_wait(bytes, requests),
            Some((since, timeout)) => match now.saturating_duration_since(since) {
                took if took > timeout + LATE => {}
                took if bytes >= self.bytes => self.was_worth_it(bytes, requests, took.min(timeout)),
                _ => self.timed_out(bytes, requests, timeout),
            },
        }
    }

    fn came_without_a_wait(&mut self, bytes: usize, requests: u64) {
        if self.bytes < MIN_BYTES && requests >= 2 {
            (self.bytes, self.growing, self.until_growth) = (bytes.min(MAX_BYTES / 2), true, 1);
        }
        if self.waits < LOOK_AFTER {
            return;
        }
        // A client that repeatedly sends this much at once coalesces by itself.
        let enough = bytes * 2 >= self.bytes && requests >= 4;
        self.waits = if enough { self.waits + 1 } else { 0 };
        if self.waits >= LOOK_AFTER + GROW_AFTER {
            self.waits = LOOK_AFTER;
            self.pause();
        }
    }

    fn pause(&mut self) {
        self.last_pause = (self.last_pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        self.pause = self.last_pause;
    }

    fn was_worth_it(&mut self, bytes: usize, requests: u64, took: Duration) {
        self.usual = Some(self.usual.map_or(took, |usual| usual - usual / 8 + took / 8));
        self.few &= requests < MIN_IN_FLIGHT;
        self.until_growth = self.until_growth.saturating_sub(1);
        if self.until_growth == 0 {
            self.grow();
        } else if !self.growing {
            // More arrives while this thread wakes up: aim for half at that time.
            let corrected = (self.bytes + self.half / 4).saturating_sub(bytes / 4);
            self.bytes = corrected.clamp(MIN_BYTES, self.half.max(MIN_BYTES));
        }
    }

    fn grow(&mut self) {
        let more = self.bytes + self.bytes / 2;
        if more <= MAX_BYTES {
            (self.bytes, self.growing, self.until_growth) = (more, true, GROW_AFTER);
        } else {
            let half = self.bytes / 2;
            (self.bytes, self.half, self.growing, self.until_growth) = (half, half, false, KEEP_FOR);
        }
    }

    /// A wait timed out: what arrived is most likely all that is in flight. If the client was only slower, the next
    /// timeout is longer.
    fn timed_out(&mut self, bytes: usize, requests: u64, timeout: Duration) {
        // Reduce slowly: a client that was delayed once may have more in flight.
        let half = (bytes / 2).max(self.half - self.half / 4);
        (self.bytes, self.half, self.growing, self.usual) = (half, half, false, Some(timeout));
        if requests >= MIN_IN_FLIGHT {
            (self.few, self.until_growth, self.last_pause) = (false, KEEP_FOR, 0);
        } else if std::mem::replace(&mut self.few, true) {
            // Pause only after two in a row: one may be chance.
            *self = Self { usual: self.usual, waits: self.waits, last_pause: self.last_pause, ..Self::default() };
            self.pause();
        } else {
            self.until_growth = GROW_AFTER;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_micros(200);
    const FAST: Duration = Duration::from_nanos(100);

    /// A simulated client that sends one request per `pace` while fewer than `in_flight` are in flight.
    #[derive(Clone, Copy)]
    struct Client {
        in_flight: usize,
        pace: Duration,
        request: usize,
        /// Requests that arrive while the server wakes up.
        late: usize,
    }

    /// What the server did: requests waited for in each round (0: no wait), number of timeouts, and the last timeout.
    struct Served {
        waited: Vec<usize>,
        timeouts: usize,
        timeout: Duration,
    }

    impl Served {
        fn waits(&self) -> usize {
            self.waited.iter().filter(|goal| **goal > 0).count()
        }
    }

    impl Client {
        fn new(in_flight: usize, pace: Duration) -> Self {
            Self { in_flight, pace, request: REQUEST_BYTES, late: 0 }
        }

        fn play(self, target: &mut Target, turns: usize) -> Served {
            let mut served = Served { waited: Vec::new(), timeouts: 0, timeout: Duration::ZERO };
            let mut now = Instant::now();
            for turn in 0..turns {
                let wait = target.wait(LONGEST, now);
                served.waited.push(wait.map_or(0, |wait| wait.bytes) / self.request);
                let there = match wait {
                    Some(wait) => {
                        let asked = wait.bytes.div_ceil(self.request);
                        let until = self.pace * asked as u32;
                        let enough = until <= wait.timeout && asked <= self.in_flight;
                        served.timeout = wait.timeout;
                        served.timeouts += usize::from(!enough);
                        now += if enough { until } else { wait.timeout };
                        let paced = (wait.timeout.as_nanos() / self.pace.as_nanos()) as usize;
                        if enough { (asked + self.late).min(self.in_flight) } else { paced.clamp(1, self.in_flight) }
                    }
                    // Occasionally two arrive together by chance.
                    None => 1 + usize::from(turn % 10 == 0 && self.in_flight > 1),
                };
                target.received(there * self.request, there as u64, now);
            }
            served
        }
    }

    #[test]
    fn one_request_in_flight_is_never_waited_for() {
        let served = Client::new(1, FAST).play(&mut Target::default(), 10_000);
        assert_eq!((served.waits(), served.timeouts), (0, 0));
    }

    #[test]
    fn half_of_what_is_in_flight_is_waited_for_and_few_waits_time_out() {
        for (in_flight, request) in [(16, 28), (32, 28), (200, 28), (16, 540), (32, 4124), (40, 4124)] {
            let client = Client { request, ..Client::new(in_flight, FAST) };
            let served = client.play(&mut Target::default(), 10_000);
            let late = &served.waited[2_000..];
            let half = late.iter().filter(|goal| **goal * 2 <= in_flight && **goal * 2 + 2 >= in_flight).count();
            assert!(half * 10 >= late.len() * 8, "{in_flight} of {request}: {half} of {}", late.len());
            assert!(late.iter().all(|goal| *goal <= in_flight * 3 / 2 + 1), "{in_flight} of {request}");
            assert!(served.timeouts * 100 <= late.len(), "{in_flight} of {request}: {}", served.timeouts);
        }
    }

    #[test]
    fn half_has_arrived_when_the_server_has_woken_up() {
        let client = Client { late: 10, ..Client::new(32, FAST) };
        let late = client.play(&mut Target::default(), 10_000).waited.split_off(2_000);
        let right = late.iter().filter(|goal| (5..=7).contains(*goal)).count();
        assert!(right * 10 >= late.len() * 8, "{right} of {}", late.len());
    }

    /// A client that sends everything it has in flight, or half of it, at once.
    #[test]
    fn clients_that_send_batches_are_hardly_ever_waited_for() {
        for (most, least) in [(32, 32), (32, 16), (16, 9)] {
            let (mut target, mut now, mut waits) = (Target::default(), Instant::now(), 0);
            for turn in 0..100_000 {
                waits += usize::from(target.wait(LONGEST, now).is_some());
                now += FAST;
                let there = if turn % 2 == 0 { most } else { least };
                target.received(there * REQUEST_BYTES, there as u64, now);
            }
            assert!(waits <= 2 * LOOK_AFTER as usize, "{most} and {least}: {waits}");
        }
    }

    /// The receive buffer cannot hold everything that is in flight.
    #[test]
    fn large_payloads_do_not_raise_the_target_above_the_receive_buffer() {
        let client = Client { request: 65_564, ..Client::new(64, FAST) };
        let mut target = Target::default();
        client.play(&mut target, 10_000);
        assert!((MIN_BYTES..=MAX_BYTES).contains(&target.bytes), "{target:?}");
    }

    #[test]
    fn clients_with_few_in_flight_are_hardly_ever_waited_for() {
        for in_flight in [2, 4, 11] {
            let served = Client::new(in_flight, FAST).play(&mut Target::default(), 100_000);
            assert!(served.waits() * 100 <= served.waited.len(), "{in_flight}: {}", served.waits());
            assert!((1..=20).contains(&served.timeouts), "{in_flight}: {} timeouts", served.timeouts);
        }
    }

    #[test]
    fn a_slow_client_is_waited_for_until_the_timeout_or_half_of_that() {
        let served = Client::new(100, Duration::from_micros(10)).play(&mut Target::default(), 10_000);
        let late = &served.waited[2_000..];
        let mean = late.iter().sum::<usize>() as f64 / late.len() as f64;
        assert!((6.0..=20.0).contains(&mean), "{mean}");
        assert!(served.timeouts * 50 <= late.len(), "{}", served.timeouts);
    }

    #[test]
    fn clients_whose_queue_depth_grows_are_waited_for_again() {
        let mut target = Target::default();
        Client::new(4, FAST).play(&mut target, 1_000_000);
        let served = Client::new(32, FAST).play(&mut target, 100_000);
        let waits = served.waited[LONGEST_PAUSE as usize + 100..].iter().filter(|goal| **goal >= 15).count();
        assert!(waits > 30_000, "{waits}");
    }

    #[test]
    fn the_timeout_follows_the_pace_of_the_client() {
        let (fast, slow) = (Client::new(100, FAST), Client::new(100, Duration::from_micros(10)));
        let mut target = Target::default();
        slow.play(&mut target, 10_000);
        assert!(target.usual > Some(LONGEST / 4), "{target:?}");
        assert_eq!(fast.play(&mut target, 100).timeout, MIN_TIMEOUT);
        let served = slow.play(&mut target, 10_000);
        assert!(served.waits() > 8_000 && target.usual > Some(LONGEST / 4), "{} {target:?}", served.waits());
    }

    /// A client that is idle for a second between bursts: what arrives after a wait that found nothing carries no
    /// information.
    #[test]
    fn an_idle_client_changes_nothing() {
        let client = Client::new(32, Duration::from_micros(1));
        let mut target = Target::default();
        client.play(&mut target, 10_000);
        let known = target;
        for requests in [1, 32] {
            let now = Instant::now();
            assert!(target.wait(LONGEST, now).is_some());
            target.cancel();
            target.received(requests * REQUEST_BYTES, requests as u64, now + Duration::from_secs(1));
            assert_eq!((target.bytes, target.usual, target.pause), (known.bytes, known.usual, 0));
        }
    }

    /// The target falls below the minimum when a wait finds one or two requests, and rises again when two arrive
    /// together.
    #[test]
    fn clients_are_waited_for_again_after_a_timeout_with_one_request() {
        let mut target = Target::default();
        let now = Instant::now();
        target.received(2 * REQUEST_BYTES, 2, now);
        let timeout = target.wait(LONGEST, now).unwrap().timeout;
        target.received(REQUEST_BYTES, 1, now + timeout);
        assert_eq!(target.wait(LONGEST, now), None);
        target.received(2 * REQUEST_BYTES, 2, now);
        assert!(target.wait(LONGEST, now).is_some());
    }

    /// The thread lost its CPU once, and found less than there is.
    #[test]
    fn one_timeout_is_no_reason_to_pause() {
        let client = Client::new(32, FAST);
        let mut target = Target::default();
        client.play(&mut target, 10_000);
        let now = Instant::now();
        let timeout = target.wait(LONGEST, now).unwrap().timeout;
        target.received(3 * REQUEST_BYTES, 3, now + timeout);
        assert!(client.play(&mut target, 1_000).waits() > 950);
    }
}
