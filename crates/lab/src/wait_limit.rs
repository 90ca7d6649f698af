//! How long iotoll waits for a worker process or a shell command.

use crate::error::Error;
use crate::interruption::{Awaited, Interruption};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long others are waited for.
#[derive(Clone, Debug)]
pub(crate) struct WaitLimit {
    /// How long at most.
    pub longest: Duration,
    /// Asked: not much longer.
    interruption: Arc<Interruption>,
    /// An interruption does not shorten it: what is waited for puts something back.
    to_the_end: bool,
}

impl WaitLimit {
    /// How long a worker may go on after an interruption: enough to finish what it has in flight on most devices.
    const GRACE: Duration = Duration::from_secs(1);

    pub fn new(longest: Duration, interruption: Arc<Interruption>) -> Self {
        Self { longest, interruption, to_the_end: false }
    }

    /// The same for a command that puts something back.
    pub fn to_the_end(&self) -> Self {
        Self { to_the_end: true, ..self.clone() }
    }

    /// Tells whoever interrupts that this process group runs to its end, as long as the answer lives.
    pub fn note(&self, doing: &str, group: u32) -> Option<Awaited<'_>> {
        let text = || {
            format!(
                "still waits for {doing}, which puts back what was switched on or set up; it is killed after {:.0} s (--hang-timeout); \
                 to end it now: kill -- -{group}",
                self.longest.as_secs_f64()
            )
        };
        self.to_the_end.then(|| self.interruption.awaits(text()))
    }

    /// Why nobody should wait any longer for what began at `begun`.
    pub fn ends(&self, begun: Instant, doing: &str) -> Option<Error> {
        let elapsed = begun.elapsed();
        if elapsed > Self::GRACE && self.interruption.is_requested() && !self.to_the_end {
            return Some(Error::Interrupted(format!("while {doing}")));
        }
        let seconds = self.longest.as_secs_f64();
        (elapsed > self.longest).then(|| {
            Error::Failed(format!("no end after {seconds:.0} s of {doing}; --hang-timeout says how long that may take"))
        })
    }
}
