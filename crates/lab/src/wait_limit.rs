//! How long iotoll waits for a worker process or a shell command.

use crate::error::Error;
use crate::interruption::{Awaited, Interruption};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub(crate) struct WaitLimit {
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
