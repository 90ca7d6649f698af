//! Whole rounds: each case once, with workers of its own, ended by a sync of what it wrote.

use super::{Measured, RoundRunner, at_once};
use crate::error::Result;
use model::comparison::record::{CaseLatency, Schedule};
use model::plan::{Access, Phase};
use model::unit::Nanos;
use std::time::Duration;

/// Long enough that a sync at its end is a small part, short enough for many rounds.
const SLICE: Duration = Duration::from_secs(1);
/// Settings that take longer to switch are switched once in a round: shorter slices would be too short for them.
pub(super) const SLOW_SWITCH: Duration = Duration::from_millis(20);
/// I/O after a toggle that does not count.
const WARM_UP: Duration = Duration::from_millis(100);

/// How such rounds are cut, where this length was asked for, or not, and no slice must be longer than `longest`.
pub(super) fn schedule(asked: Option<Duration>, longest: Option<Duration>) -> Schedule {
    let slice = asked.unwrap_or(SLICE);
    let slice = longest.map_or(slice, |longest| longest.min(slice));
    Schedule::WholeRounds { slice_nanos: Nanos(u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX)) }
}

impl RoundRunner<'_> {
    /// One round; `None` when it was interrupted.
    pub(super) fn whole_round(&mut self, length: Duration) -> Result<Option<Measured>> {
        self.round_of_turns(|runner, case| {
            let mut team = runner.team(case, synced)?;
            team.ready()?;
            let slice = at_once(|| runner.slice(case, &mut team, length, WARM_UP))?;
            Ok((slice, Some(CaseLatency { case, injected_ns: team.injected(), ticks: team.finish()? })))
        })
    }
}

/// What was written is on its way to the device for seconds after: it is paid for by who wrote it.
fn synced(mut phase: Phase) -> Phase {
    for job in phase.jobs.iter_mut().filter(|job| job.access != Access::Read) {
        job.end_fsync = true;
    }
    phase
}
