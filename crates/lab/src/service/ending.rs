//! Ending services: SIGTERM first, then SIGKILL. A user who insists gets SIGKILL at once.

use super::POLL_INTERVAL;
use super::running::Running;
use crate::error::Result;
use crate::interruption::Interruption;
use std::time::{Duration, Instant};

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// Ends all of them at the same time, and empties the list.
pub(super) fn end(running: &mut Vec<Running>, interruption: &Interruption) -> Result<()> {
    let mut ending = std::mem::take(running);
    ending.iter().for_each(Running::ask_to_end);
    let begun = Instant::now();
    while ending.iter().any(Running::lives) && begun.elapsed() < GRACE && !interruption.is_repeated() {
        std::thread::sleep(POLL_INTERVAL);
    }
    let mut outcome = Ok(());
    for service in &mut ending {
        outcome = outcome.and(service.clear_away());
    }
    outcome
}
