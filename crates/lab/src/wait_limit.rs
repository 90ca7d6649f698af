//! How long iotoll waits for a worker process or a shell command.

use crate::error::Error;
use crate::interruption::Interruption;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long others are waited for.
#[derive(Clone, Debug)]
pub(crate) struct WaitLimit {
    /// How long at most.
    pub longest: Duration,
    /// Asked: not much longer.
    pub interruption: Arc<Interruption>,
}

impl WaitLimit {
    /// How long a worker may go on after an interruption: enough to finish what it has in flight on most devices.
    const GRACE: Duration = Duration::from_secs(1);

    /// Why nobody should wait any longer for what began at `begun`.
    pub fn ends(&self, begun: Instant, doing: &str) -> Option<Error> {
        let elapsed = begun.elapsed();
        if elapsed > Self::GRACE && self.interruption.is_asked() {
            return Some(Error::Interrupted(format!("while {doing}")));
        }
        let seconds = self.longest.as_secs_f64();
        (elapsed > self.longest).then(|| {
            Error::Failed(format!("no end after {seconds:.0} s of {doing}; --hang-timeout says how long that may take"))
        })
    }
}
