//! A request to end a measurement: the user's (Ctrl-C, or another signal), or that of a failure beside it.

use crate::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often the end was asked for. The signal thread counts; the measuring threads read.
#[derive(Debug, Default)]
pub struct Interruption {
    requests: AtomicU32,
    /// The first request came from a failure, not from the user.
    by_failure: AtomicBool,
    /// What runs to its end despite the request.
    awaited: Mutex<Option<String>>,
}

/// Something runs to its end, as long as this lives.
#[derive(Debug)]
pub struct Awaited<'a>(&'a Interruption);

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        *self.0.awaited_now() = None;
    }
}

impl Interruption {
    /// Counts a request, and returns the number of requests so far.
    pub fn request(&self) -> u32 {
        self.requests.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// Something that the measurement needs has failed. The user has not asked for an end.
    pub(crate) fn request_by_failure(&self) {
        if self.request() == 1 {
            self.by_failure.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a failure, not the user, ended the measurement.
    pub fn is_by_failure(&self) -> bool {
        self.by_failure.load(Ordering::Relaxed)
    }

    /// Whether to end, and keep the readings.
    pub fn is_requested(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    /// Sleeps for this time, or until the end is asked for.
    pub fn sleep(&self, length: Duration) {
        /// Longest reaction time; ten wake-ups a second in a longer sleep.
        const POLL_INTERVAL: Duration = Duration::from_millis(100);
        let end = Instant::now() + length;
        while !self.is_requested() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(POLL_INTERVAL));
        }
    }

    /// Notes what runs to its end.
    pub(crate) fn awaits(&self, what: String) -> Awaited<'_> {
        *self.awaited_now() = Some(what);
        Awaited(self)
    }

    /// What still runs despite the request, and how the user can end it.
    pub fn awaited(&self) -> Option<String> {
        self.awaited_now().clone()
    }

    fn awaited_now(&self) -> MutexGuard<'_, Option<String>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The user asked again: end at once what has not ended.
    pub fn is_repeated(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 1
    }
}

#[derive(Clone, Debug)]
pub struct WaitLimit {
    pub longest: Duration,
    /// The user can choose it.
    has_flag: bool,
    /// After a request, wait only a little longer.
    interruption: Arc<Interruption>,
    /// An interruption does not shorten the wait, because the process restores something.
    to_the_end: bool,
}

impl WaitLimit {
    /// How long a worker may continue after an interruption: enough to finish what it has in flight on most devices.
    const GRACE: Duration = Duration::from_secs(1);

    /// The longest time for verbs without a flag for it.
    const LONGEST: Duration = Duration::from_secs(3600);

    /// The time that `--hang-timeout` gives, or an hour for verbs that do not have it.
    pub fn new(longest: impl Into<Option<Duration>>, interruption: Arc<Interruption>) -> Self {
        let longest = longest.into();
        let has_flag = longest.is_some();
        Self { longest: longest.unwrap_or(Self::LONGEST), has_flag, interruption, to_the_end: false }
    }

    /// The same for a command that restores something.
    pub fn to_the_end(&self) -> Self {
        Self { to_the_end: true, ..self.clone() }
    }

    /// Lets an interrupting user know that this process group runs to its end, as long as the result lives.
    pub fn note(&self, doing: &str, group: u32) -> Option<Awaited<'_>> {
        let text = || {
            let flag = if self.has_flag { " (--hang-timeout)" } else { "" };
            format!(
                "still waiting for {doing}, which restores the system; it is killed after {:.0} s{flag}; to end it now: kill -- -{group}",
                self.longest.as_secs_f64()
            )
        };
        self.to_the_end.then(|| self.interruption.awaits(text()))
    }

    /// The error that ends the wait for something that began at `begun`.
    pub fn ends(&self, begun: Instant, doing: &str) -> Option<Error> {
        let elapsed = begun.elapsed();
        if elapsed > Self::GRACE && self.interruption.is_requested() && !self.to_the_end {
            return Some(Error::Interrupted(format!("while {doing}")));
        }
        let seconds = self.longest.as_secs_f64();
        (elapsed > self.longest).then(|| {
            let flag = if self.has_flag { "; --hang-timeout sets this limit" } else { "" };
            Error::Failed(format!("still not finished after {seconds:.0} s of {doing}{flag}"))
        })
    }
}
